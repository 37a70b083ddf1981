"""Roles whose pods come only when the others run: launchers of MPI jobs, tasks with `dependsOn`.

Their gang counts them in its minimum and waits for them, they wait for the gang. So a role of which
no pod exists, while all others are there, is *late* when nothing more has come for `_SILENCE_MS`:
it is left out of the minimum until a pod of it appears. After the start it stays so until its pods
are placed, each as it comes.

Only controllers that do so are believed: the MPI operator's and Volcano's Job. Which role is
missing is said by the group's minima per role; a group of an MPIJob has none, there it is the one
launcher. Of other controllers the group's annotation `tutti.dev/late-roles` says so, and nobody
waits to find out.
"""

from typing import Final

from services.gang_planner.core.configuring.settings import late_roles
from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.tables.gangs import Gang

#: Controllers make the pods that do not wait for anything within a second or two.
_SILENCE_MS: Final = 10_000
_MPI_JOB: Final = "MPIJob"
_LAUNCHER: Final = "launcher"
_VOLCANO_JOB: Final = "Job"
_VOLCANO_API: Final = "batch.volcano.sh/"
_KINDS: Final = frozenset({_MPI_JOB, _VOLCANO_JOB})


def watch(work: CycleWork, gang: Gang) -> None:
    """Bring the gang's late roles up to date; called before it is assessed."""
    group = gang.group
    if group is None:
        return
    told = late_roles(gang) if group.settings else {}
    if not told and not _has_late_roles(gang):
        return
    if gang.history.started:
        gang.late = {role: n for role, n in gang.late.items() if gang.have(role) < n}
        return
    gang.late = {}
    if told:
        there = {member.pod.role for member in gang.members.values()}
        gang.late = {role: n for role, n in told.items() if role not in there}
        return
    absent = _absent(gang)
    if not absent or not gang.members:
        return
    gang.late = absent
    if gang.able() < gang.min_member or any(
        gang.able(role) < least for role, least in gang.role_minima
    ):
        # Others are missing, too.
        gang.late = {}
        return
    silent_from = max(member.pod.created_ms for member in gang.members.values()) + _SILENCE_MS
    if work.now_ms < silent_from:
        gang.late = {}
        work.timers.set(silent_from, gang)


def _absent(gang: Gang) -> dict[str, int]:
    """Roles of which no pod exists, with how many the gang needs."""
    assert gang.group is not None
    there = {member.pod.role for member in gang.members.values()}
    if gang.group.min_task_member:
        return {role: n for role, n in gang.group.min_task_member if n and role not in there}
    if any(_LAUNCHER in role.lower() for role in there):
        return {}
    return {_LAUNCHER: 1}


def _has_late_roles(gang: Gang) -> bool:
    """Whether its owner's controller makes some pods only when others run."""
    owner = gang.owner
    if owner is None or owner.kind not in _KINDS:
        return False
    if owner.kind == _MPI_JOB:
        return True
    return bool(
        owner.api_version.startswith(_VOLCANO_API)
        and gang.group is not None
        and gang.group.min_task_member
    )
