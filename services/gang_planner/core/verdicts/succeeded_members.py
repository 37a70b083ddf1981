"""The succeeded members in a verdict, from which a planner that starts restores a gang's run."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import SUCCEEDED
from services.gang_planner.core.state.sub_gangs import sub_gangs
from shared.model.bounded_text import NAME_BYTES_MAX

#: Roles, and sub-gangs, that a verdict counts: it must fit into an annotation. Of further ones a
#: planner that starts knows only how many members of the whole gang have succeeded.
_COUNTED_MAX: Final = 32


def by_role(gang: Gang) -> tuple[tuple[str, int], ...]:
    """(role, succeeded members) of the roles with a minimum."""
    if not gang.succeeded:
        return ()
    gone = gang.run.by_role
    found = (
        (role, gone.get(role, 0) + (gang.roles[role][SUCCEEDED] if role in gang.roles else 0))
        for role, _ in gang.role_minima
    )
    return _counted(found)


def by_part(gang: Gang) -> tuple[tuple[str, int], ...]:
    """(sub-gang, succeeded members)."""
    if not gang.succeeded:
        return ()
    return _counted((one.name, one.succeeded) for one in sub_gangs(gang))


def jobs(gang: Gang) -> tuple[str, ...]:
    """The UIDs of the Jobs whose next pods continue the run of a gang without pods."""
    if gang.members or not (gang.run.ended or gang.run.succeeded):
        return ()
    return tuple(islice(gang.run.jobs, _COUNTED_MAX))


def _counted(found: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    named = (one for one in found if one[1] and len(one[0].encode()) <= NAME_BYTES_MAX)
    return tuple(sorted(islice(named, _COUNTED_MAX)))
