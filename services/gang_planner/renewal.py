"""When a planner begins a new generation, to forget what no object has any more.

Pod shapes, terms and names of resources are interned: their numbers are in all tables of the core,
so none of them can be removed. Users make them up (each claim's name is a part of a shape), so they
would grow for as long as the process lives. A planner that has grown reads everything again, as
after a start: a takeover is what all of its tables are made for, and no decision depends on it.
"""

from typing import Final

#: A standby begins its new generation at the limit, and the active planner at this multiple of it:
#: then it hands over to a standby that is done with its own.
_ACTIVE: Final = 1.5


class Renewal:
    """Compares a planner's size with the one that it had when it had read everything."""

    def __init__(self, spare: int) -> None:
        """`spare`: by how much the size may exceed twice the first one."""
        self._spare = spare
        self._first: int | None = None

    def is_due(self, size: int, *, active: bool) -> bool:
        """Whether a planner of this size should begin a new generation. A state that is as large
        because its cluster is has no reason to: its next generation begins at that size.
        """
        if self._first is None:
            self._first = size
        limit = 2 * self._first + self._spare
        return size > (_ACTIVE * limit if active else limit)
