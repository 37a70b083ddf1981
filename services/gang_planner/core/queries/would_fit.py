"""Whether a gang would fit now, or on empty nodes. Computed on copies of the planner's state."""

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.placement.gang_placement import GangPlacement
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queries.displacement import displaced
from services.gang_planner.core.queries.quota_limits import too_small, too_small_for
from services.gang_planner.core.queueing.need import need_of
from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.inter_pod import profiles
from services.gang_planner.core.state.member_states import UNSUPPORTED, WAITING
from services.gang_planner.core.state.needs import RESERVED, Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import DEFAULT, QueueEntry
from services.gang_planner.core.verdicts.pending_reason import Explainer
from services.gang_planner.core.verdicts.unsupported_messages import unsupported_words
from shared.contracts.questions import FitAnswer, FitRequest
from shared.model.gang_keys import key_of_group
from shared.model.objects import Pod, PodGroup

if TYPE_CHECKING:
    from services.gang_planner.core.framework.statement import Allocation

#: Maximum number of nodes in an answer.
_NODES_MAX: Final = 100


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
        """Try the gang on the free capacity, then on the same nodes without pods."""
        state = self._state
        group, pods = question.group, question.pods
        if not pods:
            return _by_minimum(state, group)
        group, pods = self._joined(group, pods)
        # The query's shapes are interned in a copy, so that the planner's table does not grow.
        shown = copy.copy(state)
        shown.shapes, shown.node_capacity = state.shapes.copy(), state.node_capacity.copy()
        gang = _gang(
            shown, group, pods, profiles.asked(state, shown.shapes, shown.node_capacity, pods)
        )
        if gang.counts[UNSUPPORTED]:
            return FitAnswer(fits=False, ever=False, sentence=unsupported_words(gang))
        quota = too_small(state, gang, gang.min_member, question.limits)
        if quota:
            return FitAnswer(fits=False, ever=False, sentence=quota)
        need = need_of(shown, gang)
        queue = gang.queue
        if not queue.open and not (queue.queue is None and queue.name == DEFAULT):
            words = "does not exist" if queue.queue is None else "is not open"
            sentence = f"queue {queue.name} {words}"
            return FitAnswer(fits=False, ever=True, sentence=sentence, refused=True)
        now = _Trial(shown, self._policies, need)
        if now.holds(queue.scratch(keep_used=True)):
            return FitAnswer(fits=True, ever=True, where=now.where())
        empty = copy.copy(shown)
        empty.node_capacity = state.node_capacity.emptied()
        ever = _Trial(empty, self._policies, need)
        if not ever.holds(queue.scratch(keep_used=False)):
            return FitAnswer(
                fits=False, ever=False, sentence=f"even on empty nodes: {ever.sentence(queue)}"
            )
        answer = FitAnswer(fits=False, ever=True, sentence=now.sentence(queue))
        return self._displacing(answer, now, gang, need)

    def _joined(self, group: PodGroup, pods: tuple[Pod, ...]) -> tuple[PodGroup, tuple[Pod, ...]]:
        """Add the waiting pods of the existing group that the query's pods name."""
        known = self._state.gangs.gangs.get(("name", group.namespace, group.name))
        named = not group.dialect and all(pod.group_name == group.name for pod in pods)
        if not named or known is None or known.group is None or known.history.started:
            return group, pods
        waiting = [one.pod for members in known.waiting.values() for one in members.values()]
        return known.group, (*pods, *waiting)

    def _displacing(self, answer: FitAnswer, now: "_Trial", gang: Gang, need: Need) -> FitAnswer:
        """Add the gangs that would be displaced to the answer, if any."""
        if gang.queue.name not in self._state.queues.entries:
            return answer
        if need.reserved:
            return answer
        found = displaced(now.state, now.session, gang, need, self._actions, self._now_ms)
        if found is None:
            return answer
        counts: dict[str, int] = {}
        for one in found.victims:
            name = one.gang.full_name if one.gang is not None else ""
            counts[name] = counts.get(name, 0) + 1
        victims = tuple(sorted(counts.items(), key=_most_first))
        return msgspec.structs.replace(answer, displaces=victims, displaces_by=found.kind)


def _gang(
    state: State, group: PodGroup, pods: tuple[Pod, ...], entries: Sequence[ShapeEntry]
) -> Gang:
    """A gang of waiting pods that is in no table."""
    name = group.queue or DEFAULT
    queue = state.queues.entries.get(name) or QueueEntry(name, state.resources)
    gang = Gang(key_of_group(group), group.namespace, group.name, queue)
    gang.gang_id = gang.gang_id or gang.full_name
    # If the query has fewer pods than the gang needs, the missing ones are not checked.
    size = min(max(group.min_member, 1), len(pods))
    roles: dict[str, int] = {}
    for pod, entry in zip(pods, entries, strict=True):
        roles[pod.role] = roles.get(pod.role, 0) + 1
        member = Member(_ranked(state, pod), entry)
        member.state = UNSUPPORTED if entry.shape.unsupported else WAITING
        gang.join(member)
    minima = tuple(
        (role, min(count, roles.get(role, 0))) for role, count in group.min_task_member if count > 0
    )
    if group.min_member < sum(count for _, count in group.min_task_member):
        minima = ()
    gang.group = msgspec.structs.replace(group, min_member=size, min_task_member=minima)
    gang.priority = state.gangs.priority_of(gang)
    return gang


def _ranked(state: State, pod: Pod) -> Pod:
    """The pod with the priority of its class: a template has only the class's name."""
    found = state.gangs.priority_classes.by_name.get(("", pod.priority_class))
    return msgspec.structs.replace(pod, priority=found.value) if found is not None else pod


class _Trial:
    """An attempt to place a need on one node capacity."""

    def __init__(self, state: State, policies: PolicySet, need: Need) -> None:
        masks = Masks(state.nodes, policies.node_filters)
        self.state = state
        self._need = need
        self.session = Session(state.node_capacity, state.shapes, masks, policies)
        self._placed: tuple[Allocation, ...] = ()

    def holds(self, queue: QueueEntry) -> bool:
        attempt = GangPlacement(self.session, queue, self._need, members_max=self._need.quorum)
        placed = attempt.run()
        if placed:
            self._placed = attempt.statement.commit()
        self._over = queue.excess(self._need.amounts(self.session.shapes), promised=False)
        return placed

    def where(self) -> tuple[tuple[str, int], ...]:
        """The nodes with the most members in the placement, and their number of members."""
        counts: dict[str, int] = {}
        for allocation in self._placed:
            if allocation.role == RESERVED:
                continue
            slots: list[int] = allocation.slots.tolist()
            members: list[int] = allocation.counts.tolist()
            for slot, count in zip(slots, members, strict=True):
                name = self.state.nodes.names[slot]
                counts[name] = counts.get(name, 0) + count
        ordered = sorted(counts.items(), key=_most_first)
        return tuple(ordered[:_NODES_MAX])

    def sentence(self, queue: QueueEntry) -> str:
        if self._over:
            names = self.state.resources.names
            short = [in_words(names[row], by) for row, by in sorted(self._over.items())]
            more = f"needs {listed(short)} more than it leaves"
            return f"queue {queue.name} is at its capability: {more}"
        explainer = Explainer(self.state, self.session)
        return explainer.resources(self._need, queue).sentence


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _by_minimum(state: State, group: PodGroup) -> FitAnswer:
    """The answer without pods: compares the declared minimum with quotas and with all nodes."""
    quota = too_small_for(state, group)
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
        return FitAnswer(
            fits=False, ever=False, sentence=f"all nodes together lack {listed(short_ever)}"
        )
    if short_now:
        return FitAnswer(
            fits=False, ever=True, sentence=f"the free capacity lacks {listed(short_now)}"
        )
    return FitAnswer(fits=True, ever=True)
