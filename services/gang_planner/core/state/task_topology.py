"""What a gang's annotations say of its roles: which want to be on the same nodes, which on others,
and in which order they are placed.

Groups of roles are separated by semicolons, roles by commas; a group of one role is about that
role's own members. Annotations that name a role twice in one group say nothing.
"""

from typing import NamedTuple

from shared.model.objects import PodGroup

_PREFIX = "volcano.sh/task-topology-"


class Tasks(NamedTuple):
    """The three annotations, taken apart."""

    together: tuple[tuple[str, ...], ...] = ()
    apart: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = ()

    def beside(self, role: str) -> frozenset[str]:
        """Roles that this one wants to be on the same nodes with; itself where it says so."""
        return _others(self.together, role)

    def away_from(self, role: str) -> frozenset[str]:
        """Roles that this one wants to be on other nodes than."""
        return _others(self.apart, role)

    def turn(self, role: str) -> int:
        """When the role is placed; those that the order does not name come last."""
        return self.order.index(role) if role in self.order else len(self.order)


def tasks_of(group: PodGroup | None) -> Tasks | None:
    """What a group says of its roles; None: nothing, or nothing that makes sense."""
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
