"""What ends a planner process on purpose."""

from shared.bus.errors import Superseded


class ForeignRecord(Superseded):
    """Somebody else's record is in DECISIONS behind ours: this picture of what is in flight is no
    longer the truth.

    The lifecycle exits with the status that means "superseded"; whoever supervises starts it again,
    as a standby.
    """
