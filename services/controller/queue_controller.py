"""The queue controller: the only writer of Queues' status.

All queues are one key: children follow their parents, and a Command about one queue may change
many. Planning all of them is cheap, and happens when a queue, a Command or the number of groups in
a queue changes. The allocated resources are read from the standby planner: each second while groups
change, and at growing intervals afterwards (`_PAUSES_S`).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from services.controller.core.events import ControllerEvent
from services.controller.core.queue_commands import refusal
from services.controller.core.queues import Change, plan
from services.controller.queue_command_policy import QueueCommandPolicy
from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.informer import Informer
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.questions import ask_ledger
from shared.kinds.command import Command
from shared.kinds.metadata import Metadata
from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import CLOSED_BY_PARENT, DEFAULT_QUEUE, ROOT_QUEUE, Queue, QueueSpec
from shared.kube.errors import KubeError
from shared.kube.quantities import format_quantity
from shared.kube.resources import COMMANDS, PODGROUPS_VOLCANO, QUEUES_VOLCANO

#: The key of all queues.
_ALL: Final = "queues"
#: Pauses before the requests that follow a change of a group; the last one repeats. The planner's
#: state is behind the cluster by a fraction of the first. The later requests are for what changes
#: while no PodGroup of Volcano's API does: pods of a deleted group end, holds expire, gangs of
#: other APIs start and end.
_PAUSES_S: Final[tuple[float, ...]] = (1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
#: Added to a pause while no planner answers (none runs, or none has its state yet).
_RETRY_S: Final = 5.0
_REQUEST_TIMEOUT_S: Final = 1.0
#: Interval of checks while queues are not served: a CRD without any queue causes no change.
_CHECK_EVERY_S: Final = 10.0
#: Attempts to carry out a Command, after which it is deleted: as in Volcano (maxRequeueNum).
_ATTEMPTS_MAX: Final = 15

Allocated = Mapping[str, Mapping[str, str]]
"""Quantities allocated to the groups of each queue, by resource."""

ReadAllocated = Callable[[], Awaitable[Allocated | None]]
"""Reads the allocated quantities; None while they are unknown."""


def from_ledger(bus: Bus) -> ReadAllocated:
    async def allocated() -> Allocated | None:
        try:
            ledger = await ask_ledger(bus, timeout_s=_REQUEST_TIMEOUT_S)
        except BusError:
            return None
        return {
            queue.name: {
                amount.resource: format_quantity(amount.resource, amount.used)
                for amount in queue.amounts
                if amount.used
            }
            for queue in ledger.queues
        }

    return allocated


class QueueReconciler:
    name = "queue"

    def __init__(
        self, runtime: Runtime, read_allocated: ReadAllocated, policy: QueueCommandPolicy
    ) -> None:
        self._runtime = runtime
        self._writes = runtime.writes
        self._policy = policy
        #: By UID of a Command whose queue could not be written: the number of attempts.
        self._attempts: dict[str, int] = {}
        self._events = runtime.events
        self._read_allocated = read_allocated
        self._allocated: Allocated | None = None
        #: Pauses before the next requests.
        self._pauses_s = _PAUSES_S
        #: The loop's time from which the next pause counts.
        self._counted_from_s = float("-inf")
        #: Unfinished PodGroups by queue.
        self._groups: Counter[str] = Counter()
        #: Set when `root` and `default` exist, or queues are not served.
        self._has_default_queues = asyncio.Event()
        self._queues = runtime.informers.of(QUEUES_VOLCANO, Queue)
        self._commands = runtime.informers.of(COMMANDS, Command)
        self._pod_groups = runtime.informers.of(PODGROUPS_VOLCANO, PodGroup)
        self._wake: Wake = lambda _key: None

    def watches(self, wake: Wake) -> Iterable[Informer[Any]]:
        self._wake = wake
        self._queues.on_change(self._queue_changed)
        self._commands.on_change(self._command_changed)
        self._pod_groups.on_change(self._group_changed)
        return self._queues, self._commands, self._pod_groups

    def keys(self) -> Iterable[str]:
        return (_ALL,)

    async def prepared(self) -> None:
        """Return once `root` and `default` exist, whichever client created them, or queues are not
        served.
        """
        await self._has_default_queues.wait()

    async def reconcile(self, key: str) -> float | None:
        """Write all queues that have to change, then delete the Commands that are carried out."""
        del key
        if self._queues.absent:
            self._has_default_queues.set()
            return _CHECK_EVERY_S
        await self._create_default_queues()
        again_s = await self._update_allocated()
        commands = await self._accepted_commands()
        changes = plan(self._queues.all(), self._groups, commands, self._allocated)
        refused: dict[str, KubeError] = {}
        for change in changes:
            try:
                await self._write(change)
            except KubeError as error:
                # A queue that cannot be written must not stop the writes of other queues.
                refused[change.name] = error
        # A Command is deleted last, since carrying it out twice does no harm.
        await self._delete_commands(commands, refused)
        if refused:
            raise next(iter(refused.values()))
        return again_s

    async def _accepted_commands(self) -> list[Command]:
        """The Commands to carry out, the oldest first. The rest is reported and deleted."""
        commands = sorted(
            filter(_is_ours, self._commands.all()),
            key=lambda command: (command.metadata.created_ms, command.metadata.key),
        )
        if not commands and self._policy.was_stored:
            return []
        # At first also without a Command, so that the next one is reviewed when it is created.
        reviewed_from_ms = await self._policy.reviewed_from_ms()
        queues = {queue.metadata.name: queue for queue in self._queues.all()}
        accepted: list[Command] = []
        for command in commands:
            why = refusal(command, queues, reviewed_from_ms, self._policy.namespaces)
            if why:
                await self._runtime.refuse(command, why)
            else:
                accepted.append(command)
        return accepted

    async def _delete_commands(
        self, commands: Iterable[Command], refused: Mapping[str, KubeError]
    ) -> None:
        """Delete the Commands, but for those whose queue was not written and is to be tried
        again.
        """
        attempts: dict[str, int] = {}
        for command in commands:
            if command.target is None or command.target.name not in refused:
                await self._writes.delete(COMMANDS, command.metadata)
                continue
            uid = command.metadata.uid
            attempts[uid] = self._attempts.get(uid, 0) + 1
            if attempts[uid] >= _ATTEMPTS_MAX:
                why = f"target.name: in {_ATTEMPTS_MAX} attempts, the queue was not written"
                await self._runtime.refuse(command, why)
        self._attempts = attempts

    async def _create_default_queues(self) -> None:
        for name, reclaimable in ((ROOT_QUEUE, False), (DEFAULT_QUEUE, True)):
            if self._queues.get(name) is None:
                queue = Queue(
                    metadata=Metadata(name=name),
                    spec=QueueSpec(weight=1, reclaimable=reclaimable),
                )
                self._queues.learn((await self._writes.create(QUEUES_VOLCANO, queue)).body)

    async def _update_allocated(self) -> float:
        """Request the ledger if a pause is over. Returns the seconds until the next request."""
        now_s = asyncio.get_running_loop().time()
        pauses_s = self._pauses_s
        if now_s >= self._counted_from_s + pauses_s[0]:
            # First: a group may change during the request.
            self._pauses_s = pauses_s[1:] or pauses_s
            allocated = await self._read_allocated()
            self._counted_from_s = now_s
            if allocated is not None:
                self._allocated = allocated
            else:
                self._pauses_s = max(pauses_s, self._pauses_s, key=len)
                self._counted_from_s += _RETRY_S
        return self._counted_from_s + self._pauses_s[0] - now_s

    async def _write(self, change: Change) -> None:
        """Write the changes of a queue, in an order that a repetition completes after any failure.

        A closing queue is marked first, since without the mark it would stay closed when its parent
        opens. The mark of an opening queue is removed last.
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
            event = ControllerEvent("Normal", "CloseQueue", "Close queue succeed")
            self._events.record(QUEUES_VOLCANO, _identity(change), event)

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
            # In a merge patch, null removes a member.
            status["allocated"] = {**dict.fromkeys(stored), **change.allocated}
        if status:
            await self._patch(change, {"status": status}, "status")

    async def _patch(self, change: Change, patch: dict[str, Any], subresource: str = "") -> None:
        written = await self._writes.patch(
            QUEUES_VOLCANO, _identity(change), patch, subresource=subresource
        )
        self._queues.learn(written.body)

    def _queue_changed(self, _old: Queue | None, _new: Queue | None) -> None:
        if all(self._queues.get(name) is not None for name in (ROOT_QUEUE, DEFAULT_QUEUE)):
            self._has_default_queues.set()
        self._wake(_ALL)

    def _command_changed(self, _old: Command | None, new: Command | None) -> None:
        if new is not None and _is_ours(new):
            self._wake(_ALL)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        was, now = _queue_of(old), _queue_of(new)
        if was != now:
            if was is not None:
                self._groups[was] -= 1
                if not self._groups[was]:
                    del self._groups[was]
            if now is not None:
                self._groups[now] += 1
        if was != now or self._pauses_s != _PAUSES_S:
            self._wake(_ALL)
        self._pauses_s = _PAUSES_S


def _queue_of(group: PodGroup | None) -> str | None:
    """The queue of an unfinished group; None for another one."""
    if group is None or group.status.phase == "Completed":
        return None
    return group.spec.queue or DEFAULT_QUEUE


def _is_ours(command: Command) -> bool:
    target = command.target
    return (
        target is not None
        and target.kind == QUEUES_VOLCANO.kind
        and target.api_version.partition("/")[0] == QUEUES_VOLCANO.group
        and command.metadata.deletion_timestamp is None
    )


def _identity(change: Change) -> Metadata:
    return Metadata(name=change.name, uid=change.uid)
