"""The active planner's half: taking over, deciding, and making durable what was decided.

Order, per cycle: every decision and note is appended and acknowledged; the core receives its
sequence; only then are the verdicts of the same cycle published. An append whose fate is unknown is
repeated until it is known: nothing else is decided meanwhile.
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
from services.gang_planner.errors import ForeignRecord
from services.gang_planner.inbox import Arrival, DecisionArrival, ForeignArrival
from services.gang_planner.reporting import Reporting
from services.gang_planner.tracing import GangTraces
from services.gang_planner.verdict_repair import VerdictRepair
from shared.bus.errors import AppendRefused, BusUnavailable, Superseded
from shared.bus.fence import FencedLog
from shared.bus.publisher import Publisher, Stored
from shared.contracts import codec, subjects
from shared.contracts.decisions import Act, EpochOpened, EvictionDecision, GangDecision, Note
from shared.contracts.foreign_messages import is_foreign
from shared.contracts.verdicts import Verdict
from shared.runtime.lifecycle import Context

log = logging.getLogger(__name__)

#: A gang that is gone keeps its last verdict for an hour, so that a controller which was away still
#: sees it.
_GONE_TTL_S = 3600
#: A verdict that ends a wish for a PodGroup takes its place, and is then forgotten.
_WISH_ENDED_TTL_S = 60
#: Pause before a record that the server refused (its storage is full) is offered again.
_REFUSED_PAUSE_S = 1.0


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
        """Make one that is not active; `wake` makes the loop call `decide` again."""
        self._context = context
        self._wake = wake
        self._reporting = reporting
        self._traces = traces
        self._planner = planner
        self._applier = applier
        self._fence: FencedLog | None = None
        self._publisher = Publisher(context.bus)
        self._mender = VerdictRepair(context.bus, context.foreign_messages.met)
        #: By subject.
        self._in_flight: dict[str, Verdict] = {}
        #: Gangs whose wish for a PodGroup is in the stream.
        self._requests: set[str] = set()
        self._unsent: dict[str, Verdict] = {}
        #: Gangs whose last verdict is not in the stream any more.
        self._lost: set[str] = set()
        self._checkpoint_seq = 0
        self._checkpoint_ms = 0
        settings = context.settings
        self._in_flight_limit = InFlightLimit(settings.ahead_ms, settings.ahead_pods_min)

    @property
    def active(self) -> bool:
        """Whether this process opened the newest epoch, as far as it knows."""
        return self._fence is not None

    def check_foreign(self, arrivals: list[Arrival]) -> None:
        """Step down when a record arrived that an active planner did not write.

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

    async def take_over(self, generation: str) -> bool:
        """Open an epoch behind everything applied, in the DECISIONS of that generation; False when
        there are records still to be applied first.
        """
        applied = self._applier.decisions_seq
        fence = FencedLog(
            self._context.bus, subjects.DECISIONS, last_applied=applied, generation=generation
        )
        record = EpochOpened(
            epoch=applied + 1,
            planner=self._context.instance,
            at_ms=self._context.now_ms(),
            cluster_epoch=self._planner.cluster_epoch,
        )
        try:
            seq = await self._append(fence, [(subjects.DECISIONS_EPOCH, codec.encode(record))])
        except Superseded:
            return False
        # Not before: the epoch is named by the sequence that its record gets.
        fence.overlook(partial(is_foreign, subjects.DECISIONS))
        self._fence = fence
        self._mender.begin(self._applier.verdicts_seq)
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
        """Run one cycle and make it durable; returns when the core wants to be woken
        (milliseconds), or None.

        Raises:
            Superseded: Another planner has become the writer.
        """
        assert self._fence is not None
        began_s = time.perf_counter()
        now_ms, planner = self._context.now_ms(), self._planner
        most = self._in_flight_limit.in_flight_max(now_ms, planner.answered)
        age_ms = self._applier.view_age_ms
        step = planner.step(now_ms, most, now_ms - age_ms if age_ms is not None else None)
        planned_s = time.perf_counter()
        self._reporting.cycled(planned_s - began_s)
        records: list[Act | Note] = [*step.decisions, *step.notes]
        if records:
            appended = [(_subject(record), codec.encode(record)) for record in records]
            for record, seq in zip(records, await self._append(self._fence, appended), strict=True):
                planner.decided(seq, record)
                self._applier.decided(seq)
                self._reporting.appended(seq, record)
            self._reporting.appending_took(time.perf_counter() - planned_s)
        for verdict in [*self._take_unsent(), *self._take_lost(), *step.verdicts]:
            await self._publish(verdict)
        self._reporting.observe(
            planner.gangs_by_phase(), planner.open_decisions, planner.open_holds
        )
        self._reporting.pods_in_flight(planner.pods_in_flight, most)
        await self._checkpoint_if_due(self._fence)
        return step.next_wakeup_ms

    async def mend(self) -> None:
        """Republish, until cancelled, verdicts that were overwritten by foreign messages."""

        def tell_again(gang_ids: list[str]) -> None:
            self._lost.update(gang_ids)
            self._wake()

        await self._mender.run(tell_again)

    async def flush(self) -> None:
        """Wait until every verdict sent is answered."""
        await self._publisher.flush()

    async def _append(self, fence: FencedLog, records: list[tuple[str, bytes]]) -> list[int]:
        """Append until the fate of every record is known; a full or silent server means waiting,
        never dropping.
        """
        while True:
            try:
                seqs = await fence.append_batch(records)
            except BusUnavailable as error:
                self._context.ready.unready("decisions", str(error))
                log.warning("append not answered, asking again: %s", error)
            except AppendRefused as error:
                self._context.ready.unready("decisions", str(error))
                log.error("DECISIONS refuses records, nothing is decided: %s", error)
                await asyncio.sleep(_REFUSED_PAUSE_S)
            else:
                self._context.ready.set("decisions")
                return seqs

    async def _publish(self, verdict: Verdict) -> None:
        gang_id = verdict.gang_id
        self._unsent.pop(gang_id, None)
        payload = codec.encode(verdict)
        gone = verdict.phase == "Gone"
        await self._send(subjects.verdict(gang_id), verdict, payload, _GONE_TTL_S if gone else None)
        requests = bool(verdict.group_wanted) and not gone
        if requests:
            self._requests.add(gang_id)
        if gang_id in self._requests:
            ttl_s = None if requests else _WISH_ENDED_TTL_S
            await self._send(subjects.wanted(gang_id), verdict, payload, ttl_s)
        self._reporting.published(verdict)
        if gone:
            self._traces.take_gone(verdict)

    async def _send(
        self, subject: str, verdict: Verdict, payload: bytes, ttl_s: int | None
    ) -> None:
        self._in_flight[subject] = verdict
        stored = await self._publisher.publish(subject, payload, ttl_s=ttl_s)
        stored.add_done_callback(partial(self._stored, subject, verdict))

    def _stored(self, subject: str, verdict: Verdict, stored: asyncio.Future[Stored]) -> None:
        newest = self._in_flight.get(subject) is verdict
        if newest:
            del self._in_flight[subject]
        if stored.cancelled():
            return
        error = stored.exception()
        if error is None:
            self._mender.stored(stored.result().seq)
        if not newest:
            return
        gang_id = verdict.gang_id
        if error is not None:
            log.warning("verdict on %s not stored, will be sent again: %s", verdict.name, error)
            self._context.ready.unready("verdicts", str(error))
            if not self._unsent:
                # It may be the last thing that happens for a long time.
                asyncio.get_running_loop().call_later(_REFUSED_PAUSE_S, self._wake)
            self._unsent[gang_id] = verdict
            return
        if not self._unsent:
            self._context.ready.set("verdicts")
        if subject == subjects.wanted(gang_id) and not verdict.group_wanted:
            self._requests.discard(gang_id)

    def _take_lost(self) -> list[Verdict]:
        last = (self._planner.last_verdict(gang_id) for gang_id in sorted(self._lost))
        lost = [verdict for verdict in last if verdict is not None]
        self._lost.clear()
        return lost

    def _take_unsent(self) -> list[Verdict]:
        unsent = list(self._unsent.values())
        self._unsent.clear()
        return unsent

    async def _checkpoint_if_due(self, fence: FencedLog) -> None:
        settings = self._context.settings
        behind = fence.last_applied - self._checkpoint_seq
        age_ms = self._context.now_ms() - self._checkpoint_ms
        if behind < settings.checkpoint_records and (
            behind == 0 or age_ms < settings.checkpoint_s * 1000
        ):
            return
        pages = self._planner.checkpoint(self._applier.outcomes_seq)
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
