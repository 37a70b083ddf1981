"""Disks that pods mount without a claim, per node, with kube-scheduler's rule of conflict.

Two pods conflict on a node when they name the same disk, unless both only read it. (What names a
disk of AWS never only reads it: `shared.dialects.shapes`.) Few pods do so.
"""

from collections.abc import Iterable

from shared.model.invariants import InvariantViolation
from shared.model.objects import Disk


class Disks:
    """Users and writers of disks by slot."""

    def __init__(self) -> None:
        self._used: dict[int, dict[str, tuple[int, int]]] = {}

    def take(self, slot: int, disks: Iterable[Disk], count: int = 1) -> None:
        """`count` pods with these disks are on the node (negative: they left it)."""
        used = self._used.setdefault(slot, {})
        for one in disks:
            users, writers = used.get(one.name, (0, 0))
            users, writers = users + count, writers + (0 if one.read_only else count)
            if users < 0:
                raise InvariantViolation(f"disk {one.name}", "was given back more often than taken")
            if users:
                used[one.name] = users, writers
            else:
                used.pop(one.name, None)
        if not used:
            del self._used[slot]

    def conflicts(self, disks: Iterable[Disk]) -> list[int]:
        """Slots that a pod with these disks cannot be on now."""
        wanted = tuple(disks)
        return [slot for slot in sorted(self._used) if _clash(self._used[slot], wanted)]

    def content(self) -> dict[int, dict[str, tuple[int, int]]]:
        """A copy of all uses, to compare."""
        return {slot: dict(used) for slot, used in self._used.items()}

    def copy(self) -> "Disks":
        """An independent table of the same uses."""
        other = Disks()
        other._used = self.content()
        return other


def _clash(used: dict[str, tuple[int, int]], wanted: tuple[Disk, ...]) -> bool:
    for one in wanted:
        users, writers = used.get(one.name, (0, 0))
        if writers or (users and not one.read_only):
            return True
    return False
