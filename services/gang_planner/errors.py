"""Errors that end a generation of the planner."""

from shared.bus.errors import Superseded


class ForeignRecord(Superseded):
    """Another planner appended to DECISIONS: this planner's decisions in flight are not complete.

    The lifecycle begins a new generation in the same process, as a standby.
    """
