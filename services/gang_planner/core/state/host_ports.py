"""Host ports in use per node, with Kubernetes' conflict rule.

Two host ports conflict if port and protocol are equal, and the addresses are equal or one of them
is the wildcard address. Few pods use host ports, so the table has only nodes with any.
"""

from collections.abc import Iterable
from typing import Final

from shared.model.invariants import InvariantViolation
from shared.model.objects import HostPort

_EVERY: Final = "0.0.0.0"  # noqa: S104 - an address to compare with, nothing is bound to it


class PortTable:
    """Host ports by slot, with the number of pods that use each: foreign pods may conflict."""

    def __init__(self) -> None:
        self._used: dict[int, dict[tuple[int, str, str], int]] = {}

    def take(self, slot: int, ports: Iterable[HostPort], count: int = 1) -> None:
        """Add `count` pods with these ports to the node; negative: remove them."""
        used = self._used.setdefault(slot, {})
        for port in ports:
            key = _key(port)
            left = used.get(key, 0) + count
            if left < 0:
                raise InvariantViolation(f"port {key}", "was given back more often than taken")
            if left:
                used[key] = left
            else:
                used.pop(key, None)
        if not used:
            del self._used[slot]

    def conflicts(self, slot: int, ports: Iterable[HostPort]) -> bool:
        used = self._used.get(slot)
        if not used:
            return False
        return any(_clash(_key(port), claim) for port in ports for claim in used)

    def slots(self) -> list[int]:
        return sorted(self._used)

    def content(self) -> dict[int, dict[tuple[int, str, str], int]]:
        return {slot: dict(used) for slot, used in self._used.items()}

    def copy(self) -> "PortTable":
        table = PortTable()
        table._used = self.content()
        return table


def _key(port: HostPort) -> tuple[int, str, str]:
    return port.port, port.protocol or "TCP", port.ip or _EVERY


def _clash(one: tuple[int, str, str], other: tuple[int, str, str]) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or _EVERY in {one[2], other[2]})
