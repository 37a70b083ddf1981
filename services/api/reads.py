"""The resources `queues`, `nodes` and `decisions`: reads of what a user may see."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from services.api.authentication import User
from services.api.authorization import Authorizer
from services.api.core.decision_history import (
    DECISION_COLUMNS,
    DecisionHistory,
    decision_cells,
    visible_part,
)
from services.api.core.node_objects import NODE_COLUMNS, build_node, node_cells
from services.api.core.paging import page_of
from services.api.core.queue_objects import QUEUE_COLUMNS, build_queue, queue_cells
from services.api.core.requests import ReadOptions, Target
from services.api.errors import RequestFailed
from services.api.planner_questions import PlannerQuestions
from services.api.resources import Item, Page
from services.api.state import ApiState
from shared.contracts.questions import LedgerAnswer
from shared.contracts.visibility import GROUP, Decision, Node, ObjectMeta, Queue

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
        built = await self._built(user, ledger, "")
        version = int.from_bytes(hashlib.blake2b(_encode(ledger), digest_size=7).digest(), "big")
        return _page(built, target, options, str(version))

    async def _built(self, user: User, ledger: LedgerAnswer, name: str) -> Sequence[Item]:
        chosen = [one for one in ledger.queues if name in {"", one.name}]
        holders = {gang.partition("/")[0] for one in chosen for gang in one.holders}
        sight = await self._authorizer.sight(user, holders)
        return sorted((_item(build_queue(one, sight.namespaces)) for one in chosen), key=_place)


class NodeResource:
    """As `ReadableResource`: nodes and what they have left, for users who may list nodes."""

    columns = NODE_COLUMNS
    cells = staticmethod(node_cells)

    def __init__(self, state: ApiState, authorizer: Authorizer) -> None:
        self._state = state
        self._authorizer = authorizer
        #: All nodes, as built for the version `_built_at`.
        self._built: Sequence[Item] = ()
        self._built_at = -1

    async def get(self, user: User, target: Target) -> Item:
        """As `ReadableResource`."""
        await self._authorizer.require_nodes(user)
        cluster = self._state.cluster
        node = cluster.nodes.get(target.name)
        version = str(cluster.nodes_seq)
        if node is None:
            return _found((), target)
        return _item(build_node(node, cluster.loads.get(node.name), version))

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`."""
        await self._authorizer.require_nodes(user)
        cluster = self._state.cluster
        if self._built_at != cluster.nodes_seq:
            version = str(cluster.nodes_seq)
            self._built = [
                _item(build_node(node, cluster.loads.get(name), version))
                for name, node in sorted(cluster.nodes.items())
            ]
            self._built_at = cluster.nodes_seq
        return _page(self._built, target, options, str(cluster.nodes_seq))


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
        return _found(await self._seen(user, target), target)

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`; by namespace, and the oldest first."""
        if target.namespace:
            await self._authorizer.require_pods(user, "list", target.namespace)
        seen = await self._seen(user, target)
        return _page(seen, target, options, str(self._history().seq))

    async def _seen(self, user: User, target: Target) -> Sequence[Item]:
        history = self._history()
        sight = await self._authorizer.sight(user, history.namespaces())
        found = [
            one
            for one in history.oldest_first()
            if target.namespace in {"", one.metadata.namespace}
            and sight.sees(one.metadata.namespace)
        ]
        if sight.namespaces is not None:
            found = [visible_part(one, sight.namespaces) for one in found]
        return sorted((_item(one) for one in found), key=_place)


def _item(one: Queue | Node | Decision) -> Item:
    return Item(one, msgspec.Raw(_encode(one)))


def _metadata(item: Item) -> ObjectMeta:
    found: ObjectMeta = item.object.metadata
    return found


def _place(item: Item) -> tuple[str, str]:
    metadata = _metadata(item)
    return metadata.namespace, metadata.name


def _page(ordered: Sequence[Item], target: Target, options: ReadOptions, version: str) -> Page:
    return Page(*page_of(ordered, _metadata, target, options, version))


def _found(built: Sequence[Item], target: Target) -> Item:
    for one in built:
        if one.object.metadata.name == target.name:
            return one
    raise RequestFailed(404, f'{target.resource.plural}.{GROUP} "{target.name}" not found')
