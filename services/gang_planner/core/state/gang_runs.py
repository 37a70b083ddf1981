"""A gang's run: from its first pod until all of its members have ended.

A member that has succeeded counts for its gang until the run is over, whether its pod still exists
or not: `gang_history.Run` counts those whose pods are gone. If its controller makes a pod of its
name again, as for a restarted task, this one counts in its place. A run that has ended stays so
when its pods are cleaned up. It is replaced by the next one, which begins with nothing,

* when a pod joins a gang that has ended and has no pod left. While pods of the ended run are left,
  further pods continue it, as in Volcano, where succeeded pods count as ready;
* when a gang that has not ended loses its last pod, because its controller makes all of its pods
  again;
* when the group object of an ended gang is deleted.

Only the Jobs of Kubernetes and of Volcano make no successors of pods that have succeeded. Their run
continues with the next pods of the same Job, whether it has ended or not: to wait for pods in place
of the succeeded ones would be to wait for ever.

Everything here follows from the records of CLUSTER alone, so all planners agree. A planner that
starts does not see earlier deletions. It reads them from the newest verdict of the gang, and if
that is lost, from the group object (`PodGroup.last_run`); see ADR 0109.
"""

from typing import TYPE_CHECKING, Final

from services.gang_planner.core.state.gang_history import Run
from services.gang_planner.core.state.member_states import ASSUMED, FAILED, SUCCEEDED
from services.gang_planner.core.state.needs import NO_SUB_GANG
from shared.contracts.decisions import GangDecision
from shared.model.objects import LastRun, Owner, Pod
from shared.model.owners import KUBERNETES_JOB, VOLCANO_JOB, maker_of

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Gang, Member

#: Roles, sub-gangs, names and Jobs of members whose pods are gone that a run distinguishes. A gang
#: whose pods come and go for ever must not grow; further ones count only for the gang as a whole.
_DISTINGUISHED_MAX: Final = 1_000
_JOBS: Final = frozenset({KUBERNETES_JOB, VOLCANO_JOB})


def is_of_job(pod: Pod) -> bool:
    """Whether a controller made the pod that makes no successors of pods that have succeeded."""
    return maker_of(pod) in _JOBS


def is_interrupted(gang: "Gang") -> bool:
    """Whether only succeeded members are left of a Job's run, and more than one other is missing,
    as while the Job is suspended: it makes those again, and they are placed together.

    It depends only on records of CLUSTER, because a replay leaves out cycles that write nothing. A
    failed member, also a removed one, may be one that the Job does not make again: no member waits
    for it.
    """
    counts = gang.counts
    if not counts[SUCCEEDED] or gang.bound or counts[ASSUMED] or counts[FAILED]:
        return False
    if gang.completed or gang.run.has_lost_failed:
        return False
    members = gang.members.values()
    of_job = any(member.state == SUCCEEDED and is_of_job(member.pod) for member in members)
    return of_job and gang.min_member - gang.have() > 1


def note_end(gang: "Gang") -> None:
    """Note that the gang has ended, if it has, before its pods or its group change. Pods of an
    earlier run do not end this one.
    """
    if gang.completed and gang.size_known:
        gang.run.ended |= any(not member.past for member in gang.members.values())


def join(gang: "Gang", member: "Member", cluster_seq: int, *, is_new: bool) -> None:
    """Follow the run, before the member is added to its gang.

    Args:
        gang: The gang.
        member: The member.
        cluster_seq: Sequence of the record of CLUSTER.
        is_new: Its pod was not known.
    """
    run = gang.run
    has_ended = member.state in {SUCCEEDED, FAILED}
    if not has_ended and is_new and not gang.members and (run.ended or run.succeeded):
        owner = member.pod.owner
        if owner is None or owner.uid not in run.jobs:
            gang.run = run = Run(emptied_seq=run.emptied_seq, is_seen_whole=True)
    if is_new:
        _replace(run, member.pod.name)
        job = _job_of(member.pod)
        if run.names and job is not None:
            _replace_former_job(run, job)
    if not has_ended:
        run.ended, run.failed = False, 0
        is_first = (run.emptied_seq or 0) <= gang.history.decided_cluster_seq
        if is_new and is_first and is_interrupted(gang):
            run.emptied_seq = cluster_seq


def leave(gang: "Gang", member: "Member", part: str, cluster_seq: int) -> None:
    """Follow the run, before the member is removed from its gang, because its pod is gone.

    Args:
        gang: The gang.
        member: The member.
        part: The name of its sub-gang, or `NO_SUB_GANG`.
        cluster_seq: Sequence of the record of CLUSTER.
    """
    note_end(gang)
    run, pod = gang.run, member.pod
    if member.state == SUCCEEDED and not member.past:
        run.succeeded += 1
        _count(run.by_role, pod.role)
        if part != NO_SUB_GANG:
            _count(run.by_part, part)
        if len(run.names) < _DISTINGUISHED_MAX:
            run.names[pod.name] = pod.role, part, _job_of(pod)
    elif member.state == FAILED:
        run.failed += run.ended
        was_made_to_end = member.past or pod.deleting or pod.disrupted
        run.has_lost_failed |= not (run.ended or was_made_to_end)
    if pod.owner is not None and is_of_job(pod) and len(run.jobs) < _DISTINGUISHED_MAX:
        run.jobs[pod.owner.uid] = None
    if len(gang.members) > 1:
        return
    has_ended = run.ended or run.succeeded >= max(gang.min_member, 1)
    if not (has_ended or is_of_job(pod)):
        gang.run = run = Run(is_seen_whole=True)
    run.emptied_seq = cluster_seq


def begins_with(gang: "Gang", decision: GangDecision) -> bool:
    """Whether a decision of another planner is the first one since the gang had no pod left, or its
    run was interrupted. Then it is a new start, although the log says that the gang had started.
    """
    emptied_seq = gang.run.emptied_seq
    if emptied_seq is None:
        return False
    return gang.history.decided_cluster_seq < emptied_seq <= decision.cycle.cluster_seq


def end(gang: "Gang") -> None:
    """Forget the run of an ended gang whose group object was deleted: its pods count as long as
    they exist, but an object that takes its name has no run yet.
    """
    if gang.completed:
        gang.run = Run(is_seen_whole=True)
        for member in gang.members.values():
            member.past = True


def recall(gang: "Gang", last: LastRun, parts: dict[str, int]) -> None:
    """Restore the run of a gang whose pods were deleted while no planner saw it.

    Args:
        gang: The gang, with all pods that exist.
        last: What is remembered of its run.
        parts: The number of its succeeded pods that exist, by sub-gang.
    """
    counts, run = gang.counts, gang.run
    if run.is_seen_whole:
        return
    ended_pods = counts[SUCCEEDED] + counts[FAILED]
    is_over = last.ended and len(gang.members) == ended_pods
    owners = {
        member.pod.owner.uid for member in gang.members.values() if member.pod.owner is not None
    }
    if last.ended and (
        last.attempt < gang.history.attempt
        if is_over
        else not (ended_pods or owners.intersection(last.jobs))
    ):
        # These pods are of a later run.
        return
    if not gang.members:
        run.jobs.update(dict.fromkeys(last.jobs))
    run.succeeded = max(run.succeeded, last.succeeded - counts[SUCCEEDED])
    for role, count in last.succeeded_by_role:
        existing = gang.roles[role][SUCCEEDED] if role in gang.roles else 0
        _raise(run.by_role, role, count - existing)
    for part, count in last.succeeded_by_part:
        _raise(run.by_part, part, count - parts.get(part, 0))
    if is_over:
        run.ended = True
        run.failed = max(run.failed, last.failed - counts[FAILED])
        gang.queue.promise(gang.gang_id, {})


def _replace(run: Run, name: str) -> None:
    """Count the succeeded member with a pod of this name no longer: it has a successor."""
    former = run.names.pop(name, None)
    if former is None:
        return
    role, part, _ = former
    run.succeeded -= 1
    for counts, key in ((run.by_role, role), (run.by_part, part)):
        if counts.get(key):
            counts[key] -= 1


def _job_of(pod: Pod) -> Owner | None:
    return pod.owner if is_of_job(pod) else None


def _replace_former_job(run: Run, job: Owner) -> None:
    """Count the succeeded pods of a Job no longer that had this one's name: it makes them again, as
    when a JobSet restarts.
    """
    for name, (_, _, former) in list(run.names.items()):
        if (
            former is not None
            and (former.api_version, former.kind, former.name)
            == (job.api_version, job.kind, job.name)
            and former.uid != job.uid
        ):
            _replace(run, name)


def _count(counts: dict[str, int], name: str) -> None:
    if name in counts or len(counts) < _DISTINGUISHED_MAX:
        counts[name] = counts.get(name, 0) + 1


def _raise(counts: dict[str, int], name: str, least: int) -> None:
    if least > counts.get(name, 0):
        counts[name] = least
