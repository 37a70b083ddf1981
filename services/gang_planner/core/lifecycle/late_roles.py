"""Late roles: roles whose pods are created only after the other roles run, such as the launcher of
an MPI job.

The gang counts such a role in its minimum and waits for it, and the role's controller waits for the
gang. So while no pod of a late role exists, the gang starts without it.

Which roles are late:

* the roles in the group's annotation `tutti.dev/late-roles`, at once;
* the launcher of an MPIJob, if every other minimum could be met and no pod was created for
  `_SILENCE_MS`. (The MPI operator creates it last if the job's `launcherCreationPolicy` is
  WaitForWorkersReady; the planner does not see that field.)

No other role is late: a pod that a quota or a webhook refused is missing, and its gang waits for
it. Tutti's own Job controller leaves tasks that depend on other tasks (`dependsOn`) out of the
group (`shared/dialects/job_groups.py`).

Existing pods limit the rule: the minimum is lowered by at most the number of missing members,
whatever their roles are. So a gang never starts without a pod that exists. After the start, a late
role is left out until its pods are placed, one by one; from then on the declared minimum applies.
"""

from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.state.gang_settings import late_roles
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import FAILED, LEAVING
from shared.model.invariants import required

#: Controllers create pods without dependencies within a second or two.
_SILENCE_MS: Final = 10_000
_MPI_JOB: Final = "MPIJob"
_LAUNCHER: Final = "launcher"


def watch(work: CycleContext, gang: Gang) -> None:
    """Update the gang's late roles; called before each assessment."""
    group = gang.group
    if group is None:
        _leave_out(gang, {}, 0)
        return
    if gang.history.started:
        if gang.late:
            late = {role: n for role, n in gang.late.items() if gang.have(role) < n}
            _leave_out(gang, late, min(gang.excused, gang.declared - gang.have()))
        return
    named = late_roles(gang) if group.settings else {}
    if named:
        there = {member.pod.role for member in gang.members.values()}
        late = {role: n for role, n in named.items() if role not in there}
        _leave_out(gang, late, gang.declared - _existing(gang))
        return
    if gang.late:
        _leave_out(gang, {}, 0)
    if gang.members and _is_mpi_job(gang):
        _wait_for_launcher(work, gang)


def absent_roles(gang: Gang) -> dict[str, int]:
    """The roles that may be late and of which no pod exists, with their number of pods: whether
    these were created before is unknown.
    """
    if gang.group is None:
        return {}
    there = {member.pod.role for member in gang.members.values()}
    found = late_roles(gang)
    if _is_mpi_job(gang) and not any(_LAUNCHER in role.lower() for role in there):
        found.setdefault(_launcher_of(gang), 1)
    return {role: count for role, count in found.items() if role not in there}


def _wait_for_launcher(work: CycleContext, gang: Gang) -> None:
    """Leave the launcher out if no pod was created for a while and nothing else is missing."""
    missing = gang.declared - _existing(gang)
    if missing <= 0 or any(_LAUNCHER in one.pod.role.lower() for one in gang.members.values()):
        return
    _leave_out(gang, {_launcher_of(gang): 1}, missing)
    if gang.able() >= gang.min_member and all(
        gang.able(role) >= least for role, least in gang.role_minima
    ):
        silent_from = max(one.pod.created_ms for one in gang.members.values()) + _SILENCE_MS
        if work.now_ms >= silent_from:
            return
        work.timers.set(silent_from, gang)
    _leave_out(gang, {}, 0)


def _leave_out(gang: Gang, late: dict[str, int], most: int) -> None:
    """Set the late roles, and lower the gang's minimum by their members, at most by `most`."""
    gang.late = late
    gang.excused = max(0, min(sum(late.values()), most)) if late else 0


def _existing(gang: Gang) -> int:
    """The number of members that have not failed and are not being deleted."""
    return len(gang.members) - gang.counts[FAILED] - gang.counts[LEAVING]


def _is_mpi_job(gang: Gang) -> bool:
    owner = gang.owner
    return owner is not None and owner.kind == _MPI_JOB


def _launcher_of(gang: Gang) -> str:
    """The group's name for the launcher role, or the default one."""
    group = required(gang.group, gang.full_name, "has no group object")
    roles = (role for role, _ in group.min_task_member)
    return next((role for role in roles if _LAUNCHER in role.lower()), _LAUNCHER)
