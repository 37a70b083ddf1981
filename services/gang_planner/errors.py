"""What ends a planner process on purpose."""

from shared.bus.errors import Superseded


class ForeignRecord(Superseded):
    """Another writer's record is in DECISIONS behind ours: this state of what is in flight is no
    longer the truth.

    The lifecycle begins a new generation in the same process, as a standby.
    """
