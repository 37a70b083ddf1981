"""The binder's shell: takes deliveries, lets machines decide, sends, publishes, acknowledges.

One delivery's way: `_take` -> `_judge` -> a machine in a `ActiveDecision` -> `_proceed` hands its
requests to the lanes, which give it their answers -> its outcome -> `_finish`. A decision is
pulled while the lanes' line is short, one at a time and at most `decisions_max` in all: what waits
in the stream is free for other binders and needs no signs of life, as all that is held does. At
shutdown nothing new is taken, what is in flight is finished within the grace, the rest is given
back.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Coroutine
from typing import Final, assert_never

import msgspec

from services.binder.active_decision import ActiveDecision, carry
from services.binder.api import KubePods
from services.binder.config import BinderSettings
from services.binder.core.commands import (
    Command,
    Delete,
    Evict,
    Finish,
    Forget,
    Limits,
    LookUp,
    Mark,
    Post,
    Prepare,
    Read,
    Undo,
)
from services.binder.core.outcome import Sender, refusal_of
from services.binder.delivery_lease import PROGRESS_EVERY_S, DeliveryLease
from services.binder.outcome_ledger import Ledger, acknowledge, give_back
from services.binder.reporting import Reporting
from services.binder.request_dispatcher import Pods, RequestDispatcher
from services.binder.state import BinderState
from shared.bus.errors import BusError
from shared.bus.pull import Delivery, PullLoop
from shared.bus.stream_waits import stream_there
from shared.contracts import subjects
from shared.contracts.codec import decode_act
from shared.contracts.decisions import Act, EvictionDecision
from shared.contracts.foreign_messages import is_foreign
from shared.contracts.outcomes import Outcome
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.runtime.lifecycle import Context, Step
from shared.telemetry.api_calls import ApiCalls

logger = logging.getLogger(__name__)

#: Pulled at once. Nothing may arrive while `_take` waits for room: behind its back a message would
#: get no signs of life, and be another binder's before we look at it. A pull takes a millisecond, a
#: line that has just become short lasts for tens of them.
_PULL_BATCH: Final = 1
#: Before a record that we cannot read comes again: a newer binder may be starting.
_UNDECODABLE_RETRY_S: Final = 1.0
#: Of the grace, kept for giving back what could not be finished.
_GIVE_BACK_S: Final = 1.0


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
        # A delivery counts even when it comes to nothing: take none before it can be carried out.
        await pods.wait_reachable()
        ctx.spawn("health", pods.watch_reachable())
        await Binder(ctx, pods).run()


class Binder:
    """Everything one binder process does with the bus and the API server."""

    def __init__(
        self, ctx: Context[BinderSettings], pods: Pods, limits: Limits | None = None
    ) -> None:
        """Make one; nothing happens before `run`."""
        settings = ctx.settings
        self._ctx = ctx
        self._limits = limits or Limits(claims_ms=int(settings.claims_wait_s * 1000))
        #: Set when there may be room for another decision, or none is wanted any more.
        self._room = asyncio.Event()
        self._dispatcher = RequestDispatcher(
            pods,
            self._proceed,
            ctx.now_ms,
            requests_max=settings.posts_max,
            on_short=self._room.set,
        )
        self._pulling = PullLoop(
            ctx.bus, subjects.DECISIONS, subjects.BINDER_CONSUMER, batch=_PULL_BATCH
        )
        self._ledger = Ledger(ctx.bus, ctx.foreign_messages.met)
        self._reporting = Reporting(ctx.metrics, ctx.tracer)
        self._reporting.watch(lambda: self._dispatcher.width)
        self._state = BinderState("")
        #: The connection (`Bus.connections`) over which DECISIONS was last looked at, and the first
        #: one on which it was the stream that it is: a server that was away may have lost it.
        self._looked_over = 0
        self._same_since = 0
        #: Last record of DECISIONS at that look.
        self._known_to = 0
        #: Pulled, not started yet.
        self._waiting: deque[DeliveryLease] = deque()
        #: In order of arrival: a set's order would differ from process to process.
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
        self._looked_over = ctx.bus.connections
        info = await stream_there(ctx.bus, subjects.DECISIONS)
        self._known_to = info.last_seq
        ctx.decisions = info.generation
        self._state = BinderState(ctx.decisions)
        ctx.on_shutdown(Step.STOP_TAKING, "decisions", self._stop_taking)
        ctx.on_shutdown(Step.FINISH, "decisions", self._finish_all)
        async with self._tasks:
            self._spawn(self._dispatcher.run(), "lanes")
            self._spawn(self._keep_ours(), "signs-of-life")
            ctx.ready.set("decisions")
            await self._pulling.run(self._take)
            self._pulled_off.set()

    # Taking.

    async def _take(self, deliveries: list[Delivery]) -> None:
        """Start what was pulled; return, for the next to be pulled, once there is room for it."""
        now_s, connection = time.monotonic(), self._ctx.bus.connections
        self._waiting.extend(
            DeliveryLease(delivery, now_s, connection=connection) for delivery in deliveries
        )
        self._busy.set()
        while not self._closing:
            if not self._dispatcher.short or len(self._active) >= self._ctx.settings.decisions_max:
                self._room.clear()
                await self._room.wait()
            elif self._waiting:
                await self._start(self._waiting.popleft())
            else:
                return

    async def _start(self, lease: DeliveryLease) -> None:
        """Begin with one delivery, or have done with it at once."""
        delivery = lease.delivery
        if not lease.ours(time.monotonic()) or not await self._is_current(lease):
            self._reporting.abandoned()
            return
        sender = Sender(
            self._ctx.instance, delivery.seq, self._delivered(delivery), self._state.generation
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
        reason = await self._judge(decision, delivery, sender)
        if reason:
            now_ms = self._ctx.now_ms()
            refusal = refusal_of(decision, sender, reason=reason, now_ms=now_ms)
            await self._refuse(delivery, refusal, decision)
            return
        active = carry(decision, lease, sender, self._limits, self._state.generation)
        self._active[active] = None
        self._idle.clear()
        self._reporting.in_progress(len(self._active))
        self._proceed(active, active.machine.start(self._ctx.now_ms()))

    async def _judge(self, decision: Act, delivery: Delivery, sender: Sender) -> str:
        """Say why the decision must not be carried out; "" when it may."""
        if sender.delivered == 1 and await self._is_late(decision, delivery):
            # The preemptor gave up before any binder started this decision.
            return "Expired"
        seq, delivered = sender.decision_seq, sender.delivered
        if self._state.looks_replaced(seq, delivered=delivered):
            await self._follow_stream()
        reason = self._state.judge(decision.epoch, seq, delivered=delivered)
        if reason and await self._follow_stream():
            reason = self._state.judge(decision.epoch, seq, delivered=delivered)
        return reason

    async def _is_late(self, decision: Act, delivery: Delivery) -> bool:
        """Whether an eviction's time is over. Its instants are of the planner's clock, so only
        their difference counts, from when the server stored it; what is not known is late.
        """
        if not isinstance(decision, EvictionDecision) or not decision.until_ms:
            return False
        try:
            server_ms = (await self._ctx.bus.stream_info(subjects.DECISIONS)).now_ms
        except BusError as error:
            logger.warning("the age of eviction %d is unknown: %s", delivery.seq, error)
            return True
        lasts_ms = decision.until_ms - decision.cycle.now_ms
        return server_ms is None or server_ms - delivery.stored_ms > lasts_ms

    async def _is_current(self, lease: DeliveryLease) -> bool:
        """Whether a message is of the DECISIONS that exists now; False also while that is unknown.
        Costs a request for each connection.
        """
        if self._looked_over != self._ctx.bus.connections:
            await self._follow_stream()
        known = self._looked_over == self._ctx.bus.connections
        return known and lease.connection >= self._same_since

    def _delivered(self, delivery: Delivery) -> int:
        """How often it was delivered, as far as anybody can know.

        A nats-server that is killed forgets deliveries of its last seconds and counts from one
        again (tried). So what was in the stream when we connected may have been in other hands.
        """
        return max(delivery.delivered, 2 if delivery.seq <= self._known_to else 1)

    async def _follow_stream(self) -> bool:
        """Look whether DECISIONS was made again; True: it was, all sequences begin again, and what
        was held of the lost one is abandoned.
        """
        over, before = self._ctx.bus.connections, self._state.generation
        try:
            info = await self._ctx.bus.stream_info(subjects.DECISIONS)
        except BusError as error:
            logger.warning("cannot look at DECISIONS: %s", error)
            return False
        self._looked_over = over
        self._known_to = info.last_seq
        if info.generation == before:
            return False
        logger.warning("DECISIONS was created again: it is %s, not %s", info.generation, before)
        self._same_since = over
        self._state.follow(info.generation)
        self._ctx.decisions = info.generation
        self._waiting.clear()
        for active in list(self._active):
            self._abandon(active)
        return True

    async def _undecodable(self, delivery: Delivery, sender: Sender, error: str) -> None:
        """Leave a record that we cannot read to a newer binder for a while, then answer it."""
        logger.error("decision %d cannot be read: %s", delivery.seq, error)
        if delivery.delivered <= self._limits.deliveries_max:
            await give_back(delivery, _UNDECODABLE_RETRY_S)
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

    async def _refuse(
        self,
        delivery: Delivery,
        outcome: Outcome,
        decision: Act | None,
    ) -> None:
        if await self._settle(delivery, outcome):
            self._reporting.refused(outcome, decision, self._ctx.now_ms())

    # Carrying out.

    def _proceed(self, active: ActiveDecision, commands: tuple[Command, ...]) -> None:
        """Do what a machine wants next."""
        seq = active.lease.delivery.seq
        for command in commands:
            match command:
                case Post() | Mark() | Delete() | Evict() | Read() | Prepare() | Undo():
                    self._dispatcher.send(active, command)
                case LookUp():
                    self._spawn(self._look_up(active), f"look-up-{seq}")
                case Finish():
                    self._spawn(self._finish(active, command.outcome), f"finish-{seq}")
                case Forget():
                    self._spawn(self._forget(active), f"forget-{seq}")
                case _:
                    assert_never(command)

    async def _look_up(self, active: ActiveDecision) -> None:
        """Claim the decision, unless it has its outcome; without an answer it is not ours to do."""
        machine, lease = active.machine, active.lease
        try:
            claimed = await self._ledger.claim(machine.decision.gang_id, machine.sender)
        except BusError as error:
            logger.warning("cannot claim decision %d: %s", lease.delivery.seq, error)
            claimed = "overtaken"
        if claimed == "overtaken":
            self._abandon(active)
        elif not lease.given_up:
            self._proceed(active, machine.looked_up(outcome_exists=claimed == "finished"))

    async def _finish(self, active: ActiveDecision, outcome: Outcome) -> None:
        """Publish the outcome if the decision still is ours, and make room for another."""
        lease = active.lease
        if not lease.ours(time.monotonic()) or not await self._is_current(lease):
            self._abandon(active)
            return
        if await self._settle(lease.delivery, outcome):
            self._reporting.finished(active.machine.decision, outcome, self._ctx.now_ms())
        self._release(active)

    async def _settle(self, delivery: Delivery, outcome: Outcome) -> bool:
        settled = await self._ledger.settle(delivery, outcome)
        if settled == "refused":
            self._reporting.outcome_refused()
        elif settled == "overtaken":
            self._reporting.abandoned()
        return settled == "done"

    async def _forget(self, active: ActiveDecision) -> None:
        await acknowledge(active.lease.delivery)
        self._release(active)

    def _abandon(self, active: ActiveDecision) -> None:
        """Send nothing more for it; the message comes again, to this binder or another one."""
        if active in self._active:
            active.lease.given_up = True
            self._reporting.abandoned()
            self._release(active)

    def _release(self, active: ActiveDecision) -> None:
        """Let go of it, once, and make room for another."""
        if active not in self._active:
            return
        del self._active[active]
        self._room.set()
        self._reporting.in_progress(len(self._active))
        if not self._active:
            self._idle.set()

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        self._tasks.create_task(work, name=name)

    # Keeping it ours, and giving it back.

    async def _keep_ours(self) -> None:
        """Send signs of life for everything held; without anything held, cost nothing."""
        while True:
            await self._busy.wait()
            await asyncio.sleep(PROGRESS_EVERY_S)
            if self._active or self._waiting:
                await self._sign_of_life()
            else:
                self._busy.clear()

    async def _sign_of_life(self) -> None:
        """Report to the consumer that all this is in progress; abandon what may be another's."""
        now_s = time.monotonic()
        for active in list(self._active):
            if not active.lease.ours(now_s):
                self._abandon(active)
        held = [active.lease for active in self._active] + list(self._waiting)
        for lease in held:
            # Written into a buffer while disconnected, it would reach no server; and in a stream
            # made again it would speak for another message.
            if not self._ctx.bus.connected or not await self._is_current(lease):
                return
            if not lease.ours(time.monotonic()):
                continue  # the look took too long
            try:
                await lease.delivery.in_progress()
            except BusError as error:
                logger.warning("no sign of life: %s", error)
                return
            lease.progressed(now_s)

    async def _stop_taking(self) -> None:
        """Pull no more, then give back what is not started: earlier it would come back to us."""
        self._closing = True
        self._room.set()
        self._pulling.stop()
        await self._pulled_off.wait()
        waiting = list(self._waiting)
        self._waiting.clear()
        for lease in waiting:
            await give_back(lease.delivery)

    async def _finish_all(self) -> None:
        """Let what is in flight end; give back what the grace does not suffice for."""
        try:
            async with asyncio.timeout(
                max(0.0, self._ctx.settings.shutdown_grace_s - _GIVE_BACK_S)
            ):
                await self._idle.wait()
        except TimeoutError:
            left = list(self._active)
            logger.warning("giving back %d decisions that are not finished", len(left))
            for active in left:
                self._abandon(active)
                await give_back(active.lease.delivery)
