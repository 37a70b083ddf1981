"""What a gang is waiting for, assessed once per cycle in which it changed.

`assess` sets the gang's phase, opens or resets its start, and puts it into the backlog or takes it
out. A waiting gang that is not in the backlog has a `pending_reason`. A gang in the backlog has
none: it waits for an attempt, or its bucket has been refused (`Bucket.reason`).

Before, `update_late_roles` lowers the minimum of a gang by its late roles: those whose pods are
created only after the other roles run, such as the launcher of an MPI job.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.lifecycle import promises, provisioning, use_accounting
from services.gang_planner.core.queueing.need import is_too_large, need_of
from services.gang_planner.core.state import gang_runs, sub_gangs
from services.gang_planner.core.state.gang_history import LateRoles, noted_reason
from services.gang_planner.core.state.gang_requests import class_of
from services.gang_planner.core.state.gang_settings import late_roles, placement_deadline_ms
from services.gang_planner.core.state.gang_states import GangEvent, GangState
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.in_flight import BAD_PAIR_MS
from services.gang_planner.core.state.member_states import (
    ASSUMED,
    FAILED,
    GATED,
    LEAVING,
    PLACED,
    RUNNING,
    SUCCEEDED,
    UNSUPPORTED,
    WAITING,
)
from services.gang_planner.core.state.timers import Timers
from services.gang_planner.core.transitions import AFTER_START, BEFORE_START, apply_event
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import GangPhase
from shared.model.invariants import required
from shared.model.objects import DEVICE_PREFIX, GANG_PREFIX

# The attributes of an enum class are slow in Python 3.11, and every changed gang needs these.
_NOTHING_HELD: Final = GangEvent.NOTHING_HELD
_NOTHING_HELD_IN_BACKOFF: Final = GangEvent.NOTHING_HELD_IN_BACKOFF
_MEMBERS_HELD: Final = GangEvent.MEMBERS_HELD
_QUORUM_HELD: Final = GangEvent.QUORUM_HELD
_RELEASING: Final = GangState.RELEASING
_RELEASING_STARTED: Final = GangState.RELEASING_STARTED

#: Controllers create pods without dependencies within a second or two.
_SILENCE_MS: Final = 10_000
_MPI_JOB: Final = "MPIJob"
_LAUNCHER: Final = "launcher"
_BOUND: Final = frozenset({PLACED, RUNNING})
_ENDING: Final = frozenset({SUCCEEDED, FAILED, LEAVING})
#: Phases of a group object that its gang reaches only by a start.
_STARTED: Final = frozenset({"Running", "Unknown", "Completed"})
#: The phase of a gang in each state but ReleasingStarted; None: it waits.
_PHASES: Final[Mapping[GangState, GangPhase | None]] = {
    GangState.WAITING: None,
    GangState.BACKING_OFF: None,
    GangState.STARTING: "Starting",
    GangState.REPAIRING: "Starting",
    GangState.RELEASING: "Starting",
    GangState.RUNNING: "Running",
    GangState.DEGRADED: "Unknown",
    GangState.COMPLETED: "Completed",
    GangState.DORMANT: None,
}
#: The stage of a gang in the metric, where it is not its phase.
_STAGES: Final[Mapping[GangState, str]] = {
    GangState.REPAIRING: "Repairing",
    GangState.RELEASING: "Releasing",
    GangState.RELEASING_STARTED: "Releasing",
}


class UnsupportedFields(NamedTuple):
    """What a gang's members declare and the planner does not support, each sorted."""

    #: Gang declarations that are not read, each with its remedy.
    declarations: list[str]
    #: Requests for parts of devices.
    devices: list[str]
    #: Constraints that the planner does not evaluate.
    constraints: list[str]


def assess(work: CycleContext, actions: Sequence[str], gang: Gang) -> None:
    """Update the gang's state, phase, pending reason and place in the backlog.

    Args:
        work: The cycle.
        actions: The actions that the configuration names.
        gang: The gang.
    """
    state, policies, now_ms = work.state, work.session.policies, work.now_ms
    history = gang.history
    if state.past_use.rules is not None:
        use_accounting.attribute(state.past_use, gang, state.shapes.entries)
    if history.bad or history.failed_pods or history.started:
        _forget_bad_pairs(gang, now_ms)
    if gang.evicted and history.attempt > gang.evicted.attempt and enough(gang):
        gang.evicted = None
    _report_findings(work, gang)
    gang.phase = _phase(gang)
    silent = gang.silent
    state.gangs.count_phase(gang, "" if silent else _STAGES.get(history.state, gang.phase))
    if history.started:
        gang.queue.promise(gang.gang_id, {})
        # Its next run needs one of its own.
        gang.request = None
    gang.pending_reason = None if silent else _pending_reason(work, gang)
    if gang.pending_reason is PendingReason.PLACEMENT_DEADLINE or gang.phase == "Completed":
        gang.queue.promise(gang.gang_id, {})
    _wait_outside(state.gangs, policies, gang, now_ms)
    _wait_in_backlog(work, actions, gang, silent=silent)
    if gang.promise.since_ms or gang.promise.ended:
        promises.limit_promise(work.timers, gang, work.now_ms)


def _wait_in_backlog(
    work: CycleContext, actions: Sequence[str], gang: Gang, *, silent: bool
) -> None:
    """Put the gang into the backlog if it waits for capacity; otherwise take it out."""
    state = work.state
    if gang.pending_reason is PendingReason.AWAITS_OUTCOME:
        state.backlog.count(gang, need_of(state, gang))
        return
    if gang.pending_reason is not None or silent or not gang.counts[WAITING]:
        if gang.pending_reason is None and gang.counts[UNSUPPORTED]:
            gang.pending_reason = _unsupported_reason(gang)
        state.backlog.take(gang)
        if not (silent or gang.history.started):
            provisioning.let_lapse(work.state.reference_objects, work.timers, gang, work.now_ms)
        return
    need = need_of(state, gang)
    if not need.wanted:
        # A policy recently refused all waiting members, and the gang has started without them.
        gang.pending_reason = PendingReason.BINDING_REFUSED
    elif is_too_large(state.holds, state.node_capacity, gang, need):
        gang.pending_reason = PendingReason.GANG_TOO_LARGE
    elif ("backfill" if need.best_effort else "allocate") not in actions:
        gang.pending_reason = PendingReason.ACTION_MISSING
    elif gang.request is not None or class_of(gang.queue):
        need, gang.pending_reason = provisioning.review(work, gang, need)
    if gang.pending_reason is not None:
        state.backlog.take(gang)
    else:
        state.backlog.put(gang, need, work.session.policies.order(gang))


def _wait_outside(gangs: GangTable, policies: PolicySet, gang: Gang, now_ms: int) -> None:
    """Add the gang to the admission queue if it waits only for admission; otherwise remove it."""
    admission_queue = gangs.admission_queue
    if gang.pending_reason is not PendingReason.NOT_ADMITTED:
        if admission_queue.buckets:
            admission_queue.take(gang)
        return
    group = required(gang.group, gang.full_name, "waits to be admitted and has no group object")
    due_ms = policies.due_ms(gang)
    signature: tuple[object, ...] = (
        gang.queue.name,
        gang.namespace,
        gang.priority,
        group.min_resources,
        group.min_member,
        group.priority_class,
        0 < due_ms <= now_ms,
    )
    if gang.account is not None:
        signature = (*signature, gang.account.key)
    admission_queue.put(gang, signature, policies.order(gang))


def starts(gang: Gang) -> bool:
    """Whether its quorum is placed."""
    if gang.history.attempt and gang.lacks_object:
        # Its object was deleted while it was bound: its minimum is unknown now.
        return False
    return gang.quorum_placed and sub_gangs.all_placed(gang)


def enough(gang: Gang) -> bool:
    """Whether the gang holds enough members for all its minima: total, by role and by sub-group."""
    return (
        gang.have() >= gang.min_member
        and all(gang.have(role) >= count for role, count in gang.role_minima)
        and sub_gangs.enough(gang)
    )


def growing(gang: Gang) -> bool:
    """Whether a started gang is below its minima only because these were raised: it has lost no
    member that it needed before.
    """
    if gang.phase != "Unknown" or gang.minima_reached is None:
        return False
    quorum, role_minima = gang.minima_reached
    return gang.have() >= quorum and all(gang.have(role) >= count for role, count in role_minima)


def _forget_bad_pairs(gang: Gang, now_ms: int) -> None:
    history = gang.history
    if history.bad:
        history.bad = _still_bad(history.bad, now_ms)
    if history.failed_pods:
        history.failed_pods = _still_bad(history.failed_pods, now_ms)
    if history.started and not gang.counts[WAITING] and not gang.counts[ASSUMED]:
        history.failures = 0


def _still_bad(pairs: dict[tuple[str, str], int], now_ms: int) -> dict[tuple[str, str], int]:
    return {pair: until for pair, until in pairs.items() if now_ms < until <= now_ms + BAD_PAIR_MS}


def _report_findings(work: CycleContext, gang: Gang) -> None:
    """Report the events that the gang's members imply: first a start or the loss of all members."""
    history = gang.history
    # Succeeded members whose pods are gone count, but they are not there.
    placed = gang.placed() - gang.run.succeeded
    completed = gang.completed
    if not history.started:
        if placed and history.dormant:
            if not gang_runs.is_interrupted(gang):
                # The log already has its start.
                work.report(gang, GangEvent.MEMBERS_RETURNED)
        elif placed:
            is_unlogged = history.attempt == 0 and not gang.counts[ASSUMED]
            if is_unlogged and not starts(gang) and was_never_complete(gang):
                work.report(gang, GangEvent.DECISION_MISSING)
            elif is_unlogged or starts(gang):
                work.report(gang, GangEvent.QUORUM_PLACED)
    elif gang_runs.is_interrupted(gang) or not (placed or gang.counts[ASSUMED] or completed):
        work.report(gang, GangEvent.ALL_LOST)
    finding = _finding(gang, completed=completed)
    if finding is not None:
        apply_event(history, finding, gang)


def _finding(gang: Gang, *, completed: bool) -> GangEvent | None:
    """The event that its members imply now; None: none.

    It only changes the state. A gang under repair or release, and a dormant one that has not ended,
    change it by other events alone.
    """
    state = gang.history.state
    if completed:
        # Only a start is in the log: whether a gang counts as started must not depend on cycles
        # that write nothing.
        return GangEvent.ALL_ENDED if state in AFTER_START else None
    if state in BEFORE_START:
        return _held(gang)
    if state in AFTER_START:
        return _QUORUM_HELD if enough(gang) else GangEvent.QUORUM_LOST
    return None


def was_never_complete(gang: Gang) -> bool:
    """Whether Tutti bound all bound members of a gang, and its quorum, which is not placed now, was
    never placed.

    The planner found these members without a decision in its log: another scheduler bound them, or
    the log is lost. Such a gang counts as started, unless the cluster itself shows that it never
    was. Then it is completed or released like any other partly bound gang. A gang that counts as
    started by mistake may stay partly bound for ever. One that counts as partly bound by mistake
    loses its pods after the repair deadline. So in doubt it has started.

    Members that exist since the gang's first binding and are not bound never were. If the remaining
    members are fewer than the minimum, it was never placed, because controllers create a pod only
    in place of one that is gone. Both times are those of the API server, in whole seconds.

    The mark of a release on any member proves more than a start: binders write it only when the
    release is in the log.
    """
    members = gang.members.values()
    bound = [member.pod for member in members if member.state in _BOUND]
    if not bound or gang.lacks_object or not all(pod.decision_seq for pod in bound):
        return False
    if any(member.pod.released for member in members):
        return True
    if gang.group is not None and gang.group.phase in _STARTED:
        return False
    first_ms = min(pod.scheduled_ms for pod in bound)
    if not first_ms or len(members) < gang.min_member:
        # The time is unknown, or lost members have no successors yet.
        return False
    waiting = sum(not member.pod.node and member.pod.created_ms <= first_ms for member in members)
    return len(members) - waiting < gang.min_member


def _held(gang: Gang) -> GangEvent:
    if gang.have():
        return _MEMBERS_HELD
    return _NOTHING_HELD_IN_BACKOFF if gang.history.notes.backoff is not None else _NOTHING_HELD


def _phase(gang: Gang) -> GangPhase:
    """The phase for the gang's state. During a release it depends on the gang's members."""
    if gang.completed:
        return "Completed"
    state = gang.history.state
    phase: GangPhase | None
    if state is _RELEASING and not gang.have():
        phase = None
    elif state is _RELEASING_STARTED:
        phase = "Running" if enough(gang) else "Unknown"
    else:
        phase = _PHASES[state]
    if phase is None:
        return "Inqueue" if gang.admitted else "Pending"
    if phase == "Running":
        gang.minima_reached = gang.min_member, gang.role_minima
    return phase


def _pending_reason(work: CycleContext, gang: Gang) -> PendingReason | None:
    """Why the gang is not put into the backlog; None: nothing prevents it."""
    if gang.completed:
        return None
    state, notes = work.state, gang.history.notes
    if notes.release is not None:
        return noted_reason(notes.release)
    reason = _object_reason(gang) or _deadline_reason(work, gang) or _queue_reason(gang)
    if reason is None and state.preemptions.evict_whole(gang):
        return PendingReason.EVICTED
    if reason is None and not gang.admitted:
        reason = PendingReason.NOT_ADMITTED
    noted = noted_reason(notes.backoff) if notes.backoff is not None else None
    named = noted is not None and noted is not PendingReason.BACKOFF
    if reason is None and not (named and not gang.history.started):
        # After a release the gang has no pods for a while; that is not why it waits.
        reason = _member_reason(gang)
    if reason is not None or not (gang.counts[WAITING] or named):
        return reason
    if noted is not None:
        return noted
    if gang.counts[ASSUMED] and not gang.history.started and _being_proved(gang):
        return PendingReason.AWAITS_OUTCOME
    return PendingReason.PREEMPTING if state.preemptions.of(gang) is not None else None


def _being_proved(gang: Gang) -> bool:
    """Whether a pre-flighted decision of the gang has no outcome yet. If the API server refuses one
    of its bindings, none is made, and members bound in addition would leave the gang partly bound.

    The gang may have had another id when it was decided, so the members' reservations are checked.
    """
    reservations = (member.reservation for member in gang.members.values())
    acts = {reservation.act for reservation in reservations if reservation is not None}
    return any(act is not None and act.act.preflight and act.outcome is None for act in acts)


def _object_reason(gang: Gang) -> PendingReason | None:
    group = gang.group
    if group is None:
        # The API server refuses a group in a queue that takes none. The next verdict, when the
        # queue takes gangs, makes the podgroup controller try again.
        refused = _queue_reason(gang) if gang.traits.implied else None
        return refused or (PendingReason.GROUP_MISSING if gang.lacks_object else None)
    if group.errors:
        return PendingReason.INVALID_GROUP
    if group.uniform and not gang.history.started and member_difference(gang):
        return PendingReason.MEMBERS_DIFFER
    return PendingReason.GROUP_DELETING if group.deleting else None


def _deadline_reason(work: CycleContext, gang: Gang) -> PendingReason | None:
    """The reason if none of the gang's pods was placed by its placement deadline. While pods are
    evicted for it, the deadline waits.
    """
    history = gang.history
    if history.has_started or gang.have() or work.state.preemptions.of(gang) is not None:
        return None
    lasts_ms = placement_deadline_ms(gang)
    if not lasts_ms:
        return None
    due_ms = history.first_seen_ms + lasts_ms
    if work.now_ms >= due_ms:
        return PendingReason.PLACEMENT_DEADLINE
    work.timers.set(due_ms, gang)
    return None


def _queue_reason(gang: Gang) -> PendingReason | None:
    if gang.queue.queue is None:
        # A gang of which no member waits needs no queue.
        return PendingReason.QUEUE_MISSING if gang.counts[WAITING] or not gang.have() else None
    if gang.queue.fault is not None and not gang.history.started and not gang.have():
        return gang.queue.fault.reason
    if not gang.queue.open and not gang.history.started and not gang.have():
        return PendingReason.QUEUE_NOT_OPEN
    return None


def _member_reason(gang: Gang) -> PendingReason | None:
    """The reason if too few placeable members exist. A started gang accepts members singly."""
    if gang.history.started and (gang.phase != "Unknown" or gang.counts[WAITING]):
        return None
    missing = max(gang.min_member, 1) - gang.able()
    if missing > 0:
        if gang.counts[GATED] >= missing:
            return PendingReason.GATED
        if gang.counts[UNSUPPORTED] + gang.counts[GATED] >= missing:
            return _unsupported_reason(gang)
        return PendingReason.NOT_ENOUGH_PODS
    for role, count in gang.role_minima:
        if gang.able(role) < count:
            return PendingReason.NOT_ENOUGH_PODS_OF_TASK
    group = gang.group
    if group is None or not group.sub_groups or sub_gangs.enough_exist(gang):
        return None
    return PendingReason.NOT_ENOUGH_PODS_OF_SUB_GROUP


def member_difference(gang: Gang) -> str:
    """In which property the members differ from each other or from their group, with the values, if
    the group's API requires that they agree; "" if they may be scheduled together.
    """
    group = gang.group
    if group is None or not group.uniform:
        return ""
    pods = [member.pod for member in gang.members.values() if member.state not in _ENDING]
    schedulers = {pod.scheduler_name for pod in pods}
    if len(schedulers) > 1:
        return f"its pods name different schedulers: {_in_words(schedulers)}"
    if group.priority is None:
        return ""
    others = {pod.priority for pod in pods} - {group.priority}
    if others:
        return f"its priority is {group.priority}, and that of pods is {_in_words(others)}"
    if len({pod.preempts for pod in pods}) > 1:
        return "its pods have different preemption policies"
    return ""


def _in_words(values: Collection[str] | Collection[int]) -> str:
    return ", ".join(str(value) for value in sorted(values)[:5])


def unsupported_fields(gang: Gang) -> UnsupportedFields:
    """The unsupported fields of the gang's members."""
    unsupported = UnsupportedFields([], [], [])
    fields = {
        field
        for member in gang.members.values()
        if member.state == UNSUPPORTED
        for field in member.shape.shape.unsupported
    }
    for field in sorted(fields):
        if field.startswith(GANG_PREFIX):
            unsupported.declarations.append(field.removeprefix(GANG_PREFIX))
        elif field.startswith(DEVICE_PREFIX):
            unsupported.devices.append(field.removeprefix(DEVICE_PREFIX))
        else:
            unsupported.constraints.append(field)
    return unsupported


def _unsupported_reason(gang: Gang) -> PendingReason:
    """The pending reason of a gang that waits for such members: declarations before devices."""
    fields = unsupported_fields(gang)
    if fields.declarations:
        return PendingReason.UNSUPPORTED_GANG
    return PendingReason.UNSUPPORTED_DEVICE if fields.devices else PendingReason.UNSUPPORTED


def update_late_roles(timers: Timers, gang: Gang, now_ms: int) -> None:
    """Update the gang's late roles; called before each assessment.

    The gang counts a late role in its minimum and waits for it, and the role's controller waits for
    the gang. So while no pod of a late role exists, the gang starts without it. Late are the roles
    in the group's annotation `tutti.dev/late-roles`, and the launcher of an MPIJob. No other role
    is: a pod that a quota or a webhook refused is missing, and its gang waits for it. Tutti's own
    Job controller leaves tasks that depend on other tasks (`dependsOn`) out of the group
    (`shared/dialects/job_groups.py`).

    The minimum is lowered by at most the number of missing members, whatever their roles are: a
    gang never starts without a pod that exists. After the start, a late role is left out until its
    pods are placed, one by one; from then on the declared minimum applies.
    """
    group = gang.group
    if group is None:
        _leave_out(gang, {}, 0)
        return
    if gang.history.started:
        if gang.late.roles:
            late = {role: n for role, n in gang.late.roles.items() if gang.have(role) < n}
            _leave_out(gang, late, min(gang.late.excused, gang.declared - gang.have()))
        return
    named = late_roles(gang) if group.settings else {}
    if named:
        there = {member.pod.role for member in gang.members.values()}
        late = {role: n for role, n in named.items() if role not in there}
        _leave_out(gang, late, gang.declared - _existing(gang))
        return
    if gang.late.roles:
        _leave_out(gang, {}, 0)
    if gang.members and _is_mpi_job(gang):
        _wait_for_launcher(timers, gang, now_ms)


def absent_roles(gang: Gang) -> dict[str, int]:
    """The roles that may be late and of which no pod exists, with their number of pods: whether
    these were created before is unknown.
    """
    if gang.group is None:
        return {}
    there = {member.pod.role for member in gang.members.values()}
    roles = late_roles(gang)
    if _is_mpi_job(gang) and not any(_LAUNCHER in role.lower() for role in there):
        roles.setdefault(_launcher_of(gang), 1)
    return {role: count for role, count in roles.items() if role not in there}


def _wait_for_launcher(timers: Timers, gang: Gang, now_ms: int) -> None:
    """Leave the launcher out if no pod was created for a while and nothing else is missing: the MPI
    operator creates it last if the job's `launcherCreationPolicy` is WaitForWorkersReady, a field
    that the planner does not see.
    """
    missing = gang.declared - _existing(gang)
    if missing <= 0 or any(
        _LAUNCHER in member.pod.role.lower() for member in gang.members.values()
    ):
        return
    _leave_out(gang, {_launcher_of(gang): 1}, missing)
    if gang.able() >= gang.min_member and all(
        gang.able(role) >= least for role, least in gang.role_minima
    ):
        silent_from = max(member.pod.created_ms for member in gang.members.values()) + _SILENCE_MS
        if now_ms >= silent_from:
            return
        timers.set(silent_from, gang)
    _leave_out(gang, {}, 0)


def _leave_out(gang: Gang, late: dict[str, int], most: int) -> None:
    """Set the late roles, and lower the gang's minimum by their members, at most by `most`."""
    gang.late = LateRoles(late, max(0, min(sum(late.values()), most)) if late else 0)


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
