"""What a pod uses of a node that excludes other pods from it: host ports, and disks that it mounts
without a claim. Few pods use any, so the tables have only nodes with some.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from shared.model.invariants import InvariantViolation
from shared.model.objects import Disk, HostPort

_EVERY: Final = "0.0.0.0"  # noqa: S104 - an address to compare with, nothing is bound to it

Use = TypeVar("Use", HostPort, Disk)


class NodeUses(Generic[Use]):
    """Uses by slot, with the number of pods that have each: foreign pods may conflict."""

    def __init__(self, conflict: Callable[[Use, Use], bool]) -> None:
        """`conflict`: whether two pods with these uses exclude each other from a node."""
        self._conflict: Callable[[Use, Use], bool] = conflict
        self._used: dict[int, dict[Use, int]] = {}

    def take(self, slot: int, uses: Iterable[Use], count: int = 1) -> None:
        """Add `count` pods with these uses to the node; negative: remove them."""
        used = self._used.setdefault(slot, {})
        for use in uses:
            left = used.get(use, 0) + count
            if left < 0:
                raise InvariantViolation(f"{use}", "was given back more often than taken")
            if left:
                used[use] = left
            else:
                used.pop(use, None)
        if not used:
            del self._used[slot]

    def conflicts(self, uses: Iterable[Use]) -> list[int]:
        """Slots where one of these uses conflicts with a pod on the node, sorted."""
        wanted = tuple(uses)
        return [
            slot
            for slot, used in sorted(self._used.items())
            if any(self._conflict(use, other) for use in wanted for other in used)
        ]

    def content(self) -> dict[int, dict[Use, int]]:
        return {slot: dict(used) for slot, used in self._used.items()}

    def copy(self) -> "NodeUses[Use]":
        other = NodeUses(self._conflict)
        other._used = self.content()
        return other


def host_ports() -> NodeUses[HostPort]:
    """An empty table of host ports."""
    return NodeUses(_same_port)


def disks() -> NodeUses[Disk]:
    """An empty table of disks. (AWS disks always count as written: `shared.dialects.shapes`.)"""
    return NodeUses(_same_disk)


def _same_port(port: HostPort, other: HostPort) -> bool:
    """As in Kubernetes: port and protocol are equal, and the addresses, or one is the wildcard."""
    if port.port != other.port or (port.protocol or "TCP") != (other.protocol or "TCP"):
        return False
    addresses = {port.ip or _EVERY, other.ip or _EVERY}
    return len(addresses) == 1 or _EVERY in addresses


def _same_disk(disk: Disk, other: Disk) -> bool:
    """As in kube-scheduler: two pods name the same disk, unless both only read it."""
    return disk.name == other.name and not (disk.read_only and other.read_only)
