"""The active planner's part: takes over, runs cycles, and makes their decisions durable.

Order per cycle: every decision and note is appended and acknowledged; the core receives their
sequences; only then are the verdicts of that cycle published. An append whose result is unknown is
repeated until it is known, and no other cycle runs until then.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from services.gang_planner.applier import Applier
from services.gang_planner.config import PlannerSettings
from services.gang_planner.core.in_flight_limit import InFlightLimit
from services.gang_planner.core.planner import Planner
from services.gang_planner.inbox import Arrival, DecisionArrival, ForeignArrival
from services.gang_planner.reporting import Reporting
from services.gang_planner.tracing import GangTraces
from services.gang_planner.verdict_repair import VerdictRepair
from shared.bus.errors import AppendRefused, BusUnavailable, MessageTooLarge, Superseded
from shared.bus.fence import FencedLog
from shared.bus.jetstream_api import PublishAnswer
from shared.bus.publisher import Publisher
from shared.contracts import codec, subjects
from shared.contracts.decisions import Act, EpochOpened, EvictionDecision, GangDecision, Note
from shared.contracts.foreign_messages import is_foreign
from shared.contracts.verdicts import Verdict
from shared.model.invariants import required
from shared.runtime.lifecycle import Context

log = logging.getLogger(__name__)

#: The last verdict of a gang that is gone is kept for an hour, for a controller that was down.
_GONE_TTL_S = 3600
#: A verdict that ends a request for a PodGroup replaces it, and then expires.
_REQUEST_ENDED_TTL_S = 60
#: Pause before a record that the server refused, because its storage is full, is sent again.
_REFUSED_PAUSE_S = 1.0


class ForeignRecord(Superseded):
    """Another planner appended to DECISIONS: this planner's decisions in flight are not complete.

    The lifecycle begins a new generation in the same process, as a standby.
    """


class DecisionWriter:
    """Appends to DECISIONS and publishes VERDICTS while this process is the active planner."""

    def __init__(
        self,
        context: Context[PlannerSettings],
        planner: Planner,
        applier: Applier,
        reporting: Reporting,
        traces: GangTraces,
        *,
        wake: Callable[[], None],
    ) -> None:
        """Begin inactive; `wake` makes the loop call `decide` again."""
        self._context = context
        self._wake = wake
        self._reporting = reporting
        self._traces = traces
        self._planner = planner
        self._applier = applier
        self._fence: FencedLog | None = None
        self._publisher = Publisher(context.bus)
        self._verdict_repair = VerdictRepair(context.bus, context.foreign_messages.met)
        #: Verdicts that are not acknowledged, by subject.
        self._in_flight: dict[str, Verdict] = {}
        #: Subjects of requests to controllers that are in the stream (`Verdict.request_subjects`).
        self._requests: set[str] = set()
        #: Verdicts that were not stored, by gang id.
        self._unsent: dict[str, Verdict] = {}
        #: Gangs whose last verdict was overwritten in the stream.
        self._overwritten: set[str] = set()
        self._checkpoint_seq = 0
        self._checkpoint_ms = 0
        settings = context.settings
        self._in_flight_limit = InFlightLimit(settings.ahead_ms, settings.ahead_pods_min)

    @property
    def active(self) -> bool:
        """Whether this process opened the newest epoch that it knows of."""
        return self._fence is not None

    def check_foreign(self, arrivals: list[Arrival]) -> None:
        """Check that every record of DECISIONS was written by this planner while it is active.

        Raises:
            ForeignRecord: Another planner appended.
        """
        if self._fence is None:
            return
        for arrival in arrivals:
            if isinstance(arrival, ForeignArrival) and arrival.stream == subjects.DECISIONS:
                self._fence.applied(arrival.seq)
            if isinstance(arrival, DecisionArrival) and arrival.seq > self._fence.last_applied:
                raise ForeignRecord(f"record {arrival.seq} of DECISIONS is another planner's")

    async def take_over(self, decisions: str, verdicts: str) -> bool:
        """Open an epoch after the last applied record of DECISIONS.

        Args:
            decisions: Generation of DECISIONS from which the records were applied.
            verdicts: Likewise of VERDICTS.

        Returns:
            False when there are records to be applied first.
        """
        applied = self._applier.applied[subjects.DECISIONS]
        fence = FencedLog(
            self._context.bus, subjects.DECISIONS, last_applied=applied, generation=decisions
        )
        view = self._planner.view
        record = EpochOpened(
            epoch=applied + 1,
            planner=self._context.instance,
            at_ms=self._context.now_ms(),
            cluster_epoch=view.epoch,
            cluster_seq=view.cluster_seq,
            snapshot_seq=view.snapshot_seq,
            namespaced_ids=True,
        )
        try:
            seq = await self._append(fence, [(subjects.DECISIONS_EPOCH, codec.encode(record))])
        except Superseded:
            return False
        # Only now: the epoch is the sequence of its record, so it must follow the last one.
        fence.overlook(partial(is_foreign, subjects.DECISIONS))
        self._fence = fence
        self._verdict_repair.begin(self._applier.applied[subjects.VERDICTS], verdicts)
        self._requests = self._applier.recall_verdicts(self._reporting.recalled)
        self._planner.apply_decision(seq[0], record)
        self._planner.lead(seq[0])
        self._applier.decided(seq[0])
        self._checkpoint_seq = seq[0]
        now_ms = self._checkpoint_ms = self._context.now_ms()
        self._in_flight_limit.begin(now_ms, self._planner.answered, self._planner.in_flight_max)
        self._context.set_active(True)
        log.info("epoch %d opened", seq[0])
        return True

    async def decide(self) -> int | None:
        """Run one cycle and make it durable; returns the instant of the next one in milliseconds;
        None: not before a record arrives.

        Raises:
            Superseded: Another planner has become the writer.
        """
        fence = required(self._fence, "fence of a planner that decides")
        began_s = time.perf_counter()
        now_ms, planner = self._context.now_ms(), self._planner
        in_flight_max = self._in_flight_limit.in_flight_max(now_ms, planner.answered)
        age_ms = self._applier.view_age_ms
        step = planner.step(now_ms, in_flight_max, now_ms - age_ms if age_ms is not None else None)
        planned_s = time.perf_counter()
        self._reporting.cycled(planned_s - began_s)
        records: list[Act | Note] = [*step.decisions, *step.notes]
        if records:
            appended = [(_subject(record), codec.encode(record)) for record in records]
            for record, seq in zip(records, await self._append(fence, appended), strict=True):
                name = planner.gang_name(record.gang_id)
                planner.decided(seq, record)
                self._applier.decided(seq)
                self._reporting.appended(seq, record, name)
            self._reporting.appending_took(time.perf_counter() - planned_s)
        for verdict in [*self._take_owed(), *step.verdicts]:
            await self._publish(verdict)
        self._reporting.observe(
            planner.gangs_by_phase(),
            planner.open_decisions,
            planner.open_holds,
            planner.open_reservations,
        )
        self._reporting.pods_in_flight(planner.pods_in_flight, in_flight_max)
        await self._checkpoint_if_due(fence)
        return step.next_wakeup_ms

    async def repair_verdicts(self) -> None:
        """Republish, until cancelled, verdicts that were overwritten by foreign messages."""

        def republish(gang_ids: list[str]) -> None:
            self._overwritten.update(gang_ids)
            self._wake()

        await self._verdict_repair.run(republish)

    async def flush(self) -> None:
        """Wait until every verdict sent is acknowledged or refused."""
        await self._publisher.flush()

    async def _append(self, fence: FencedLog, records: list[tuple[str, bytes]]) -> list[int]:
        """Append until every record is acknowledged; wait while the server is full or silent."""
        while True:
            try:
                seqs = await fence.append_batch(records)
            except BusUnavailable as error:
                self._context.ready.unready("decisions", str(error))
                log.warning("an append to DECISIONS was not answered, retrying it: %s", error)
            except AppendRefused as error:
                self._context.ready.unready("decisions", str(error))
                log.error("DECISIONS refuses records, so nothing is decided: %s", error)
                await asyncio.sleep(_REFUSED_PAUSE_S)
            else:
                self._context.ready.set("decisions")
                return seqs

    async def _publish(self, verdict: Verdict) -> None:
        gang_id = verdict.gang_id
        self._unsent.pop(gang_id, None)
        payload = codec.encode(verdict)
        gone = verdict.phase == "Gone"
        ttl_s = _GONE_TTL_S if gone else None
        await self._send(subjects.verdict(gang_id), verdict, payload, ttl_s)
        requests = verdict.request_subjects
        for subject in sorted(requests):
            self._requests.add(subject)
            await self._send(subject, verdict, payload, ttl_s)
        for subject in (subjects.wanted(gang_id), subjects.provisioning(gang_id)):
            if subject in self._requests and subject not in requests:
                await self._send(subject, verdict, payload, _REQUEST_ENDED_TTL_S)
        self._reporting.published(verdict)
        if gone:
            self._traces.take_gone(verdict)

    async def _send(
        self, subject: str, verdict: Verdict, payload: bytes, ttl_s: int | None
    ) -> None:
        self._in_flight[subject] = verdict
        try:
            stored = await self._publisher.publish(subject, payload, ttl_s=ttl_s)
        except MessageTooLarge as error:
            # The server's limit is lower than the one for which verdicts are made. The gang has no
            # newer verdict then; its decisions do not depend on it.
            del self._in_flight[subject]
            self._reporting.verdict_too_large(verdict, error)
            return
        stored.add_done_callback(partial(self._stored, subject, verdict))

    def _stored(
        self, subject: str, verdict: Verdict, stored: asyncio.Future[PublishAnswer]
    ) -> None:
        newest = self._in_flight.get(subject) is verdict
        if newest:
            del self._in_flight[subject]
        if stored.cancelled():
            return
        error = stored.exception()
        if error is None:
            self._verdict_repair.stored(stored.result().seq)
        if not newest:
            return
        gang_id = verdict.gang_id
        if error is not None:
            log.warning("verdict on %s not stored, will be sent again: %s", verdict.gang, error)
            self._context.ready.unready("verdicts", str(error))
            if not self._unsent:
                # No record may arrive for a long time.
                asyncio.get_running_loop().call_later(_REFUSED_PAUSE_S, self._wake)
            self._unsent[gang_id] = verdict
            return
        if not self._unsent:
            self._context.ready.set("verdicts")
        if verdict.phase == "Gone" or subject not in verdict.request_subjects:
            self._requests.discard(subject)

    def _take_owed(self) -> list[Verdict]:
        """Verdicts to publish again: those that were not stored or were overwritten."""
        last = (self._planner.last_verdict(gang_id) for gang_id in sorted(self._overwritten))
        owed = [*self._unsent.values(), *(verdict for verdict in last if verdict is not None)]
        self._unsent.clear()
        self._overwritten.clear()
        return owed

    async def _checkpoint_if_due(self, fence: FencedLog) -> None:
        settings = self._context.settings
        behind = fence.last_applied - self._checkpoint_seq
        age_ms = self._context.now_ms() - self._checkpoint_ms
        if behind < settings.checkpoint_records and (
            behind == 0 or age_ms < settings.checkpoint_s * 1000
        ):
            return
        pages = self._planner.checkpoint(self._applier.applied[subjects.OUTCOMES])
        await self._append(
            fence, [(subjects.DECISIONS_CHECKPOINT, codec.encode(page)) for page in pages]
        )
        self._applier.decided(fence.last_applied)
        self._checkpoint_seq = fence.last_applied
        self._checkpoint_ms = self._context.now_ms()


def _subject(record: Act | Note) -> str:
    if isinstance(record, GangDecision | EvictionDecision):
        return subjects.act(record.gang_id)
    return subjects.note(record.gang_id)
