"""What a gang is waiting for, looked at once per cycle in which it changed.

`assess` sets the gang's phase, opens or resets its start, and puts it into the backlog or takes it
out. A gang that is not in the backlog and not complete has a `refused` reason, in CamelCase:

| reason | what is missing |
| --- | --- |
| GroupMissing, GroupDeleting, InvalidGroup | the object that declares it |
| QueueMissing, QueueNotOpen | its queue |
| QueueParentMissing, QueueCycle, QueueNotLeaf | a place of its queue in the tree of queues |
| NotAdmitted | the enqueue action has not admitted it |
| NotEnoughPods, NotEnoughPodsOfTask, NotEnoughPodsOfSubGroup | members that exist |
| Gated, Unsupported, UnsupportedDevice, UnsupportedGang | members that could be placed |
| ActionMissing | the configuration does not name the action that would place it |
| Backoff | its last decision failed; it is tried again at an instant |
| BindingRefused, RepairDeadline, RepairsBlocked, StartDeadline, DegradedGrace | what is bound of it
is being released, or was, and it is tried again at an instant |
| Preempting | others are being evicted for it, and room is kept on their nodes |
| Evicted | all of it is being evicted for another; it is placed whole when it has left |
| AwaitsOutcome | its members under way are being proved first, and the others count on them |
| GangTooLarge | its quorum does not fit into one message |

A gang in the backlog waits for an attempt, or its bucket has been refused (NotEnoughResources,
NotEnoughQuota).
"""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.configuring.policy_set import PolicySet
from services.gang_planner.core.configuring.settings import reserve_ms
from services.gang_planner.core.decisions.attaching import choice_bytes
from services.gang_planner.core.decisions.inflight import BAD_PAIR_MS
from services.gang_planner.core.placement import sub_gangs
from services.gang_planner.core.placement.task_topology import tasks_of
from services.gang_planner.core.queueing import min_resources
from services.gang_planner.core.queueing.backlog import RESERVED, Need, Structure, Wanted
from services.gang_planner.core.tables.gangs import Gang
from services.gang_planner.core.tables.members import (
    ASSUMED,
    GATED,
    PLACED,
    RUNNING,
    UNSUPPORTED,
    WAITING,
    Member,
    task_priority,
)
from services.gang_planner.core.telling import unsupported
from services.gang_planner.state import State
from shared.contracts.subjects import MESSAGE_BYTES_MAX
from shared.contracts.verdicts import GangPhase

#: What a decision may take of a message: the rest is for its other fields and for the encoding.
DECISION_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 32 * 1024
#: Field names, lengths and markers of one binding in msgpack.
_BINDING_OVERHEAD_BYTES: Final = 48
#: Names in Kubernetes have at most this many bytes.
_NAME_BYTES_MAX: Final = 253
#: Fewer members without claims fit into a message whatever they are called.
_ALWAYS_FIT: Final = DECISION_BYTES_MAX // (_BINDING_OVERHEAD_BYTES + 3 * _NAME_BYTES_MAX)


#: Others are evicted for it.
PREEMPTING: Final = "Preempting"
#: It is evicted, whole.
EVICTED: Final = "Evicted"


def binding_bytes(state: State, member: Member) -> int:
    """Upper bound of what one member takes in a decision."""
    pod, node_bytes = member.pod, state.nodes.name_bytes_max
    named = len(pod.uid) + len(pod.namespace) + len(pod.name) + node_bytes
    claims = choice_bytes(state.ground, member, node_bytes) if member.shape.attached else 0
    return _BINDING_OVERHEAD_BYTES + named + claims


def assess(
    state: State, policies: PolicySet, actions: Sequence[str], gang: Gang, now_ms: int
) -> bool:
    """Bring phase, refusal and backlog in line with the gang's counts. True: its quorum has just
    been reached.
    """
    history = gang.history
    if history.bad or history.failed_pods or history.started:
        _forget_bad_pairs(gang, now_ms)
    if gang.evicted[0] and history.attempt > gang.evicted[1] and enough(gang):
        gang.evicted = "", 0, ()
    just_started = _start_or_reset(gang)
    _complete(gang)
    gang.phase = _phase(gang)
    silent = gang.silent
    state.gangs.count_phase(gang, "" if silent else _stage(gang))
    if history.started:
        gang.queue.promise(gang.gang_id, {})
    gang.refused = "" if silent else _refusal(state, gang)
    _wait_outside(state, policies, gang, now_ms)
    if gang.refused or silent or not gang.counts[WAITING]:
        if not gang.refused and gang.counts[UNSUPPORTED]:
            gang.refused = unsupported.reason(gang)
        state.backlog.take(gang)
        return just_started
    need = need_of(state, gang)
    if not need.wanted:
        # A policy refused lately all that wait, and the gang has started without them.
        gang.refused = "BindingRefused"
    elif _too_large(state, gang, need):
        gang.refused = "GangTooLarge"
    elif ("backfill" if need.best_effort else "allocate") not in actions:
        gang.refused = "ActionMissing"
    if gang.refused:
        state.backlog.take(gang)
    else:
        state.backlog.put(gang, need, policies.order(gang))
    return just_started


def _wait_outside(state: State, policies: PolicySet, gang: Gang, now_ms: int) -> None:
    """Bring the lobby in line: who waits for nothing but to be admitted is in it."""
    lobby = state.gangs.lobby
    if gang.refused != "NotAdmitted":
        lobby.take(gang)
        return
    group = gang.group
    assert group is not None, f"{gang.full_name} has no object and waits to be admitted"
    due_ms = policies.due_ms(gang)
    signature = (
        gang.queue.name,
        gang.namespace,
        gang.priority,
        group.min_resources,
        group.min_member,
        group.priority_class,
        0 < due_ms <= now_ms,
    )
    lobby.put(gang, signature, policies.order(gang))


def starts(gang: Gang) -> bool:
    """Whether its quorum is placed."""
    if gang.key[0] == "name" and gang.group is None and gang.history.attempt:
        # Its object was deleted while it was bound: how many it needs nobody can say now.
        return False
    return gang.quorum_placed and sub_gangs.all_placed(gang)


def enough(gang: Gang) -> bool:
    """Whether every minimum holds by members that count."""
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


def _start_or_reset(gang: Gang) -> bool:
    history = gang.history
    placed = gang.placed()
    if not history.started:
        if not placed:
            return False
        if history.dormant:
            # Its nodes are back, and its members with them. The log says no less.
            history.started = True
            return False
        # A gang that runs, or did in part, and that nobody here ever decided was started by another
        # scheduler, or long ago.
        found_placed = history.attempt == 0 and not gang.counts[ASSUMED]
        if found_placed or starts(gang):
            history.started = True
            history.failures = 0
            history.known_as = gang.gang_id
            return True
    elif not placed and not gang.counts[ASSUMED]:
        # Nothing of it is left: what comes now under its name is a fresh gang, to be placed whole.
        history.started = False
        # What a release of ours has left comes back with nobody.
        history.reset_at = -1 if history.releasing else history.attempt
    return False


def _complete(gang: Gang) -> None:
    # It stays so when its members are cleaned up.
    if gang.members:
        gang.completed = gang.all_ended


def _stage(gang: Gang) -> str:
    """What operators count it as: its phase, or what is done to it meanwhile."""
    notes = gang.history.notes
    if not notes:
        return gang.phase
    if "release" in notes:
        return "Releasing"
    return "Repairing" if "repair" in notes else gang.phase


def _phase(gang: Gang) -> GangPhase:
    if gang.completed:
        return "Completed"
    if gang.history.started:
        if not enough(gang):
            return "Unknown"
        gang.minima_reached = gang.min_member, gang.role_minima
        return "Running"
    if gang.have():
        return "Starting"
    return "Inqueue" if gang.admitted else "Pending"


def _refusal(state: State, gang: Gang) -> str:
    if gang.completed:
        return ""
    notes = gang.history.notes
    if "release" in notes:
        return notes["release"].reason
    found = _object_refusal(gang) or _queue_refusal(gang)
    if not found and state.preemptions.victims and evicted_whole(state, gang):
        return EVICTED
    if not found and not gang.admitted:
        found = "NotAdmitted"
    backoff = notes.get("backoff")
    named = backoff is not None and backoff.reason != "DecisionFailed"
    if not found and not (named and not gang.history.started):
        # Of a gang that was released no pods exist for a while, and that is not why it waits.
        found = _member_refusal(gang)
    if found or not (gang.counts[WAITING] or named):
        return found
    if backoff is not None:
        return backoff.reason if named else "Backoff"
    if gang.counts[ASSUMED] and not gang.history.started and _being_proved(gang):
        return "AwaitsOutcome"
    return PREEMPTING if state.preemptions.of(gang) is not None else ""


def evicted_whole(state: State, gang: Gang) -> bool:
    """Whether evictions of ours that are under way leave the gang less than its quorum: what comes
    in for evicted members is placed whole with the others, when all have left.
    """
    victims = state.preemptions.victims
    leaving = going = 0
    for uid in victims.keys() & gang.members.keys():
        member = gang.members[uid]
        leaving += member.slot >= 0
        going += member.state in {PLACED, RUNNING}
    return leaving > 0 and gang.have() - going < max(gang.min_member, 1)


def _being_proved(gang: Gang) -> bool:
    """Whether a decision whose bindings are proved first has no outcome yet: if one of them is
    refused none is bound, and who was bound counting on them would be bound in part.

    The gang may have had another id when that was decided: its members say by what they are held.
    """
    rooms = (member.room for member in gang.members.values())
    acts = {room.act for room in rooms if room is not None}
    return any(one is not None and one.act.preflight and one.outcome is None for one in acts)


def _object_refusal(gang: Gang) -> str:
    group = gang.group
    if group is None:
        return "GroupMissing" if gang.key[0] == "name" else ""
    if group.errors:
        return "InvalidGroup"
    return "GroupDeleting" if group.deleting else ""


def _queue_refusal(gang: Gang) -> str:
    if gang.queue.queue is None:
        return "QueueMissing"
    if gang.queue.fault is not None and not gang.history.started and not gang.have():
        return gang.queue.fault.reason
    if not gang.queue.open and not gang.history.started and not gang.have():
        return "QueueNotOpen"
    return ""


def _member_refusal(gang: Gang) -> str:
    """Whether enough members exist that could be placed; a started gang takes each as it comes."""
    if gang.history.started and (gang.phase != "Unknown" or gang.counts[WAITING]):
        return ""
    missing = max(gang.min_member, 1) - gang.able()
    if missing > 0:
        if gang.counts[GATED] >= missing:
            return "Gated"
        if gang.counts[UNSUPPORTED] + gang.counts[GATED] >= missing:
            return unsupported.reason(gang)
        return "NotEnoughPods"
    for role, count in gang.role_minima:
        if gang.able(role) < count:
            return "NotEnoughPodsOfTask"
    group = gang.group
    if group is None or not group.sub_groups or sub_gangs.enough_exist(gang):
        return ""
    return "NotEnoughPodsOfSubGroup"


def _too_large(state: State, gang: Gang, need: Need) -> bool:
    """Whether one decision cannot hold the gang's quorum."""
    needed = _quorum(gang)
    if needed < _ALWAYS_FIT and not need.attached:
        return False
    sizes = sorted(
        binding_bytes(state, member)
        for members in gang.waiting.values()
        for member in members.values()
    )
    return sum(sizes[:needed]) > DECISION_BYTES_MAX


def _quorum(gang: Gang) -> int:
    """Members that must be placed together; 0 when each is placed as it comes."""
    if gang.history.started:
        return 0
    return max(0, gang.min_member - gang.have())


def need_of(state: State, gang: Gang) -> Need:
    """What its waiting members ask of the cluster."""
    started = gang.history.started
    quorum = _quorum(gang)
    minima = () if started else _minima(gang)
    if minima:
        quorum = max(quorum, sum(count for _, count in minima))
    wanted = _wanted(gang, quorum, minima)
    structure = _structure(state, gang)
    avoid, ranks = _avoided(gang), _ranks(gang, wanted)
    lacking = _lacking(gang, structure) if started else 0
    reserved = 0
    if (units := _reserved_units(state, gang, wanted, quorum)) != ():
        reserved = sum(count for _, _, count in units)
        wanted = (*units, *wanted)
        ranks = (min(ranks),) * len(units) + ranks if ranks else ()
        minima = ((RESERVED, reserved), *minima)
        quorum += reserved
    queue = gang.queue.name
    # What makes a `Need.signature`: equal gangs share what is known of the first that waits.
    signature = queue, quorum, minima, wanted, avoid, structure, ranks, lacking
    bucket = state.backlog.buckets.get(signature)
    if bucket is not None:
        return bucket.need
    shapes = [state.shapes.entries[shape_id] for _, shape_id, _ in wanted]
    return Need(
        queue=queue,
        quorum=quorum,
        minima=minima,
        wanted=wanted,
        best_effort=all(one.best_effort for one in shapes),
        attached=any(one.attached for one in shapes),
        avoid=avoid,
        structure=structure,
        ranks=ranks,
        lacking=lacking,
        reserved=reserved,
    )


def _reserved_units(
    state: State, gang: Gang, wanted: tuple[Wanted, ...], quorum: int
) -> tuple[Wanted, ...]:
    """What its `minResources` ask for beyond its quorum, while nothing of it is placed."""
    group = gang.group
    if group is None or not group.min_resources or not quorum or not wanted:
        return ()
    if gang.have() or not reserve_ms(gang, state.defaults):
        return ()
    return min_resources.units(state.shapes, group.min_resources, wanted, quorum)


def _minima(gang: Gang) -> tuple[tuple[str, int], ...]:
    """How many more of each role must be placed with the quorum."""
    role_minima = gang.role_minima
    if not role_minima:
        return ()
    lacking = [(role, count - gang.have(role)) for role, count in role_minima]
    return tuple(one for one in lacking if one[1] > 0)


def _lacking(gang: Gang, structure: Structure | None) -> int:
    """How many members a started gang is short of its minima. One that was evicted for others does
    not count: it would take their room back.
    """
    if gang.evicted[0]:
        return 0
    of_roles = sum(max(0, count - gang.have(role)) for role, count in gang.role_minima)
    lacking = max(gang.min_member - gang.have(), of_roles, 0)
    if structure is not None and (lacking or structure.sub_minima):
        lacking = _in_whole_parts(structure, lacking)
    return lacking


def _in_whole_parts(structure: Structure, lacking: int) -> int:
    """How many members a gang lacks that is short of `lacking` and of sub-gangs: of each of these
    its quorum is placed, or nothing is. Sub-gangs beyond what it is short of are not lacking.
    """
    missing = dict(structure.sub_minima)
    needed = 0
    further: list[int] = []
    for part in sorted(structure.sub_gangs, key=lambda one: one.quorum, reverse=True):
        if missing.get(part.policy, 0) > 0:
            missing[part.policy] -= 1
            needed += part.quorum
        else:
            further.append(part.quorum)
    for quorum in further:
        if needed >= lacking:
            break
        needed += quorum
    return max(lacking, needed)


def _ranks(gang: Gang, wanted: tuple[Wanted, ...]) -> tuple[int, ...]:
    """Priorities of the gang's groups, if they differ. One member stands for its group: within a
    role they hardly ever do, and then only the order of members follows them.
    """
    if len(wanted) < 2 or not gang.ranked:
        return ()
    waiting = gang.waiting
    found = [
        task_priority(next(iter(waiting[role, shape_id].values())).pod)
        for role, shape_id, _ in wanted
    ]
    return tuple(found) if len(set(found)) > 1 else ()


def _structure(state: State, gang: Gang) -> Structure | None:
    """How close together its members are to be; None for most gangs."""
    group = gang.group
    tasks = tasks_of(group) if state.reads_tasks else None
    if group is None or (group.topology is None and not group.sub_groups and tasks is None):
        return None
    names = state.nodes.names
    parts, minima = sub_gangs.needs(gang, names)
    if group.topology is None:
        return Structure(sub_gangs=parts, sub_minima=minima, tasks=tasks)
    near = sub_gangs.nodes_of(gang.members.values(), names)
    home = "" if near else gang.history.home
    return Structure(group.topology, near, home, parts, minima, tasks)


def _wanted(gang: Gang, quorum: int, minima: tuple[tuple[str, int], ...]) -> tuple[Wanted, ...]:
    """Members to place. Those that a policy refused lately are left out where the others suffice:
    an extra that is always refused must not keep a gang from starting. A gang that has started
    takes each as it comes, and these a minute later.
    """
    everybody = [
        (role, shape_id, len(members)) for (role, shape_id), members in gang.waiting.items()
    ]
    everybody.sort()
    refused = refused_members(gang) if gang.history.bad else ()
    if not refused or (gang.group is not None and gang.group.sub_groups):
        return tuple(everybody)
    others = [
        (role, shape_id, count - len(refused & gang.waiting[role, shape_id].keys()))
        for role, shape_id, count in everybody
    ]
    others = [one for one in others if one[2]]
    if gang.history.started:
        return tuple(others)
    suffice = sum(count for _, _, count in others) >= max(quorum, 1) and all(
        sum(count for of_role, _, count in others if of_role == role) >= least
        for role, least in minima
    )
    return tuple(others if suffice else everybody)


def refused_members(gang: Gang) -> set[str]:
    """Pods that a policy refused lately, whatever the node."""
    return {uid for uid, node in gang.history.bad if not node and uid in gang.members}


def _avoided(gang: Gang) -> tuple[str, ...]:
    """Nodes that failed one of its members lately, or whose kubelet refused one."""
    history = gang.history
    if not history.bad and not history.failed_pods:
        return ()
    pairs = [*history.bad] if history.started else [*history.bad, *history.failed_pods]
    return tuple(sorted({node for uid, node in pairs if node and uid in gang.members}))
