"""Disks that pods mount without a claim, per node, with kube-scheduler's conflict rule.

Two pods on a node conflict if they name the same disk, unless both only read it. (AWS disks always
count as written: `shared.dialects.shapes`.) Few pods mount such disks.
"""

from collections.abc import Iterable

from shared.model.invariants import InvariantViolation
from shared.model.objects import Disk


class Disks:
    """Number of users and of writers per disk, by slot."""

    def __init__(self) -> None:
        self._used: dict[int, dict[str, tuple[int, int]]] = {}

    def take(self, slot: int, disks: Iterable[Disk], count: int = 1) -> None:
        """Add `count` pods with these disks to the node; negative: remove them."""
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
        """Slots where one of these disks conflicts with a pod on the node, sorted."""
        wanted = tuple(disks)
        return [slot for slot in sorted(self._used) if _clash(self._used[slot], wanted)]

    def content(self) -> dict[int, dict[str, tuple[int, int]]]:
        return {slot: dict(used) for slot, used in self._used.items()}

    def copy(self) -> "Disks":
        other = Disks()
        other._used = self.content()
        return other


def _clash(used: dict[str, tuple[int, int]], wanted: tuple[Disk, ...]) -> bool:
    for one in wanted:
        users, writers = used.get(one.name, (0, 0))
        if writers or (users and not one.read_only):
            return True
    return False
