"""The need of a gang's waiting members, and whether one decision can hold it: a quorum must fit
into one message.
"""

from services.gang_planner.core.queueing import min_resources, namespace_quota
from services.gang_planner.core.state import sub_gangs
from services.gang_planner.core.state.claim_choices import choice_bytes
from services.gang_planner.core.state.decision_sizes import (
    ENTRIES_BYTES_MAX,
    ENTRY_OVERHEAD_BYTES,
)
from services.gang_planner.core.state.gang_history import ANY_NODE
from services.gang_planner.core.state.gang_settings import reserve_ms
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.member_states import task_priority
from services.gang_planner.core.state.needs import (
    ALWAYS_FIT,
    RESERVED,
    Need,
    Structure,
    Wanted,
    tasks_of,
)
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queue_rules import USUAL
from services.gang_planner.core.state.run_limits import limit_ms


def unplaced_quorum(gang: Gang) -> int:
    """Number of members that must be placed together; 0 once the gang has started."""
    if gang.history.started:
        return 0
    return max(0, gang.min_member - gang.have())


def need_of(state: State, gang: Gang) -> Need:
    """The need of the gang's waiting members; the known `Need` if an equal gang already waits."""
    started = gang.history.started
    quorum = unplaced_quorum(gang)
    minima = () if started else _minima(gang)
    if minima:
        quorum = max(quorum, sum(count for _, count in minima))
    wanted = _wanted(gang, quorum, minima)
    structure = _structure(state.nodes.names, gang, reads_tasks=state.reads_tasks)
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
    # Equals `Need.signature`: gangs with equal needs share a bucket.
    one_by_one = not quorum and gang.one_by_one
    signature: tuple[object, ...] = (
        *(queue, quorum, minima, wanted, avoid, structure, ranks, lacking, one_by_one),
    )
    foresight = None
    if state.foresees:
        group, rules = gang.group, gang.queue.run_rules
        limited = (group is not None and group.run_limit_s) or gang.traits.limited
        # Most gangs have no limit.
        lasts_ms = limit_ms(gang) if limited or rules is not USUAL else 0
        own = gang.gang_id if gang.history.notes.reservation is not None else ""
        foresight = lasts_ms, gang.priority, own
        signature = (*signature, foresight)
    user = None
    if gang.account is not None:
        user = gang.account.key[1]
        signature = (*signature, ("user", user))
    bucket = state.backlog.buckets.get(signature)
    if bucket is not None:
        return bucket.need
    shapes = [state.shapes.entries[shape_id] for _, shape_id, _ in wanted]
    return Need(
        queue=queue,
        quorum=quorum,
        minima=minima,
        wanted=wanted,
        best_effort=all(shape.best_effort for shape in shapes),
        attached=any(shape.attached for shape in shapes),
        avoid=avoid,
        structure=structure,
        ranks=ranks,
        lacking=lacking,
        one_by_one=one_by_one,
        reserved=reserved,
        foresight=foresight,
        user=user,
    )


def _reserved_units(
    state: State, gang: Gang, wanted: tuple[Wanted, ...], quorum: int
) -> tuple[Wanted, ...]:
    """Units of `minResources` beyond the quorum, while no member is placed."""
    group = gang.group
    if group is None or not group.min_resources or not quorum or not wanted:
        return ()
    if gang.have() or not reserve_ms(gang, state.defaults):
        return ()
    # Most groups declare what their quorum requests, and need no look at quotas.
    minimum = min_resources.declared(state.shapes, group.min_resources)
    if not min_resources.units(state.shapes, minimum, wanted, quorum):
        return ()
    minimum = namespace_quota.within_limits(state, gang, minimum)
    return min_resources.units(state.shapes, minimum, wanted, quorum)


def _minima(gang: Gang) -> tuple[tuple[str, int], ...]:
    """(role, number of members that must still be placed with the quorum)."""
    role_minima = gang.role_minima
    if not role_minima:
        return ()
    lacking = [(role, count - gang.have(role)) for role, count in role_minima]
    return tuple(minimum for minimum in lacking if minimum[1] > 0)


def _lacking(gang: Gang, structure: Structure | None) -> int:
    """How many pods a started gang lacks of its minima. 0 for a gang with evicted members:
    otherwise it would take the capacity back from the preemptor.

    Succeeded members whose pods are gone are not there: if the gang has waiting pods, its
    controller goes on with these in their place.
    """
    if gang.evicted is not None:
        return 0
    run = gang.run
    of_roles = sum(
        max(0, count - gang.have(role) + run.by_role.get(role, 0))
        for role, count in gang.role_minima
    )
    lacking = max(gang.min_member - gang.have() + run.succeeded, of_roles, 0)
    if structure is not None and structure.sets:
        return max(lacking, structure.sets[0].quorum)
    if structure is not None and (lacking or structure.sub_minima):
        lacking = _in_whole_parts(structure, lacking)
    return lacking


def _in_whole_parts(structure: Structure, lacking: int) -> int:
    """Round the missing members up to whole sub-gangs, because a sub-gang's quorum is placed as a
    whole or not at all. Sub-gangs beyond the missing number do not count.
    """
    missing = dict(structure.sub_minima)
    needed = 0
    further: list[int] = []
    for part in sorted(structure.sub_gangs, key=lambda part: part.quorum, reverse=True):
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
    """Task priorities of the entries of `wanted`, if they differ. One member of each entry is read:
    priorities rarely differ within a role, and then only the order of members follows them.
    """
    if len(wanted) < 2 or not gang.traits.ranked:
        return ()
    waiting = gang.waiting
    priorities = [
        task_priority(next(iter(waiting[role, shape_id].values())).pod)
        for role, shape_id, _ in wanted
    ]
    return tuple(priorities) if len(set(priorities)) > 1 else ()


def _structure(names: list[str], gang: Gang, *, reads_tasks: bool) -> Structure | None:
    """The gang's topology, sub-gangs and role annotations; None for most gangs."""
    group = gang.group
    tasks = tasks_of(group) if reads_tasks else None
    if group is None or not (group.topology or group.nodes or group.sub_groups or tasks):
        return None
    parts, minima = sub_gangs.needs(gang, names)
    sets = sub_gangs.set_needs(gang, parts, names)
    near: tuple[str, ...] = ()
    home = None
    if group.topology is not None:
        near = sub_gangs.nodes_of(gang.members.values(), names)
        home = None if near else gang.history.home
    return Structure(group.topology, group.nodes, near, home, parts, minima, sets, tasks)


def _wanted(gang: Gang, quorum: int, minima: tuple[tuple[str, int], ...]) -> tuple[Wanted, ...]:
    """Members to place. Members that a policy refused recently are left out if the rest suffices:
    an extra member that is always refused must not prevent a start. A started gang always leaves
    them out; they are tried again a minute later.
    """
    every_member = [
        (role, shape_id, len(members)) for (role, shape_id), members in gang.waiting.items()
    ]
    every_member.sort()
    refused = refused_members(gang) if gang.history.bad else ()
    if not refused or (gang.group is not None and gang.group.sub_groups):
        return tuple(every_member)
    others = [
        (role, shape_id, count - len(refused & gang.waiting[role, shape_id].keys()))
        for role, shape_id, count in every_member
    ]
    others = [entry for entry in others if entry[2]]
    if gang.history.started:
        return tuple(others)
    suffice = sum(count for _, _, count in others) >= max(quorum, 1) and all(
        sum(count for of_role, _, count in others if of_role == role) >= least
        for role, least in minima
    )
    return tuple(others if suffice else every_member)


def refused_members(gang: Gang) -> set[str]:
    """UIDs of the gang's pods that a policy refused recently, whatever the node."""
    return {uid for uid, node in gang.history.bad if node == ANY_NODE and uid in gang.members}


def _avoided(gang: Gang) -> tuple[str, ...]:
    """Nodes on which a member recently failed to bind, or whose kubelet refused one."""
    history = gang.history
    if not history.bad and not history.failed_pods:
        return ()
    pairs = [*history.bad] if history.started else [*history.bad, *history.failed_pods]
    return tuple(sorted({node for uid, node in pairs if node != ANY_NODE and uid in gang.members}))


def is_too_large(holds: HoldTable, node_capacity: NodeCapacity, gang: Gang, need: Need) -> bool:
    """Whether the gang's quorum exceeds one decision, whichever of its members are chosen."""
    if need.quorum <= ALWAYS_FIT and not need.attached:
        return False
    needed = need.quorum - need.reserved
    sizes = sorted(_binding_sizes(holds, node_capacity, gang))[-needed:] if needed else ()
    return sum(sizes) > ENTRIES_BYTES_MAX


def members_max(holds: HoldTable, node_capacity: NodeCapacity, gang: Gang, need: Need) -> int:
    """How many of the gang's members one decision may place and still fit into a message."""
    if not need.may_exceed_message or need.quorum >= need.members:
        return need.members
    longest = max(_binding_sizes(holds, node_capacity, gang))
    return max(need.quorum, min(need.members, ENTRIES_BYTES_MAX // longest))


def _binding_sizes(holds: HoldTable, node_capacity: NodeCapacity, gang: Gang) -> list[int]:
    """Upper bound per waiting member of its bytes in a decision."""
    node_bytes = node_capacity.nodes.name_bytes_max
    waiting = [member for members in gang.waiting.values() for member in members.values()]
    # A member may fill a hold, whose name is then in the decision, too.
    hold_bytes = max((len(hold.uid) for hold in holds.of(gang)), default=0)
    each = ENTRY_OVERHEAD_BYTES + node_bytes + hold_bytes
    sizes = [
        each + len(member.pod.uid) + len(member.pod.namespace) + len(member.pod.name)
        for member in waiting
    ]
    if not any(member.shape.attached for member in waiting):
        return sizes
    claims = choice_bytes(node_capacity, waiting, node_bytes)
    return [size + more for size, more in zip(sizes, claims, strict=True)]
