"""Host ports in use, per node, with Kubernetes' rule of conflict.

Two claims conflict when port and protocol are equal and their addresses are equal or one of them is
every address. Few pods use host ports, so this is a dictionary of the nodes that have any.
"""

from collections.abc import Iterable
from typing import Final

from shared.model.invariants import InvariantViolation
from shared.model.objects import HostPort

_EVERY: Final = "0.0.0.0"  # noqa: S104 - an address to compare with, nothing is bound to it


class PortTable:
    """Claims by slot; a claim may be held several times (foreign pods may already conflict)."""

    def __init__(self) -> None:
        self._used: dict[int, dict[tuple[int, str, str], int]] = {}

    def take(self, slot: int, ports: Iterable[HostPort], count: int = 1) -> None:
        """`count` pods with these ports are on the node."""
        used = self._used.setdefault(slot, {})
        for port in ports:
            key = _key(port)
            used[key] = used.get(key, 0) + count

    def give(self, slot: int, ports: Iterable[HostPort], count: int = 1) -> None:
        """`count` pods with these ports left the node."""
        used = self._used[slot]
        for port in ports:
            key = _key(port)
            left = used[key] - count
            if left < 0:
                raise InvariantViolation(f"port {key}", "was given back more often than taken")
            if left:
                used[key] = left
            else:
                del used[key]
        if not used:
            del self._used[slot]

    def conflicts(self, slot: int, ports: Iterable[HostPort]) -> bool:
        """Whether a pod with these ports cannot be on the node now."""
        used = self._used.get(slot)
        if not used:
            return False
        return any(_clash(_key(port), claim) for port in ports for claim in used)

    def slots(self) -> list[int]:
        """Nodes with any claim."""
        return sorted(self._used)

    def content(self) -> dict[int, dict[tuple[int, str, str], int]]:
        """A copy of all claims, to compare."""
        return {slot: dict(used) for slot, used in self._used.items()}

    def copy(self) -> "PortTable":
        """An independent table with the same claims."""
        table = PortTable()
        table._used = self.content()
        return table


def _key(port: HostPort) -> tuple[int, str, str]:
    return port.port, port.protocol or "TCP", port.ip or _EVERY


def _clash(one: tuple[int, str, str], other: tuple[int, str, str]) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or _EVERY in {one[2], other[2]})
