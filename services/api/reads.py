"""The resources `queues`, `nodes`, `podshapes`, `instances` and `decisions`: reads of what a user
may see.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
from typing_extensions import override

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
from shared.contracts.visibility import Decision, Instance, Node, ObjectMeta, PodShape, Queue
from shared.model import objects as model
from shared.visible_objects import build_queues

_encode: Final = msgspec.json.Encoder().encode

_Object: TypeAlias = Queue | Node | PodShape | Instance | Decision


class _Answer(NamedTuple):
    """Objects in order, and what they were built from."""

    objects: Sequence[_Object]
    source: object


class _AskedResource(Protocol):
    """As `ReadableResource`: objects that are built from an answer of other services."""

    async def read(self, user: User, name: str, /) -> _Answer:
        """All objects that the user may see, or at least the one with this name, in order."""
        ...

    async def get(self, user: User, target: Target) -> Item:
        """As `ReadableResource`."""
        objects = (await self.read(user, target.name)).objects
        return _only([each for each in objects if each.metadata.name == target.name], target)

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`. Its version is a hash: the answer has no sequence."""
        answer = await self.read(user, "")
        version = _version_of(answer.source)
        chosen, metadata = page_of(answer.objects, _metadata, target, options, version)
        return Page([_item(each) for each in chosen], metadata)


class QueueResource(_AskedResource):
    """As `ReadableResource`: the ledger of queues."""

    columns = QUEUE_COLUMNS
    cells = staticmethod(queue_cells)

    def __init__(self, questions: PlannerQuestions, authorizer: Authorizer) -> None:
        self._questions = questions
        self._authorizer = authorizer

    @override
    async def read(self, user: User, name: str) -> _Answer:
        ledger = await self._questions.ledger()
        chosen = tuple(queue for queue in ledger.queues if name in {"", queue.name})
        gangs = {gang for queue in chosen for gang in queue.holders}
        gangs |= {kept.gang for queue in chosen for kept in queue.reservations}
        sight = await self._authorizer.sight(user, {gang.partition("/")[0] for gang in gangs})
        shown = msgspec.structs.replace(ledger, queues=chosen)
        if not sight.sees_all:
            shown = msgspec.structs.replace(shown, queues=public_queues(shown))
        return _Answer(sorted(build_queues(shown, sight.namespaces), key=_place), ledger)


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
        return _only([] if node is None else [self._build(node)], target)

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


class PodShapeResource(_AskedResource):
    """As `ReadableResource`: the capacity for common pods, for users who may list nodes."""

    columns = POD_SHAPE_COLUMNS
    cells = staticmethod(pod_shape_cells)

    def __init__(
        self, questions: PlannerQuestions, state: ApiState, authorizer: Authorizer
    ) -> None:
        self._questions = questions
        self._state = state
        self._authorizer = authorizer

    @override
    async def read(self, user: User, name: str) -> _Answer:
        await self._authorizer.require_nodes(user)
        answer = await self._questions.fragmentation()
        shapes = answer.shapes
        if not (await self._authorizer.sight(user, ())).sees_all:
            shapes = public_shapes(shapes, self._state.cluster.nodes.values())
        return _Answer(sorted(map(build_pod_shape, shapes), key=_place), shapes)


class InstanceResource(_AskedResource):
    """As `ReadableResource`: the processes of Tutti that answer now, for all users."""

    columns = INSTANCE_COLUMNS
    cells = staticmethod(instance_cells)

    def __init__(self, questions: InstanceQuestions) -> None:
        self._questions = questions

    @override
    async def read(self, user: User, name: str) -> _Answer:
        instances = sorted(map(build_instance, await self._questions.statuses()), key=_place)
        return _Answer(instances, instances)


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
        named = [each for each in self._of(target) if each.metadata.name == target.name]
        return _only(await self._visible(user, named), target)

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`; by namespace, and the oldest first."""
        if target.namespace:
            await self._authorizer.require_pods(user, "list", target.namespace)
        version, kept = str(self._history().seq), self._of(target)
        sight = await self._authorizer.sight(
            user, {decision.metadata.namespace for decision in kept}
        )
        visible = (each for each in kept if sight.sees(each.metadata.namespace))
        seen = sorted(visible, key=_place)
        chosen, metadata = page_of(seen, _metadata, target, options, version)
        return Page([_item(each) for each in await self._visible(user, chosen)], metadata)

    def _of(self, target: Target) -> Sequence[Decision]:
        return [
            decision
            for decision in self._history().oldest_first()
            if target.namespace in {"", decision.metadata.namespace}
        ]

    async def _visible(self, user: User, decisions: Sequence[Decision]) -> Sequence[Decision]:
        """These decisions, with the pods that the user may see."""
        namespaces = {pod.namespace for each in decisions for pod in each.status.pods}
        sight = await self._authorizer.sight(user, namespaces)
        if sight.namespaces is None:
            return decisions
        return [visible_part(each, sight.namespaces) for each in decisions]


def _version_of(answer: object) -> str:
    """A version of an answer of other services, which has no sequence."""
    digest = hashlib.blake2b(_encode(answer), digest_size=7).digest()
    return str(int.from_bytes(digest, "big"))


def _item(shown: _Object) -> Item:
    return Item(shown, msgspec.Raw(_encode(shown)))


def _metadata(shown: _Object) -> ObjectMeta:
    return shown.metadata


def _place(shown: _Object) -> tuple[str, str]:
    return shown.metadata.namespace, shown.metadata.name


def _only(built: Sequence[_Object], target: Target) -> Item:
    """The only one. Raises RequestFailed: 404, there is none."""
    if not built:
        raise not_found(target.resource.plural, target.name)
    return _item(built[0])
