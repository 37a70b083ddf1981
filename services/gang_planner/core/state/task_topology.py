"""Task-topology annotations of a gang: roles to place on the same nodes, roles to place on
different nodes, and the order of placement.

Semicolons separate groups of roles, commas separate roles. A group with one role concerns the
members of that role. If a group names a role twice, all annotations of the gang are ignored.
"""

from typing import NamedTuple

from shared.model.objects import PodGroup

_PREFIX = "volcano.sh/task-topology-"


class Tasks(NamedTuple):
    """The three parsed annotations."""

    together: tuple[tuple[str, ...], ...] = ()
    apart: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = ()

    def beside(self, role: str) -> frozenset[str]:
        """Roles to place on the same nodes as this role; may include the role itself."""
        return _others(self.together, role)

    def away_from(self, role: str) -> frozenset[str]:
        """Roles to place on different nodes than this role; may include the role itself."""
        return _others(self.apart, role)

    def turn(self, role: str) -> int:
        """Position of the role in the order of placement; unnamed roles come last."""
        return self.order.index(role) if role in self.order else len(self.order)


def tasks_of(group: PodGroup | None) -> Tasks | None:
    """The annotations of a group; None if there are none, or if they are invalid."""
    if group is None or not group.notes:
        return None
    notes = dict(group.notes)
    together = _groups(notes.get(f"{_PREFIX}affinity", ""))
    apart = _groups(notes.get(f"{_PREFIX}anti-affinity", ""))
    order = _names(notes.get(f"{_PREFIX}task-order", ""))
    if not (together or apart):
        return None
    if any(len(set(one)) < len(one) for one in (*together, *apart, order)):
        return None
    return Tasks(together, apart, order)


def _groups(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(names for one in text.split(";") if (names := _names(one)))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for one in text.split(",") if (name := one.strip()))


def _others(groups: tuple[tuple[str, ...], ...], role: str) -> frozenset[str]:
    found: set[str] = set()
    for names in groups:
        if names == (role,):
            found.add(role)
        elif role in names:
            found.update(name for name in names if name != role)
    return frozenset(found)
