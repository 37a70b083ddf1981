"""The resources `queues`, `nodes`, `podshapes`, `instances` and `decisions`: reads of what a user
may see.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from services.api.authentication import User
from services.api.authorization import Authorizer
from services.api.core.decision_history import (
    DECISION_COLUMNS,
    DecisionHistory,
    decision_cells,
    visible_part,
)
from services.api.core.listed_objects import (
    INSTANCE_COLUMNS,
    NODE_COLUMNS,
    POD_SHAPE_COLUMNS,
    QUEUE_COLUMNS,
    build_instance,
    build_node,
    build_pod_shape,
    instance_cells,
    node_cells,
    pod_shape_cells,
    public_queues,
    public_shapes,
    queue_cells,
)
from services.api.core.requests import ReadOptions, Target, page_of
from services.api.errors import not_found
from services.api.planner_questions import InstanceQuestions, PlannerQuestions
from services.api.resources import Item, Page
from services.api.state import ApiState
from shared.contracts.questions import FragmentationAnswer, LedgerAnswer
from shared.contracts.visibility import Decision, Instance, Node, ObjectMeta, PodShape, Queue
from shared.model import objects as model
from shared.visible_objects import build_queues

_encode: Final = msgspec.json.Encoder().encode


class QueueResource:
    """As `ReadableResource`: the ledger of queues."""

    columns = QUEUE_COLUMNS
    cells = staticmethod(queue_cells)

    def __init__(self, questions: PlannerQuestions, authorizer: Authorizer) -> None:
        self._questions = questions
        self._authorizer = authorizer

    async def get(self, user: User, target: Target) -> Item:
        """As `ReadableResource`."""
        ledger = await self._questions.ledger()
        return _found(await self._built(user, ledger, target.name), target)

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`. Its version is a hash: the ledger has no sequence."""
        ledger = await self._questions.ledger()
        built = await self._built(user, ledger)
        chosen, metadata = page_of(built, _metadata, target, options, _version_of(ledger))
        return Page([_item(one) for one in chosen], metadata)

    async def _built(self, user: User, ledger: LedgerAnswer, name: str = "") -> Sequence[Queue]:
        """The objects of all queues, or of the one with this name, that the user may see."""
        chosen = tuple(one for one in ledger.queues if name in {"", one.name})
        gangs = {gang for one in chosen for gang in one.holders}
        gangs |= {kept.gang for one in chosen for kept in one.reservations}
        sight = await self._authorizer.sight(user, {gang.partition("/")[0] for gang in gangs})
        shown = msgspec.structs.replace(ledger, queues=chosen)
        visible: frozenset[str] | None = None
        if not sight.sees_all:
            shown = msgspec.structs.replace(shown, queues=public_queues(shown))
            visible = sight.namespaces
        return sorted(build_queues(shown, visible), key=_place)


class NodeResource:
    """As `ReadableResource`: nodes and what they have left, for users who may list nodes."""

    columns = NODE_COLUMNS
    cells = staticmethod(node_cells)

    def __init__(self, state: ApiState, authorizer: Authorizer) -> None:
        self._state = state
        self._authorizer = authorizer
        #: The nodes of the last list by name, each with the record that it was built after.
        self._built: dict[str, tuple[int, Item]] = {}
        self._built_from = state.cluster

    async def get(self, user: User, target: Target) -> Item:
        """As `ReadableResource`."""
        await self._authorizer.require_nodes(user)
        node = self._state.cluster.nodes.get(target.name)
        return _found([] if node is None else [self._build(node)], target)

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`."""
        await self._authorizer.require_nodes(user)
        cluster = self._state.cluster
        if self._built_from is not cluster:
            self._built, self._built_from = {}, cluster
        self._built = {name: self._current(node) for name, node in sorted(cluster.nodes.items())}
        items = [item for _, item in self._built.values()]
        version = str(cluster.nodes_seq)
        return Page(*page_of(items, lambda item: _metadata(item.object), target, options, version))

    def _current(self, node: model.Node) -> tuple[int, Item]:
        """A node as it was built, or built again because it has changed."""
        kept, seq = self._built.get(node.name), self._state.cluster.node_seqs[node.name]
        if kept is not None and kept[0] == seq:
            return kept
        return seq, _item(self._build(node))

    def _build(self, node: model.Node) -> Node:
        cluster = self._state.cluster
        version = str(cluster.node_seqs[node.name])
        return build_node(node, cluster.loads.get(node.name), version)


class PodShapeResource:
    """As `ReadableResource`: the capacity for common pods, for users who may list nodes."""

    columns = POD_SHAPE_COLUMNS
    cells = staticmethod(pod_shape_cells)

    def __init__(
        self, questions: PlannerQuestions, state: ApiState, authorizer: Authorizer
    ) -> None:
        self._questions = questions
        self._state = state
        self._authorizer = authorizer

    async def get(self, user: User, target: Target) -> Item:
        """As `ReadableResource`."""
        answer = await self._answer(user)
        return _found(
            [build_pod_shape(one) for one in answer.shapes if one.id == target.name], target
        )

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`. Its version is a hash, as that of queues."""
        answer = await self._answer(user)
        built = sorted(map(build_pod_shape, answer.shapes), key=_place)
        chosen, metadata = page_of(built, _metadata, target, options, _version_of(answer))
        return Page([_item(one) for one in chosen], metadata)

    async def _answer(self, user: User) -> FragmentationAnswer:
        """The planner's answer, as far as the user may see it."""
        await self._authorizer.require_nodes(user)
        answer = await self._questions.fragmentation()
        if (await self._authorizer.sight(user, ())).sees_all:
            return answer
        return FragmentationAnswer(
            shapes=public_shapes(answer.shapes, self._state.cluster.nodes.values())
        )


class InstanceResource:
    """As `ReadableResource`: the processes of Tutti that answer now, for all users."""

    columns = INSTANCE_COLUMNS
    cells = staticmethod(instance_cells)

    def __init__(self, questions: InstanceQuestions) -> None:
        self._questions = questions

    async def get(self, _user: User, target: Target) -> Item:
        """As `ReadableResource`."""
        built = [build_instance(one) for one in await self._questions.statuses()]
        return _found([one for one in built if one.metadata.name == target.name], target)

    async def list(self, _user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`. Its version is a hash, as that of queues."""
        built = sorted(map(build_instance, await self._questions.statuses()), key=_place)
        chosen, metadata = page_of(built, _metadata, target, options, _version_of(built))
        return Page([_item(one) for one in chosen], metadata)


class DecisionResource:
    """As `ReadableResource`: the newest decisions, of gangs that the user sees."""

    columns = DECISION_COLUMNS
    cells = staticmethod(decision_cells)

    def __init__(self, history: Callable[[], DecisionHistory], authorizer: Authorizer) -> None:
        self._history = history
        self._authorizer = authorizer

    async def get(self, user: User, target: Target) -> Item:
        """As `ReadableResource`."""
        await self._authorizer.require_pods(user, "list", target.namespace)
        named = [one for one in self._of(target) if one.metadata.name == target.name]
        return _found(await self._visible(user, named), target)

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`; by namespace, and the oldest first."""
        if target.namespace:
            await self._authorizer.require_pods(user, "list", target.namespace)
        version, kept = str(self._history().seq), self._of(target)
        sight = await self._authorizer.sight(user, {one.metadata.namespace for one in kept})
        seen = sorted((one for one in kept if sight.sees(one.metadata.namespace)), key=_place)
        chosen, metadata = page_of(seen, _metadata, target, options, version)
        return Page([_item(one) for one in await self._visible(user, chosen)], metadata)

    def _of(self, target: Target) -> Sequence[Decision]:
        return [
            one
            for one in self._history().oldest_first()
            if target.namespace in {"", one.metadata.namespace}
        ]

    async def _visible(self, user: User, decisions: Sequence[Decision]) -> Sequence[Decision]:
        """These decisions, with the pods that the user may see."""
        namespaces = {pod.namespace for one in decisions for pod in one.status.pods}
        sight = await self._authorizer.sight(user, namespaces)
        if sight.namespaces is None:
            return decisions
        return [visible_part(one, sight.namespaces) for one in decisions]


_Object: TypeAlias = Queue | Node | PodShape | Instance | Decision


def _version_of(answer: object) -> str:
    """A version of an answer of other services, which has no sequence."""
    digest = hashlib.blake2b(_encode(answer), digest_size=7).digest()
    return str(int.from_bytes(digest, "big"))


def _item(one: _Object) -> Item:
    return Item(one, msgspec.Raw(_encode(one)))


def _metadata(one: _Object) -> ObjectMeta:
    return one.metadata


def _place(one: _Object) -> tuple[str, str]:
    return one.metadata.namespace, one.metadata.name


def _found(built: Sequence[_Object], target: Target) -> Item:
    """The only one. Raises RequestFailed: 404, there is none."""
    if not built:
        raise not_found(target.resource.plural, target.name)
    return _item(built[0])
