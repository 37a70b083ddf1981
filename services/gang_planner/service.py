"""The asyncio shell of the planner: one loop that applies what arrived and, while active, decides.

The loop takes everything that has arrived, applies it, and if this process is the writer runs one
cycle: it appends the decisions and notes (awaited, fenced), gives the core their sequences, and
publishes verdicts. More records arrive during an append; the next turn takes them all. There is no
period: the loop sleeps until a record arrives or the instant that the core asked for.

The fence alone decides which planner is active; the lease only decides which planner tries. A
standby applies the same records a fraction of a second later, keeps the recording, and answers
queries. When it gets the lease it reads to the ends of the logs at full speed, and takes over.
"""

import asyncio
import contextlib
import logging
from functools import partial
from typing import Final, NoReturn

from services.gang_planner.applier import Applier
from services.gang_planner.config import PlannerSettings
from services.gang_planner.core.framework.arguments import ConfigurationError
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.queries.queue_figures import QueueFigures
from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.decision_writer import DecisionWriter
from services.gang_planner.inbox import Arrival, Inbox, RefusalArrival
from services.gang_planner.log_follower import STANDBY_PAUSE_S, LogFollower
from services.gang_planner.policy_file import PolicyFile
from services.gang_planner.readiness import ColdStart, ViewReadiness
from services.gang_planner.reporting import Reporting
from services.gang_planner.standby import Standby
from services.gang_planner.tracing import GangTraces
from shared.bus.connection import Bus
from shared.bus.consumer_sets import ConsumerSet, ConsumerSetLost
from shared.bus.errors import NoAnswer
from shared.bus.questions import serve
from shared.contracts import codec, subjects
from shared.contracts.questions import RequestRefused
from shared.runtime.endings import StateVoid
from shared.runtime.lifecycle import Context, Step
from shared.runtime.settings import SettingsError

#: A standby begins its new generation at the limit, and the active planner at this multiple of it:
#: then it hands over to a standby that is done with its own.
_ACTIVE: Final = 1.5


class Renewal:
    """Compares a planner's size with the one that it had when it had read everything: it determines
    when a planner begins a new generation, to forget what no object has any more.

    Pod shapes, terms and names of resources are interned: their numbers are in all tables of the
    core, so none of them can be removed. Users make them up (each claim's name is a part of a
    shape), so they would grow for as long as the process lives. A planner that has grown reads
    everything again, as after a start: a takeover is what all of its tables are made for, and no
    decision depends on it.
    """

    def __init__(self, spare: int) -> None:
        """`spare`: by how much the size may exceed twice the first one."""
        self._spare = spare
        self._first: int | None = None

    def is_due(self, size: int, *, active: bool) -> bool:
        """Whether a planner of this size should begin a new generation. A state that is as large
        because its cluster is has no reason to: its next generation begins at that size.
        """
        if self._first is None:
            self._first = size
        limit = 2 * self._first + self._spare
        return size > (_ACTIVE * limit if active else limit)


log = logging.getLogger(__name__)

#: Pause before JetStream is asked again for the ends of the logs.
_ENDS_RETRY_MS = 100
#: A stop waits at most this long for the end of a recording.
_COMPLETE_S = 1.0


class GangPlanner:
    """One planner process, active or standby."""

    def __init__(self, context: Context[PlannerSettings], consumers: int) -> None:
        """Read through the set of consumers with this number.

        Raises:
            SettingsError: The policy file cannot be used.
        """
        settings = context.settings
        self._context = context
        self._policy = _policy_of(settings)
        self._planner = Planner(self._policy.configuration)
        self._inbox = Inbox()
        self._applier = Applier(self._planner, context.foreign_messages.met, context.clock)
        self._follower = LogFollower(context.bus, self._inbox, consumers)
        self._view = ViewReadiness(context.ready, self._applier)
        self._reporting = Reporting(context.metrics, context.now_ms, self._view.age_s)
        self._traces = GangTraces(context.tracer)
        self._cold_start = ColdStart(settings.cold_start_wait_s)
        self._renewal = Renewal(settings.interned_max)
        self._writer = DecisionWriter(
            context,
            self._planner,
            self._applier,
            self._reporting,
            self._traces,
            wake=self._inbox.wake,
        )
        self._reporting.volcano.watch(self._queue_figures)
        self._planner.on_action(self._reporting.volcano.action_began)
        self._standby = Standby(context, self._planner, self._applier)
        self._lease = context.lease(subjects.PLANNER_LEASE_KEY, self._can_decide)
        #: This process has the lease, and reads to the ends that the logs had when it got it.
        self._catching_up = False
        #: Pause between two reads of a log; None: the cluster state was not complete yet.
        self._pause_s: float | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Serve until cancelled; ends with `Superseded` when another planner has become the
        writer.
        """
        context = self._context
        context.ready.require("caught up")
        context.set_active(False)
        context.spawn("follow-cluster", self._follower.follow_cluster())
        context.spawn("follow-decisions", self._follower.follow_decisions())
        report_policy = partial(context.ready.note, "policy")
        context.spawn("policy-file", self._policy.watch(self._inbox.wake, report_policy))
        context.spawn("repair-verdicts", self._writer.repair_verdicts())
        context.spawn("view-readiness", self._view.watch())
        lease = context.spawn("lease", self._lease.run(self._on_lease))
        context.on_shutdown(Step.FINISH, "last cycle", self._finish)
        context.on_shutdown(Step.PUBLISH, "verdicts", self._writer.flush)
        context.on_shutdown(Step.PUBLISH, "recording", self._standby.close)

        async def release_lease() -> None:
            lease.cancel()
            await self._lease.release()

        context.on_shutdown(Step.RELEASE_LEASE, "lease", release_lease)
        await self._standby.serve()
        await serve_refusals(context.bus, self._inbox)
        await self._loop()

    def _can_decide(self) -> bool:
        """Whether this process could decide now; called in the lease's thread."""
        return self._applier.caught_up and self._view.able

    def _on_lease(self, _held: bool) -> None:
        self._inbox.wake()

    async def _finish(self) -> None:
        """Let the current turn end; no other begins. A recording is completed."""
        self._inbox.wake()
        await self._idle.wait()
        if self._standby.recording and self._applier.caught_up:
            await self._complete_recording()

    async def _loop(self) -> None:
        wakeup_ms: int | None = None
        while not self._context.stopping.is_set():
            arrivals = await self._inbox.take(self._timeout_s(wakeup_ms))
            self._idle.clear()
            try:
                wakeup_ms = await self._turn(arrivals)
            finally:
                self._idle.set()

    async def _turn(self, arrivals: list[Arrival]) -> int | None:
        """Apply what arrived; decide if this is the writer. Returns the instant of the next turn if
        nothing arrives before; None: there is none.
        """
        self._writer.check_foreign(arrivals)
        self._applier.apply(arrivals)
        self._reporting.arrived(arrivals)
        self._traces.take(arrivals)
        if self._planner.configuration is not self._policy.configuration:
            self._planner.configure(self._policy.configuration)
        if not self._applier.caught_up:
            return None
        self._context.ready.set("caught up")
        if self._renewal.is_due(self._planner.interned, active=self._writer.active):
            await self._renew()
        self._context.decisions = self._follower.decisions_generation
        if not self._writer.active:
            self._standby.record(arrivals, self._context.now_ms())
            if not self._lease.held:
                self._catching_up = False
                # It may have lost the lease while it waited.
                self._context.ready.set("cold start")
                self._set_pause(0.0 if self._standby.awaits_base else STANDBY_PAUSE_S)
                return None
            if not self._catching_up and not await self._catch_up():
                return self._context.now_ms() + _ENDS_RETRY_MS
            if (cold_until_ms := self._cold_until_ms()) is not None:
                return cold_until_ms
            # More records may have to be applied first; their arrival begins another turn.
            generations = self._follower.decisions_generation, self._follower.verdicts_generation
            if not (self._applier.caught_up and await self._writer.take_over(*generations)):
                return None
            self._follower.lead()
            self._standby.become_active()
            self._traces.lead(self._context.now_ms())
        return await self._writer.decide()

    async def _renew(self) -> NoReturn:
        """End this generation between two appends; a standby takes over at once."""
        await self._lease.release()
        await self._standby.close()
        raise StateVoid(
            f"this planner has {self._planner.interned} shapes, terms and names of resources in "
            "memory, most of which no object has any more: it reads everything again"
        )

    def _queue_figures(self) -> list[QueueFigures]:
        """For metrics; empty on a standby, whose figures would double every sum over replicas."""
        return self._planner.queue_figures() if self._writer.active else []

    def _cold_until_ms(self) -> int | None:
        """When this planner may decide after NATS lost DECISIONS; None: now."""
        now_ms, ready = self._context.now_ms(), self._context.ready
        self._cold_start.observe(self._follower.opened, now_ms, self._follower.opened_age_ms)
        until_ms = self._cold_start.until_ms(now_ms)
        if until_ms is None:
            ready.set("cold start")
        else:
            ready.unready("cold start", "DECISIONS was lost: its bindings may still arrive")
        return until_ms

    def _set_pause(self, pause_s: float) -> None:
        if pause_s != self._pause_s:
            self._pause_s = pause_s
            self._follower.set_pause(pause_s)

    async def _catch_up(self) -> bool:
        """Read the logs to their ends from now on; False when JetStream did not return these."""
        self._set_pause(0.0)
        try:
            ends = await self._follower.read_ends()
        except NoAnswer as error:
            log.warning("cannot read the ends of the logs: %s", error)
            return False
        self._applier.apply([ends])
        self._catching_up = True
        return True

    async def _complete_recording(self) -> None:
        """Read the records that the recording's last decisions follow from, without a pause."""
        self._set_pause(0.0)
        with contextlib.suppress(NoAnswer, TimeoutError):
            async with asyncio.timeout(_COMPLETE_S):
                ends = await self._follower.read_ends()
                self._applier.apply([ends])
                end_seq, applied = ends.ends[subjects.CLUSTER], self._applier.applied
                while not self._applier.caught_up or applied[subjects.CLUSTER] < end_seq:
                    arrivals = await self._inbox.take(None)
                    self._applier.apply(arrivals)
                    self._standby.record(arrivals, self._context.now_ms())

    def _timeout_s(self, wakeup_ms: int | None) -> float | None:
        if wakeup_ms is None:
            return None
        return max(0.0, (wakeup_ms - self._context.now_ms()) / 1000)


async def serve_refusals(bus: Bus, inbox: Inbox) -> None:
    """Put reports of refused ProvisioningRequests into the inbox from now on."""

    async def take(report: RequestRefused) -> None:
        await inbox.put([RefusalArrival(report)])

    await serve(bus, subjects.REPORT_REFUSED, codec.decode_request_refused, take)


def _policy_of(settings: PlannerSettings) -> PolicyFile:
    """Raises SettingsError: the file cannot be used."""
    defaults = Defaults(
        preflight=settings.preflight,
        repair_deadline_s=settings.repair_deadline_s,
        hold_s=settings.hold_s,
        reserve_s=settings.reserve_s,
        reservations=settings.reservations,
        ceilings=settings.ceilings,
    )
    try:
        return PolicyFile(settings.scheduler_conf, defaults, strict=settings.strict_conf)
    except (ConfigurationError, OSError, UnicodeDecodeError) as error:
        place = f" {settings.scheduler_conf}" if settings.scheduler_conf else ""
        raise SettingsError(f"--scheduler-conf{place}: {error}") from None


async def main(context: Context[PlannerSettings]) -> None:
    """Run the planner in `context` until it is stopped."""
    context.ready.require("caught up")
    consumers = context.ordinal
    if context.settings.consumer_sets:
        consumers = await _hold_consumers(context)
    await GangPlanner(context, consumers).run()


async def _hold_consumers(context: Context[PlannerSettings]) -> int:
    """Return the number of the set of consumers that this process holds until its end."""
    count = context.settings.consumer_sets
    held = ConsumerSet(context.bus, "gang-planner", context.instance, count)
    why = f"all {count} sets of consumers are in use"
    number = await held.claim(lambda: context.ready.unready("consumers", why))
    context.ready.set("consumers")

    async def watch() -> None:
        try:
            await held.watch()
        except ConsumerSetLost as error:
            raise StateVoid(str(error)) from error

    watching = context.spawn("consumers", watch())

    async def release() -> None:
        watching.cancel()
        await held.release()

    context.on_shutdown(Step.RELEASE_LEASE, "consumers", release)
    return number
