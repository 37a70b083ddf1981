"""The queue controller: the one writer of every Queue's status.

All queues are one key: they follow their parents, and a Command about one may change many. A pass
over all of them is cheap, and runs when a queue, a Command or the number of groups in a queue
changes. What queues hold is the planner's to know: its standby is asked while groups change.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from services.controller.core.queues.planning import Change, Order, QueueSeen, plan
from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.events import About
from services.controller.reconciling.informer import Informer, Informers
from services.controller.reconciling.writes import Written
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import LedgerRequest
from shared.kinds.command import Command
from shared.kinds.metadata import Metadata
from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import (
    CLOSED_BY_PARENT,
    DEFAULT_QUEUE,
    QUEUE,
    ROOT_QUEUE,
    Queue,
    QueueSpec,
)
from shared.kube.errors import KubeError
from shared.kube.quantities import format_quantity
from shared.kube.resources import COMMANDS, PODGROUPS_VOLCANO, QUEUES_VOLCANO

#: The key of all queues.
_ALL: Final = "queues"
#: The planner follows the cluster within a fraction of this; one question a second is no load.
_ASK_EVERY_S: Final = 1.0
#: Questions after the last change of a group: the second finds what came with the change.
_ASK_TIMES: Final = 2
#: While no planner answers (none runs, or none knows enough yet), until one does.
_ASK_AGAIN_S: Final = 5.0
_ASK_TIMEOUT_S: Final = 1.0
#: While queues are not served: their CRD may come without any queue, and nothing else wakes us.
_LOOK_EVERY_S: Final = 10.0

Holdings = Mapping[str, Mapping[str, str]]
AskHoldings = Callable[[], Awaitable[Holdings | None]]
"""Says what the groups of each queue hold, as quantities; None: not known now."""


def from_ledger(bus: Bus) -> AskHoldings:
    """Asks the planner's standby."""

    async def holdings() -> Holdings | None:
        try:
            ledger = await ask(
                bus,
                subjects.ASK_LEDGER,
                LedgerRequest(),
                codec.decode_ledger_answer,
                timeout_s=_ASK_TIMEOUT_S,
            )
        except BusError:
            return None
        return {
            queue.name: {
                one.resource: format_quantity(one.resource, one.used)
                for one in queue.amounts
                if one.used
            }
            for queue in ledger.queues
        }

    return holdings


class QueueReconciler:
    """See the module."""

    name = "queue"

    def __init__(self, runtime: Runtime, holdings: AskHoldings) -> None:
        """Nothing is read or written before `watches` and `reconcile`."""
        self._writes = runtime.writes
        self._events = runtime.events
        self._ask = holdings
        self._holdings: Holdings | None = None
        self._questions = _ASK_TIMES
        #: Not before then.
        self._ask_at_s = float("-inf")
        #: Unfinished PodGroups by queue.
        self._groups: Counter[str] = Counter()
        #: The queues that everybody counts on exist, or are not served.
        self._furnished = asyncio.Event()
        self._queues: Informer[Queue]
        self._commands: Informer[Command]
        self._wake: Wake = lambda _key: None

    def watches(self, informers: Informers, wake: Wake) -> Iterable[Informer[Any]]:
        """Queues, Commands, and the groups in queues."""
        self._wake = wake
        self._queues = informers.of(QUEUES_VOLCANO, Queue)
        self._commands = informers.of(COMMANDS, Command)
        groups = informers.of(PODGROUPS_VOLCANO, PodGroup)
        self._queues.on_change(self._queue_changed)
        self._commands.on_change(self._command_changed)
        groups.on_change(self._group_changed)
        return self._queues, self._commands, groups

    def keys(self) -> Iterable[str]:
        """One for all."""
        return (_ALL,)

    async def prepared(self) -> None:
        """Return once the queues exist that all workloads count on, whichever client made them; no
        user can count on any where the kind is not served.
        """
        await self._furnished.wait()

    async def reconcile(self, key: str) -> float | None:
        """Bring all queues to what they should be; Commands go once they are carried out."""
        del key
        if self._queues.absent:
            self._furnished.set()
            return _LOOK_EVERY_S
        await self._furnish()
        again_s = await self._learn_holdings()
        commands = sorted(
            filter(_is_ours, self._commands.all()),
            key=lambda command: (command.metadata.created_ms, command.metadata.key),
        )
        orders = [_order(command) for command in commands]
        changes = plan(map(_seen, self._queues.all()), self._groups, orders, self._holdings)
        refused: dict[str, KubeError] = {}
        for change in changes:
            try:
                await self._carry_out(change)
            except KubeError as error:
                # One queue that cannot be written must not keep other queues from being written.
                refused[change.name] = error
        # Carrying out twice does no harm, forgetting would: so a Command goes last.
        for command, order in zip(commands, orders, strict=True):
            if order.queue not in refused:
                metadata = command.metadata
                await self._writes.delete(
                    COMMANDS, metadata.name, uid=metadata.uid, namespace=metadata.namespace
                )
        if refused:
            raise next(iter(refused.values()))
        return again_s

    async def _furnish(self) -> None:
        """The two queues that everybody counts on."""
        for name, reclaimable in ((ROOT_QUEUE, False), (DEFAULT_QUEUE, True)):
            if self._queues.get(name) is None:
                queue = Queue(
                    metadata=Metadata(name=name),
                    spec=QueueSpec(weight=1, reclaimable=reclaimable),
                )
                self._learn(await self._writes.create(QUEUES_VOLCANO, queue))

    async def _learn_holdings(self) -> float | None:
        """Ask where something may have changed; seconds until it is to be asked again."""
        now_s = asyncio.get_running_loop().time()
        if self._questions and now_s >= self._ask_at_s:
            self._questions -= 1
            holdings = await self._ask()
            if holdings is not None:
                self._holdings = holdings
                self._ask_at_s = now_s + _ASK_EVERY_S
            else:
                self._questions = max(self._questions, 1)
                self._ask_at_s = now_s + _ASK_AGAIN_S
        return max(0.0, self._ask_at_s - now_s) if self._questions else None

    async def _carry_out(self, change: Change) -> None:
        """Write what has changed, in an order that a repetition after any part completes.

        A queue that closes is marked first (closed without the mark it would stay so when its
        parent opens); one that opens is unmarked last.
        """
        if change.parent is not None:
            await self._patch(change, {"spec": {"parent": change.parent}})
        closing = change.state is not None and change.state != "Open"
        if closing:
            await self._mark(change)
        await self._write_status(change)
        if not closing:
            await self._mark(change)
        if change.closes:
            about = About(QUEUES_VOLCANO, "", change.name, change.uid)
            self._events.record(about, "Normal", "CloseQueue", "Close queue succeed")

    async def _mark(self, change: Change) -> None:
        if change.mark is not None:
            marked = {"metadata": {"annotations": {CLOSED_BY_PARENT: change.mark}}}
            await self._patch(change, marked)

    async def _write_status(self, change: Change) -> None:
        status: dict[str, Any] = {}
        if change.state is not None:
            status["state"] = change.state
        if change.allocated is not None:
            queue = self._queues.get(change.name)
            stored = (queue.status.allocated if queue is not None else None) or {}
            # In a merge patch null removes.
            status["allocated"] = {**dict.fromkeys(stored), **change.allocated}
        if status:
            await self._patch(change, {"status": status}, "status")

    async def _patch(self, change: Change, patch: dict[str, Any], subresource: str = "") -> None:
        written = await self._writes.patch(
            QUEUES_VOLCANO, change.name, patch, uid=change.uid, subresource=subresource
        )
        self._learn(written)

    def _learn(self, written: Written) -> None:
        if written.done:
            self._queues.learn(written.body)

    def _queue_changed(self, _old: Queue | None, _new: Queue | None) -> None:
        if all(self._queues.get(name) is not None for name in (ROOT_QUEUE, DEFAULT_QUEUE)):
            self._furnished.set()
        self._wake(_ALL)

    def _command_changed(self, _old: Command | None, new: Command | None) -> None:
        if new is not None and _is_ours(new):
            self._wake(_ALL)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        was, now = _queue_of(old), _queue_of(new)
        if was != now:
            if was is not None:
                self._groups[was] -= 1
            if now is not None:
                self._groups[now] += 1
        if was != now or not self._questions:
            self._wake(_ALL)
        self._questions = _ASK_TIMES


def _queue_of(group: PodGroup | None) -> str | None:
    """The queue that an unfinished group is in."""
    if group is None or group.status.phase == "Completed":
        return None
    return group.spec.queue or DEFAULT_QUEUE


def _is_ours(command: Command) -> bool:
    target = command.target
    return (
        target is not None
        and target.kind == QUEUE.kind
        and target.api_version.partition("/")[0] == QUEUE.group
        and command.metadata.deletion_timestamp is None
    )


def _order(command: Command) -> Order:
    target = command.target
    assert target is not None
    return Order(action=command.action, queue=target.name, uid=target.uid)


def _seen(queue: Queue) -> QueueSeen:
    allocated = queue.status.allocated
    return QueueSeen(
        name=queue.metadata.name,
        uid=queue.metadata.uid,
        parent=queue.spec.parent,
        state=queue.status.state,
        mark=queue.metadata.annotations.get(CLOSED_BY_PARENT),
        allocated=None
        if allocated is None
        else {resource: str(quantity) for resource, quantity in allocated.items()},
    )
