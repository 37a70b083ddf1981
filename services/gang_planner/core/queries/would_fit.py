"""Whether a gang would fit now, or on empty nodes. Computed on copies of the planner's state."""

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.placement import gang_placement
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.gang_placement import Refusal
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.policies.resourcequota import (
    POD_COUNTS,
    REQUESTS,
    counted_as,
    matches,
)
from services.gang_planner.core.queries.displacement import displaced
from services.gang_planner.core.queueing.need import need_of
from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.claim_choices import unsupported_device
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.inter_pod import profiles
from services.gang_planner.core.state.member_states import UNSUPPORTED, WAITING
from services.gang_planner.core.state.needs import RESERVED, Explanation, Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import DEFAULT, QueueEntry, Shortage
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.sub_gangs import without_missing
from services.gang_planner.core.state.titles import title_of
from services.gang_planner.core.verdicts.member_messages import unsupported_words
from services.gang_planner.core.verdicts.pending_reason import Explainer
from services.gang_planner.core.verdicts.quota_messages import queue_refusal, shortage_in_words
from shared.contracts import reasons
from shared.contracts.fit_rules import FIT_SHAPES_MAX, broken_rule, too_many_shapes
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.pod_reasons import NewNodes
from shared.contracts.questions import AskedQueue, EarlierGang, FitAnswer, FitRequest
from shared.contracts.reasons import GroupMissing
from shared.model.bounded_text import shortened
from shared.model.gang_keys import has_objects, key_of_group
from shared.model.objects import Pod, PodGroup, Queue, Resources

if TYPE_CHECKING:
    from services.gang_planner.core.framework.statement import Allocation

_LIMITS: Final = "limits."
#: Maximum number of nodes in an answer.
_NODES_MAX: Final = 100
#: Likewise of displaced gangs, so that the answer fits into a message.
_DISPLACED_MAX: Final = 1_000
#: A message to users may repeat many names of the question.
_SENTENCE_BYTES_MAX: Final = 4_096
#: Admission refuses gangs for these reasons; for others of their queue they wait.
_NOT_ADMITTED: Final = frozenset({PendingReason.QUEUE_MISSING, PendingReason.QUEUE_NOT_OPEN})


class Asker:
    """Answers fit queries for one cluster state and one configuration."""

    def __init__(
        self, state: State, policies: PolicySet, actions: Iterable[str], now_ms: int
    ) -> None:
        self._state = state
        self._policies = policies
        self._actions = tuple(actions)
        self._now_ms = now_ms

    def would_fit(self, question: FitRequest) -> FitAnswer:
        """Try the gang on the free capacity, then on the same nodes without pods. A question that
        breaks one of the `fit_rules` gets an answer that names it.
        """
        broken = broken_rule(question)
        if broken:
            return _bounded(_invalid(broken))
        self._state.extended_resources.count_for(
            [*question.pods, *(pods.pod for each in question.earlier for pods in each.pods)]
        )
        with self._state.resources.provisional():
            answer = self._answer(question)
        if answer.fits and question.complete:
            missing = _missing_in_words(self._state.gangs, question.group, question.pods)
            if missing:
                answer = FitAnswer(fits=False, ever=True, sentence=missing)
        return _bounded(answer)

    def _answer(self, question: FitRequest) -> FitAnswer:
        state = self._state
        if question.complete and _lacks_namespace(state.reference_objects, question):
            return _refusal(f"namespace {question.group.namespace} does not exist")
        if not question.pods:
            return _by_minimum(state, question.group)
        asked = self._asked(question)
        shaped = state.extended_resources.shaped
        gangs = [self._joined(group, tuple(map(shaped, pods))) for group, pods in asked if pods]
        # The query's shapes are interned in a copy, so that the planner's table does not grow.
        shown = copy.copy(state)
        shown.shapes, shown.node_capacity = state.shapes.copy(), state.node_capacity.copy()
        entries = profiles.asked(
            state, shown.shapes, shown.node_capacity, [pod for _, pods in gangs for pod in pods]
        )
        if entries is None:
            return _invalid(
                "pods: their affinity terms and spread constraints select among too many pods; a "
                "selector with In is compared with those pods only that have the label"
            )
        shapes = len({entry.rated for entry in entries})
        if shapes > FIT_SHAPES_MAX:
            # With the waiting pods of its group.
            return _invalid(too_many_shapes(shapes))
        queues = _asked_queues(state, question.queues)
        trial = _Trial(shown, _session(shown, self._policies), keep_used=True)
        new = {pod.uid for _, pods in asked for pod in pods}
        placed: list[Gang] = []
        for group, pods in gangs[:-1]:
            own, entries = entries[: len(pods)], entries[len(pods) :]
            earlier = _gang(shown, group, pods, own, queues)
            waits = self._refused(earlier, ()) or _used_up(state, earlier, new, (), placed)
            if not waits and trial.holds(need_of(shown, earlier), earlier):
                placed.append(earlier)
        group, pods = gangs[-1]
        gang = _gang(shown, group, pods, entries, queues)
        refused = self._refused(gang, question.limits)
        if refused is not None:
            return refused
        need = need_of(shown, gang)
        if trial.holds(need, gang):
            used = _used_up(state, gang, new, question.limits, placed)
            where = () if used else trial.where()
            return FitAnswer(fits=not used, ever=True, sentence=used, where=where)
        session = trial.session.on_empty_nodes()
        empty = copy.copy(shown)
        empty.node_capacity = session.node_capacity
        ever = _Trial(empty, session, keep_used=False)
        if not ever.holds(need, gang):
            return ever.refusal(need, gang)
        sentence = f"{_placed_before(placed)}{trial.explained(need, gang).sentence}"
        answer = FitAnswer(fits=False, ever=True, sentence=sentence)
        return self._displacing(answer, trial, gang, need)

    def _asked(self, question: FitRequest) -> list[tuple[PodGroup, tuple[Pod, ...]]]:
        """The gangs of the question that would be placed, with their pods, the last one at the
        end.
        """
        asked = [*map(self._of_earlier, question.earlier)]
        if question.complete:
            asked = [gang for gang in asked if not _missing_in_words(self._state.gangs, *gang)]
        return [*asked, (question.group, question.pods)]

    def _of_earlier(self, earlier: EarlierGang) -> tuple[PodGroup, tuple[Pod, ...]]:
        pods = [
            msgspec.structs.replace(pods.pod, uid=f"{pods.pod.uid}/{number}")
            for pods in earlier.pods
            for number in range(pods.count)
        ]
        return earlier.group, tuple(pods)

    def _refused(self, gang: Gang, limits: Resources) -> FitAnswer | None:
        """The answer for a gang that no placement could start; None: one may."""
        if gang.counts[UNSUPPORTED]:
            return FitAnswer(fits=False, ever=False, sentence=unsupported_words(gang))
        least = _least(gang.members.values(), gang.min_member, limits)
        quota = _exceeded(self._state, gang.group, least)
        if quota:
            return FitAnswer(fits=False, ever=False, sentence=quota)
        refusal = queue_refusal(gang.queue)
        if refusal is not None:
            words, refused = reasons.in_words(refusal), refusal.reason in _NOT_ADMITTED
            return FitAnswer(fits=False, ever=True, sentence=words, refused=refused)
        return None

    def _joined(self, group: PodGroup, pods: tuple[Pod, ...]) -> tuple[PodGroup, tuple[Pod, ...]]:
        """Add the waiting pods of the existing group, or tree, that the query's pods name."""
        table = self._state.gangs
        known = table.gangs.get(table.trees.gang_of(key_of_group(group)))
        named = not group.dialect and all(
            (pod.group_scope, pod.group_name) == (group.scope, group.name) for pod in pods
        )
        if not named or known is None or known.group is None or known.history.started:
            return group, pods
        asked = {pod.uid for pod in pods}
        waiting = [
            member.pod
            for members in known.waiting.values()
            for uid, member in members.items()
            if uid not in asked
        ]
        return known.group, (*pods, *waiting)

    def _displacing(self, answer: FitAnswer, now: "_Trial", gang: Gang, need: Need) -> FitAnswer:
        """Add the gangs that would be displaced to the answer, if any."""
        if gang.queue.name not in self._state.queues.entries or need.reserved:
            return answer
        displacement = displaced(now.state, now.session, gang, need, self._actions, self._now_ms)
        if displacement is None:
            return answer
        counts = Counter[str]()
        gangs = Counter(victim.gang for victim in displacement.victims)
        for displaced_gang, count in gangs.items():
            counts["" if displaced_gang is None else title_of(self._state, displaced_gang)] += count
        victims = tuple(sorted(counts.items(), key=_most_first)[:_DISPLACED_MAX])
        return msgspec.structs.replace(answer, displaces=victims, displaces_by=displacement.kind)


def _missing_in_words(gangs: GangTable, group: PodGroup, pods: Iterable[Pod]) -> str:
    """A message with the number of missing members, or with the missing group object; "": pods of
    the question, and those that wait in the cluster, suffice, or the gang has started.
    """
    known = gangs.gangs.get(gangs.trees.gang_of(key_of_group(group)))
    asked = tuple(pods)
    if known is None or known.group is None:
        names = {pod.group_name for pod in asked}
        if not group.dialect and names == {group.name} and has_objects(group.scope):
            return reasons.in_words(GroupMissing(group.scope, group.namespace, group.name))
    members = {pod.uid: pod.role for pod in asked}
    if known is not None:
        if known.history.started:
            return ""
        members |= {uid: member.pod.role for uid, member in known.members.items()}
        if known.group is not None and not group.dialect:
            group = known.group
    roles = Counter(members.values())
    needed = group.min_member
    minima = group.min_task_member
    lacking = 0
    if sum(count for _, count in minima) <= needed:
        lacking = sum(max(count - roles[role], 0) for role, count in minima)
    missing = max(needed - len(members), lacking)
    if missing <= 0:
        return ""
    verb = "member is" if needed == 1 else "members are"
    return f"{missing} of {needed} {verb} missing from what was asked"


def _asked_queues(state: State, asked: Iterable[AskedQueue]) -> dict[str, QueueEntry]:
    """The queues that would be created with the gangs; one that exists stays as it is."""
    entries: dict[str, QueueEntry] = {}
    for queue in asked:
        entry = QueueEntry(queue.name, state.resources)
        entry.use(
            Queue(
                uid=queue.name,
                dialect="",
                name=queue.name,
                resource_version=0,
                parent=queue.parent,
                capability=queue.capability,
            )
        )
        entries[queue.name] = entry
    entries |= {name: known for name in entries if (known := state.queues.entries.get(name))}
    for queue in asked:
        entry, parent = entries[queue.name], entries.get(queue.parent)
        above = parent or state.queues.entries.get(queue.parent)
        if entry.queue is not None and entry.queue.uid == queue.name and above is not None:
            entry.chain = (entry, *(each for each in above.chain if each is not entry))
    return entries


def _gang(
    state: State,
    group: PodGroup,
    pods: tuple[Pod, ...],
    entries: Sequence[ShapeEntry],
    queues: Mapping[str, QueueEntry],
) -> Gang:
    """A gang of waiting pods that is in no table."""
    name = group.queue or state.gangs.queue_of_namespace(group) or DEFAULT
    queue = state.queues.entries.get(name) or queues.get(name) or QueueEntry(name, state.resources)
    gang = Gang(key_of_group(group), group.namespace, group.name, queue)
    gang.gang_id = gang.gang_id or gang.full_name
    # If the query has fewer pods than the gang needs, the missing ones are not checked.
    group = without_missing(group, pods)
    size = min(max(group.min_member, 1), len(pods))
    roles = Counter(pod.role for pod in pods)
    for pod, entry in zip(pods, entries, strict=True):
        member = Member(_ranked(state.gangs, pod), entry)
        member.state = UNSUPPORTED if entry.shape.unsupported else WAITING
        gang.join(member)
    minima = tuple(
        (role, min(count, roles[role])) for role, count in group.min_task_member if count > 0
    )
    if group.min_member < sum(count for _, count in group.min_task_member):
        minima = ()
    gang.group = msgspec.structs.replace(group, min_member=size, min_task_member=minima)
    gang.priority = state.gangs.priority_of(gang)
    return gang


def _ranked(gangs: GangTable, pod: Pod) -> Pod:
    """The pod with the priority of its class: a template has only the class's name."""
    known = gangs.priority_classes.by_name.get(("", pod.priority_class))
    return msgspec.structs.replace(pod, priority=known.value) if known is not None else pod


class _Trial:
    """An attempt to place gangs on one node capacity, which is that of `state` and `session`, each
    gang beside those before it.
    """

    def __init__(self, state: State, session: Session, *, keep_used: bool) -> None:
        self.state = state
        self.session = session
        self._keep_used = keep_used
        self._queues: dict[str, QueueEntry] = {}
        #: Of the last gang.
        self._placed: tuple[Allocation, ...] = ()
        self._over: list[Shortage] = []

    def holds(self, need: Need, gang: Gang) -> bool:
        """Whether the gang fits; it is placed if it does."""
        queue = self._queue(gang)
        request = PlacementRequest(queue=queue, need=need, members_max=need.quorum)
        placement = gang_placement.place(self.session, request)
        if isinstance(placement, Refusal):
            self._over = queue.shortages(need.amounts(self.session.shapes), promised=False)
            return False
        self._placed = placement.statement.commit()
        for allocation in self._placed:
            queue.charge(allocation.shape, allocation.total)
        return True

    def _queue(self, gang: Gang) -> QueueEntry:
        return gang.queue.scratch(self._queues, keep_used=self._keep_used)

    def where(self) -> tuple[tuple[str, int], ...]:
        """The nodes with the most members in the placement, and their number of members."""
        counts = Counter[str]()
        for allocation in self._placed:
            if allocation.role == RESERVED:
                continue
            slots: list[int] = allocation.slots.tolist()
            members: list[int] = allocation.counts.tolist()
            for slot, count in zip(slots, members, strict=True):
                counts[self.state.nodes.names[slot]] += count
        return tuple(sorted(counts.items(), key=_most_first)[:_NODES_MAX])

    def refusal(self, need: Need, gang: Gang) -> FitAnswer:
        """The answer for a gang that even empty nodes do not hold, or its empty queue."""
        explanation = self.explained(need, gang)
        words = explanation.sentence
        if self._over:
            return FitAnswer(fits=False, ever=False, sentence=words)
        if explanation.outlook.new_nodes is NewNodes.CLAIMS:
            # Claims may be created, or bound, after the gang.
            shapes = (self.state.shapes.entries[shape_id] for _, shape_id, _ in need.wanted)
            unsupported = unsupported_device(self.state.node_capacity, shapes)
            return FitAnswer(fits=False, ever=not unsupported, sentence=words)
        words = f"even on empty nodes: {words}"
        return FitAnswer(fits=False, ever=False, sentence=words, needs_nodes=True)

    def explained(self, need: Need, gang: Gang) -> Explanation:
        queue = self._queue(gang)
        if self._over:
            names, alone = self.state.resources.names, not self._keep_used
            return Explanation(shortage_in_words(queue, self._over[0], names, alone=alone))
        return Explainer(self.state, self.session).resources(need, queue)


def _session(state: State, policies: PolicySet) -> Session:
    masks = Masks(state.nodes, policies.node_filters)
    return Session(state.node_capacity, state.shapes, masks, policies)


def _lacks_namespace(reference_objects: ReferenceObjects, question: FitRequest) -> bool:
    """Whether the namespace of the question's group neither exists nor would be created."""
    known = reference_objects.namespaces.by_name
    name = question.group.namespace
    return bool(known) and ("", name) not in known and name not in question.namespaces


def _placed_before(gangs: Sequence[Gang]) -> str:
    """The words about gangs of the same question that got their capacity first."""
    if not gangs:
        return ""
    more = f" and {len(gangs) - 1} others" if len(gangs) > 1 else ""
    return f"with {gangs[0].full_name}{more} placed before it: "


def _invalid(broken: str) -> FitAnswer:
    """The answer to a question that breaks this rule."""
    return FitAnswer(fits=False, ever=True, sentence=broken, failure="invalid")


def _refusal(sentence: str) -> FitAnswer:
    """The answer about a gang that admission would refuse."""
    return FitAnswer(fits=False, ever=True, sentence=sentence, refused=True)


def _bounded(answer: FitAnswer) -> FitAnswer:
    """The answer with a message of a bounded length."""
    sentence = shortened(answer.sentence, _SENTENCE_BYTES_MAX)
    return msgspec.structs.replace(answer, sentence=sentence)


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _by_minimum(state: State, group: PodGroup) -> FitAnswer:
    """The answer without pods: compares the declared minimum with quotas and with all nodes."""
    quota = _exceeded(state, group, lambda name: counted_as(name, group, group.min_member))
    if quota:
        return FitAnswer(fits=False, ever=False, sentence=quota)
    nodes, node_capacity = state.nodes, state.node_capacity
    node_capacity.fit_cells()
    nodes.allocatable.ensure(*node_capacity.free.cells.shape)
    here = nodes.exists[: nodes.size]
    short_now: list[str] = []
    short_ever: list[str] = []
    for name, amount in group.min_resources or ():
        row = state.resources.find(name)
        if row is None:
            # Nodes do not have quota keys such as count/pods or limits.cpu.
            if name.startswith(("count/", "limits.", "requests.")):
                continue
            short_ever.append(in_words(name, amount))
            continue
        total = int(nodes.allocatable.cells[row, : nodes.size][here].sum())
        free = int(node_capacity.free.cells[row, : nodes.size][here].clip(min=0).sum())
        if amount > total:
            short_ever.append(in_words(name, amount - total))
        elif amount > free:
            short_now.append(in_words(name, amount - free))
    if short_ever:
        sentence = f"all nodes together lack {listed(short_ever)}"
        return FitAnswer(fits=False, ever=False, sentence=sentence, needs_nodes=True)
    if short_now:
        sentence = f"the free capacity lacks {listed(short_now)}"
        return FitAnswer(fits=False, ever=True, sentence=sentence)
    return FitAnswer(fits=True, ever=True)


def _used_up(
    state: State, gang: Gang, new: Collection[str], limits: Resources, placed: Iterable[Gang]
) -> str:
    """A message with a quota of the gang's namespace that has too little left for the least that
    the gang's new pods need; "": there is none.

    Args:
        state: The cluster's state.
        gang: The gang.
        new: UIDs of the pods that would be created; those that exist are in use already.
        limits: The least limits of the gang's minimum, by the keys of quotas.
        placed: Gangs of the same question that are created before it.
    """
    before = [earlier for earlier in placed if earlier.namespace == gang.namespace]
    taken = [(earlier.group, _least_of_new(earlier, new, ())) for earlier in before]
    words = _exceeded(state, gang.group, _least_of_new(gang, new, limits), taken)
    return f"{_placed_before(before)}{words}" if words else ""


def _least_of_new(gang: Gang, new: Collection[str], limits: Resources) -> Callable[[str], int]:
    members = [member for uid, member in gang.members.items() if uid in new]
    size = gang.min_member - (len(gang.members) - len(members))
    return _least(members, max(size, 0), limits)


def _least(members: Collection[Member], size: int, limits: Resources) -> Callable[[str], int]:
    """The least that `size` of the members need, by the keys of quotas: those with the smallest
    requests of each resource, so that no possible gang is reported as impossible. `limits` are the
    least limits of `size` members.
    """
    asked = [dict(member.shape.shape.requests) for member in members]
    limited = dict(limits)

    def least(name: str) -> int:
        if name in POD_COUNTS:
            return size
        if name.startswith(_LIMITS):
            return limited.get(name, 0)
        resource = name.removeprefix(REQUESTS)
        return sum(sorted(requests.get(resource, 0) for requests in asked)[:size])

    return least


def _exceeded(
    state: State,
    group: PodGroup | None,
    least: Callable[[str], int],
    beside: Sequence[tuple[PodGroup | None, Callable[[str], int]]] | None = None,
) -> str:
    """A message with a quota that is below the least that a group needs; "": there is none. With
    `beside`, in addition to what is in use, and to what these groups need.
    """
    if group is None:
        return ""
    for quota in sorted(state.reference_objects.quotas.values(), key=lambda each: each.name):
        if quota.namespace != group.namespace:
            continue
        title = f"ResourceQuota {quota.namespace}/{quota.name}"
        if quota.too_large is not None:
            return f"{title}: {quota.too_large.text}"
        if matches(quota, group):
            used = {} if beside is None else dict(quota.used)
            counted = [least_of for of, least_of in beside or () if matches(quota, of)]
            for name, hard in quota.hard:
                needs = least(name)
                in_use = used.get(name, 0) + sum(least_of(name) for least_of in counted)
                if needs and needs > hard - in_use:
                    return f"{title} {_over(name, hard, needs, in_use)}"
    return ""


def _over(name: str, hard: int, needs: int, in_use: int) -> str:
    if name in POD_COUNTS:
        allows = f"has {in_use} of {hard} pods used" if in_use else f"allows {hard} pods"
        return f"{allows}, the gang needs {needs}"
    resource = name.removeprefix(REQUESTS).removeprefix(_LIMITS)
    what = "limits of " if name.startswith(_LIMITS) else ""
    allowed, needed = in_words(resource, hard), in_words(resource, needs)
    if in_use:
        allowed = f"{in_words(resource, in_use)} of {allowed}"
        return f"has {what}{allowed} used, the gang needs {needed} at least"
    return f"allows {what}{allowed}, the gang needs {needed} at least"
