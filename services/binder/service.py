"""The binder's shell: takes deliveries, runs their state machines, publishes outcomes and
acknowledges.

The path of one delivery: `_take` -> `_start` -> a state machine in an `ActiveDecision` ->
`_proceed` hands its requests to the dispatcher, which returns their answers -> its outcome ->
`_finish`. A decision is pulled while the dispatcher's queue is short, one at a time and at most
`decisions_max` in all: a message left in the stream is free for other binders, and needs no signs
of life. At shutdown no decision is taken, those in flight are finished within the grace period, and
the rest is returned to the stream.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Coroutine
from typing import Final

import msgspec

from services.binder.active_decision import (
    PROGRESS_EVERY_S,
    ActiveDecision,
    DeliveryLease,
    activate,
)
from services.binder.api import KubePods
from services.binder.config import BinderSettings
from services.binder.core.commands import Command, Finish, Forget, Limits, LookUp
from services.binder.core.outcome import Sender, refusal_of
from services.binder.decisions_stream import DecisionsStream
from services.binder.outcome_ledger import OutcomeLedger, acknowledge, request_redelivery
from services.binder.reporting import Reporting
from services.binder.request_dispatcher import Pods, RequestDispatcher
from shared.bus.errors import BusError
from shared.bus.pull import Delivery, PullLoop
from shared.contracts import subjects
from shared.contracts.codec import decode_act
from shared.contracts.decisions import Act
from shared.contracts.foreign_messages import is_foreign
from shared.contracts.outcomes import Outcome
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.runtime.lifecycle import Context, Step
from shared.telemetry.metrics import ApiCalls

logger = logging.getLogger(__name__)

#: Messages of one pull. None may arrive while `_take` waits: it would get no signs of life, and be
#: delivered to another binder before this one starts it. A pull takes a millisecond, a queue that
#: has just become short lasts for tens of them.
_PULL_BATCH: Final = 1
#: Delay of a record that this binder cannot decode: a newer binder may be starting.
_UNDECODABLE_RETRY_S: Final = 1.0
#: Of the grace period, kept for returning decisions that could not be finished.
_RETURN_S: Final = 1.0


async def serve(ctx: Context[BinderSettings]) -> None:
    """Run a binder until it is stopped. Raises CredentialsError without valid credentials."""
    settings, ready = ctx.settings, ctx.ready
    ready.require("kubernetes", "decisions")

    def on_health(why: str) -> None:
        if why:
            ready.unready("kubernetes", why)
        else:
            ready.set("kubernetes")

    credentials = await load(settings.kubeconfig, settings.context)
    client = KubeClient(
        credentials,
        connections_max=settings.posts_max,
        user_agent="tutti-binder",
        on_call=ApiCalls(ctx.metrics),
    )
    async with client:
        pods = KubePods(client, timeout_s=settings.request_timeout_s, on_health=on_health)
        # Deliveries are counted: take none before it can be carried out.
        await pods.wait_reachable()
        ctx.spawn("health", pods.watch_reachable())
        await Binder(ctx, pods).run()


class Binder:
    """Everything one binder process does with the bus and the API server."""

    def __init__(
        self, ctx: Context[BinderSettings], pods: Pods, limits: Limits | None = None
    ) -> None:
        settings = ctx.settings
        self._ctx = ctx
        self._limits = limits or Limits(
            claims_ms=int(settings.claims_wait_s * 1000),
            attaching_ms=int(settings.binding_conditions_wait_s * 1000),
        )
        #: Set when another decision may be started, and at shutdown.
        self._may_start = asyncio.Event()
        self._dispatcher = RequestDispatcher(
            pods,
            self._proceed,
            ctx.now_ms,
            requests_max=settings.posts_max,
            on_short=self._may_start.set,
        )
        self._pulling = PullLoop(
            ctx.bus, subjects.DECISIONS, subjects.BINDER_CONSUMER, batch=_PULL_BATCH
        )
        self._ledger = OutcomeLedger(ctx.bus, ctx.foreign_messages.met)
        self._reporting = Reporting(ctx.metrics, ctx.tracer)
        self._reporting.requests_max.set_function(lambda: self._dispatcher.width)
        self._stream = DecisionsStream(ctx.bus, self._abandon_all)
        #: Pulled, not started yet.
        self._waiting: deque[DeliveryLease] = deque()
        #: In order of arrival: the order of a set would differ from process to process.
        self._active: dict[ActiveDecision, None] = {}
        self._tasks = asyncio.TaskGroup()
        self._busy = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self._pulled_off = asyncio.Event()

    async def run(self) -> None:
        """Bind until cancelled. A broken invariant ends it, with everything held unacknowledged."""
        ctx = self._ctx
        await self._stream.open()
        ctx.decisions = self._stream.generation
        ctx.on_shutdown(Step.STOP_TAKING, "decisions", self._stop_taking)
        ctx.on_shutdown(Step.FINISH, "decisions", self._finish_all)
        async with self._tasks:
            self._spawn(self._dispatcher.run(), "requests")
            self._spawn(self._keep_leases(), "signs-of-life")
            ctx.ready.set("decisions")
            await self._pulling.run(self._take)
            self._pulled_off.set()

    # Taking.

    async def _take(self, deliveries: list[Delivery]) -> None:
        """Start what was pulled; return once another decision may be pulled."""
        now_s, connection = time.monotonic(), self._ctx.bus.connections
        self._waiting.extend(
            DeliveryLease(delivery, now_s, connection=connection) for delivery in deliveries
        )
        self._busy.set()
        while not self._closing:
            if not self._dispatcher.short or len(self._active) >= self._ctx.settings.decisions_max:
                self._may_start.clear()
                await self._may_start.wait()
            elif self._waiting:
                await self._start(self._waiting.popleft())
            else:
                return

    async def _start(self, lease: DeliveryLease) -> None:
        """Begin with one delivery, or refuse it at once."""
        delivery = lease.delivery
        if not lease.is_held(time.monotonic()) or not await self._stream.is_current(lease):
            self._reporting.abandoned.inc()
            return
        sender = Sender(
            self._ctx.instance,
            delivery.seq,
            self._stream.delivered(delivery),
            self._stream.generation,
        )
        try:
            decision = decode_act(delivery.payload)
        except msgspec.MsgspecError as error:
            if is_foreign(subjects.DECISIONS, delivery.payload):
                self._ctx.foreign_messages.met(
                    subjects.DECISIONS, delivery.seq, delivery.subject, delivery.payload
                )
                await acknowledge(delivery)
                return
            await self._undecodable(delivery, sender, str(error))
            return
        reason = await self._stream.refusal_of(decision, delivery, sender)
        if sender.generation != self._stream.generation:
            # DECISIONS was created again: of which stream the delivery is, the next one shows.
            await request_redelivery(delivery)
            return
        if reason is not None:
            refusal = refusal_of(decision, sender, reason=reason, now_ms=self._ctx.now_ms())
            await self._refuse(delivery, refusal, decision)
            return
        active = activate(decision, lease, sender, self._limits, self._stream.generation)
        self._active[active] = None
        self._idle.clear()
        self._reporting.in_progress.set(len(self._active))
        self._proceed(active, active.machine.start(self._ctx.now_ms()))

    def _abandon_all(self, generation: str) -> None:
        """DECISIONS was created again: nothing held of the lost one may be carried out."""
        self._ctx.decisions = generation
        self._waiting.clear()
        for active in list(self._active):
            self._abandon(active)

    async def _undecodable(self, delivery: Delivery, sender: Sender, error: str) -> None:
        """Leave a record to a newer binder, which may decode it, for a while; then refuse it."""
        logger.error("decision %d cannot be read: %s", delivery.seq, error)
        if delivery.delivered <= self._limits.deliveries_max:
            await request_redelivery(delivery, _UNDECODABLE_RETRY_S)
            return
        outcome = Outcome(
            gang_id=delivery.subject.removeprefix(subjects.act("")),
            decision_seq=sender.decision_seq,
            epoch=0,
            generation=sender.generation,
            binder=sender.binder,
            delivered=sender.delivered,
            reason="Undecodable",
            notes=(error[:300],),
            received_ms=self._ctx.now_ms(),
        )
        await self._refuse(delivery, outcome, None)

    async def _refuse(self, delivery: Delivery, outcome: Outcome, decision: Act | None) -> None:
        gang = decision.gang if decision is not None else f"with id {outcome.gang_id}"
        if await self._settle(delivery, outcome, gang):
            self._reporting.refused(outcome, decision, self._ctx.now_ms())

    # Carrying out.

    def _proceed(self, active: ActiveDecision, commands: tuple[Command, ...]) -> None:
        """Carry out what a state machine asks for next."""
        seq = active.lease.delivery.seq
        for command in commands:
            match command:
                case LookUp():
                    self._spawn(self._look_up(active), f"look-up-{seq}")
                case Finish():
                    self._spawn(self._finish(active, command.outcome), f"finish-{seq}")
                case Forget():
                    self._spawn(self._forget(active), f"forget-{seq}")
                case _:
                    self._dispatcher.send(active, command)

    async def _look_up(self, active: ActiveDecision) -> None:
        """Claim the decision, unless it has its outcome; without an answer, abandon it."""
        machine, lease = active.machine, active.lease
        try:
            claimed = await self._ledger.claim(machine.decision.gang_id, machine.sender)
        except BusError as error:
            logger.warning(
                "gang %s: cannot claim decision %d: %s",
                machine.decision.gang,
                lease.delivery.seq,
                error,
            )
            claimed = "overtaken"
        if claimed == "overtaken":
            self._abandon(active)
        elif not lease.abandoned:
            self._proceed(active, machine.looked_up(outcome_exists=claimed == "finished"))

    async def _finish(self, active: ActiveDecision, outcome: Outcome) -> None:
        """Publish the outcome if the lease is still held, and release the decision."""
        lease = active.lease
        if not lease.is_held(time.monotonic()) or not await self._stream.is_current(lease):
            self._abandon(active)
            return
        if await self._settle(lease.delivery, outcome, active.machine.decision.gang):
            self._reporting.finished(active.machine.decision, outcome, self._ctx.now_ms())
        self._release(active)

    async def _settle(self, delivery: Delivery, outcome: Outcome, gang: str) -> bool:
        settled = await self._ledger.settle(delivery, outcome, gang)
        if settled == "refused":
            self._reporting.outcomes_refused.inc()
        elif settled == "overtaken":
            self._reporting.abandoned.inc()
        return settled == "done"

    async def _forget(self, active: ActiveDecision) -> None:
        await acknowledge(active.lease.delivery)
        self._release(active)

    def _abandon(self, active: ActiveDecision) -> None:
        """Send nothing more for it; JetStream delivers it again, to this binder or another one."""
        if active in self._active:
            active.lease.abandoned = True
            self._reporting.abandoned.inc()
            self._release(active)

    def _release(self, active: ActiveDecision) -> None:
        """Drop the decision, once, so that another may start."""
        if active not in self._active:
            return
        del self._active[active]
        self._may_start.set()
        self._reporting.in_progress.set(len(self._active))
        if not self._active:
            self._idle.set()

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        self._tasks.create_task(work, name=name)

    # Signs of life, and the shutdown.

    async def _keep_leases(self) -> None:
        """Send signs of life while any delivery is held."""
        while True:
            await self._busy.wait()
            await asyncio.sleep(PROGRESS_EVERY_S)
            if self._active or self._waiting:
                await self._send_signs_of_life()
            else:
                self._busy.clear()

    async def _send_signs_of_life(self) -> None:
        """Extend the ack wait of every delivery held; abandon those that may have expired."""
        now_s = time.monotonic()
        for active in list(self._active):
            if not active.lease.is_held(now_s):
                self._abandon(active)
        held = [active.lease for active in self._active] + list(self._waiting)
        for lease in held:
            # While disconnected it would be buffered and reach no server; in a stream that was
            # created again it would count for another message.
            if not self._ctx.bus.connected or not await self._stream.is_current(lease):
                return
            if not lease.is_held(time.monotonic()):
                continue  # reading the stream's state took too long
            try:
                await lease.delivery.in_progress()
            except BusError as error:
                logger.warning("the binder's heartbeat was not published: %s", error)
                return
            lease.renew(now_s)

    async def _stop_taking(self) -> None:
        """Pull no more, then return what is not started; before, it would be delivered here."""
        self._closing = True
        self._may_start.set()
        self._pulling.stop()
        await self._pulled_off.wait()
        waiting = list(self._waiting)
        self._waiting.clear()
        for lease in waiting:
            await request_redelivery(lease.delivery)

    async def _finish_all(self) -> None:
        """Let decisions in flight end; return those that the grace period does not suffice for."""
        try:
            async with asyncio.timeout(max(0.0, self._ctx.settings.shutdown_grace_s - _RETURN_S)):
                await self._idle.wait()
        except TimeoutError:
            left = list(self._active)
            logger.warning("returning %d unfinished decisions to the stream", len(left))
            for active in left:
                self._abandon(active)
                await request_redelivery(active.lease.delivery)
