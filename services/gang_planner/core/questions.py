"""Would this gang fit, now, and ever? Answered on copies: the planner's own state is only read."""

from typing import TYPE_CHECKING, Final

from services.gang_planner.core.amounts import in_words, listed
from services.gang_planner.core.backlog import Need, Structure, Wanted
from services.gang_planner.core.explaining import Explainer
from services.gang_planner.core.feasibility import Masks
from services.gang_planner.core.ground import Ground
from services.gang_planner.core.pairwise import labelling
from services.gang_planner.core.placing import Attempt
from services.gang_planner.core.policy_set import PolicySet
from services.gang_planner.core.queues import DEFAULT, QueueEntry
from services.gang_planner.core.session import Session
from services.gang_planner.core.shapes import ShapeTable
from services.gang_planner.state import State
from shared.contracts.asking import FitAnswer
from shared.model.objects import Pod, PodGroup

if TYPE_CHECKING:
    from services.gang_planner.core.statement import Allocation

#: Nodes that an answer names at most.
_NODES_TOLD_MAX: Final = 100


def would_fit(
    state: State, policies: PolicySet, group: PodGroup, pods: tuple[Pod, ...]
) -> FitAnswer:
    """Try the gang on the room that is free, then on the same nodes with nothing on them."""
    if not pods:
        return _by_minimum(state, group)
    # Shapes of a question are interned in a table of their own: questions must not make ours grow.
    shapes = ShapeTable(state.resources, state.shapes.terms.copy())
    ground = state.ground.copy()
    counts: dict[tuple[str, int], int] = {}
    for pod, entry in zip(pods, labelling.asked(state, shapes, ground, pods), strict=True):
        if entry.shape.unsupported:
            fields = ", ".join(entry.shape.unsupported[:5])
            return FitAnswer(
                fits=False, ever=False, sentence=f"constraints are not supported: {fields}"
            )
        key = (pod.role, entry.id)
        counts[key] = counts.get(key, 0) + 1
    wanted: tuple[Wanted, ...] = tuple(
        sorted((role, shape_id, count) for (role, shape_id), count in counts.items())
    )
    name = group.queue or DEFAULT
    queue = state.queues.entries.get(name) or QueueEntry(name, state.resources)
    need = Need(
        queue=queue.name,
        quorum=min(max(group.min_member, 1), len(pods)),
        minima=_minima(group, counts),
        wanted=wanted,
        best_effort=False,
        structure=Structure(group.topology) if group.topology is not None else None,
    )
    now = _Trial(state, policies, shapes, ground, need)
    if now.holds(queue.scratch(keep_used=True)):
        return FitAnswer(fits=True, ever=True, where=now.where())
    ever = _Trial(state, policies, shapes, state.ground.emptied(), need)
    if ever.holds(queue.scratch(keep_used=False)):
        return FitAnswer(fits=False, ever=True, sentence=now.sentence(queue))
    return FitAnswer(
        fits=False, ever=False, sentence=f"even on empty nodes: {ever.sentence(queue)}"
    )


class _Trial:
    """One ground to try a need on."""

    def __init__(
        self, state: State, policies: PolicySet, shapes: ShapeTable, ground: Ground, need: Need
    ) -> None:
        masks = Masks(state.nodes, policies.node_filters)
        self._state = state
        self._need = need
        self._session = Session(ground, shapes, masks, policies)
        self._placed: tuple[Allocation, ...] = ()

    def holds(self, queue: QueueEntry) -> bool:
        attempt = Attempt(self._session, queue, self._need, members_max=self._need.quorum)
        placed = attempt.run()
        if placed:
            self._placed = attempt.statement.commit()
        self._over = queue.excess(self._need.amounts(self._session.shapes), promised=False)
        return placed

    def where(self) -> tuple[tuple[str, int], ...]:
        """The nodes that would take most members, and how many."""
        counts: dict[str, int] = {}
        for allocation in self._placed:
            slots: list[int] = allocation.slots.tolist()
            members: list[int] = allocation.counts.tolist()
            for slot, count in zip(slots, members, strict=True):
                name = self._state.nodes.names[slot]
                counts[name] = counts.get(name, 0) + count
        ordered = sorted(counts.items(), key=_most_first)
        return tuple(ordered[:_NODES_TOLD_MAX])

    def sentence(self, queue: QueueEntry) -> str:
        if self._over:
            names = self._state.resources.names
            short = [in_words(names[row], by) for row, by in sorted(self._over.items())]
            more = f"needs {listed(short)} more than it leaves"
            return f"queue {queue.name} is at its capability: {more}"
        explainer = Explainer(self._state, self._session)
        return explainer.resources(self._need, queue).sentence


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _minima(group: PodGroup, counts: dict[tuple[str, int], int]) -> tuple[tuple[str, int], ...]:
    if group.min_member < sum(count for _, count in group.min_task_member):
        return ()
    there: dict[str, int] = {}
    for (role, _), count in counts.items():
        there[role] = there.get(role, 0) + count
    return tuple(
        (role, min(count, there.get(role, 0))) for role, count in group.min_task_member if count > 0
    )


def _by_minimum(state: State, group: PodGroup) -> FitAnswer:
    """Without pods only the declared minimum can be compared, with the sum of all nodes."""
    nodes, ground = state.nodes, state.ground
    ground.fit_cells()
    nodes.allocatable.ensure(*ground.free.cells.shape)
    here = nodes.exists[: nodes.size]
    short_now: list[str] = []
    short_ever: list[str] = []
    for name, amount in group.min_resources or ():
        row = state.resources.find(name)
        if row is None:
            # Keys such as count/pods or limits.cpu are quota keys, which no node has.
            if name.startswith(("count/", "limits.", "requests.")):
                continue
            short_ever.append(in_words(name, amount))
            continue
        total = int(nodes.allocatable.cells[row, : nodes.size][here].sum())
        free = int(ground.free.cells[row, : nodes.size][here].clip(min=0).sum())
        if amount > total:
            short_ever.append(in_words(name, amount - total))
        elif amount > free:
            short_now.append(in_words(name, amount - free))
    if short_ever:
        return FitAnswer(
            fits=False, ever=False, sentence=f"all nodes together lack {listed(short_ever)}"
        )
    if short_now:
        return FitAnswer(fits=False, ever=True, sentence=f"what is free lacks {listed(short_now)}")
    return FitAnswer(fits=True, ever=True)
