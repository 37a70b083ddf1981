"""The observer's shell: reads two logs, answers decisions when their time is over, keeps the
report.

Four tasks share the state: one follows CLUSTER, one reads decisions in order (each is recounted
once the cluster state contains the records that it follows from), one answers decisions whose time
is over, one writes the report.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from services.observer.config import ObserverSettings
from services.observer.core.assumed_decisions import AssumedDecision, answer
from services.observer.reporting import Reporting
from services.observer.state import ObserverState
from shared.bus.cluster_log import follow_cluster
from shared.bus.errors import AppendRefused, BusError, LogGap, WrongLastSequence
from shared.bus.log_reader import LogReader
from shared.bus.publisher import Publisher
from shared.bus.pull import Delivery
from shared.bus.questions import serve as serve_questions
from shared.bus.stream_reads import newest_record, wait_for_stream
from shared.contracts import codec, subjects
from shared.contracts.cluster import ClusterRecord, SnapshotPage
from shared.contracts.foreign_messages import is_foreign, unless_foreign
from shared.contracts.observing import PAGE_GANGS, Observation, ObservationRequest
from shared.runtime.lifecycle import Context, Step
from shared.runtime.whole_files import write_whole

log = logging.getLogger(__name__)

#: Pause after an outcome that could not be stored.
_RETRY_S: Final = 1.0
#: Between two passes over the assumed decisions: with thousands, each takes milliseconds.
_PASS_S: Final = 0.05
#: What a recount and the report need of CLUSTER.
_KINDS: Final = ("node", "pod", "podgroup")
#: A decision follows from records that CLUSTER already holds: its reader is milliseconds behind.
_CATCH_UP_S: Final = 5.0

_decode_outcome: Final = unless_foreign(subjects.OUTCOMES, codec.decode_outcome)


async def serve(ctx: Context[ObserverSettings]) -> None:
    await Observer(ctx).run()


class Observer:
    def __init__(self, ctx: Context[ObserverSettings]) -> None:
        settings = ctx.settings
        self._ctx = ctx
        self._state = ObserverState(
            stand_ms=int(settings.stand_s * 1000), gone_max=settings.gone_max
        )
        self._reporting = Reporting(ctx.metrics)
        self._on_foreign = ctx.foreign_messages.met
        self._publisher = Publisher(ctx.bus)
        self._generation = ""
        #: The report that pages after the first are cut from.
        self._report: Observation | None = None
        #: Set when the time of a decision may be over, or another decision was read.
        self._news = asyncio.Event()
        #: Set, and replaced, whenever the cluster state has changed.
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Observe until cancelled."""
        ctx = self._ctx
        ctx.ready.require("cluster")
        info = await wait_for_stream(ctx.bus, subjects.DECISIONS)
        self._generation = ctx.decisions = info.generation
        await self._recall()
        await serve_questions(
            ctx.bus, subjects.ASK_OBSERVATION, codec.decode_observation_request, self._answer
        )
        ctx.on_shutdown(Step.FINISH, "report", self._write)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_cluster(), name="follow-cluster")
            tasks.create_task(self._read_decisions(info.first_seq), name="read-decisions")
            tasks.create_task(self._answer_due(), name="answer")
            tasks.create_task(self._keep_report(), name="report")

    async def _answer(self, question: ObservationRequest) -> Observation | None:
        if question.page == 0:
            self._report = self._state.build_report(self._ctx.now_ms())
        report = self._report
        if report is None or (question.page and report.at_ms != question.at_ms):
            # Another client has requested page 0 since: this client has to begin again.
            return None
        return page_of(report, question.page)

    # The cluster state.

    async def _follow_cluster(self) -> None:
        consumer, on_foreign = subjects.observer_consumer(subjects.CLUSTER), self._on_foreign
        await follow_cluster(self._ctx.bus, consumer, self, kinds=_KINDS, on_foreign=on_foreign)

    def replace(self, pages: Sequence[SnapshotPage]) -> None:
        """As `ClusterReader`."""
        self._state.replace(pages)
        self.applied()

    def apply(self, seq: int, record: ClusterRecord) -> None:
        """As `ClusterReader`."""
        self._state.apply(seq, record)

    def applied(self) -> None:
        """As `ClusterReader`."""
        self._moved.set()
        self._moved = asyncio.Event()
        self._ctx.ready.set("cluster")
        self._news.set()

    async def _caught_up(self, seq: int) -> None:
        """Wait until the cluster state contains record `seq` of CLUSTER, a few seconds at most: a
        CLUSTER that was created again counts from one.
        """
        try:
            async with asyncio.timeout(_CATCH_UP_S):
                while self._state.cluster_state.seq < seq:
                    await self._moved.wait()
        except TimeoutError:
            log.warning(
                "the cluster state is read up to record %d of CLUSTER, not %d",
                self._state.cluster_state.seq,
                seq,
            )

    # Decisions.

    async def _read_decisions(self, first_seq: int) -> None:
        """Read from the first record in the log. Decisions that an earlier process answered are
        answered again, which OUTCOMES refuses.
        """
        consumer = subjects.observer_consumer(subjects.DECISIONS)
        reader = LogReader(self._ctx.bus, subjects.DECISIONS, consumer, filtered=True)
        while True:
            try:
                await reader.run(max(first_seq, 1), self._take)
            except LogGap as gap:
                first_seq = gap.available

    async def _take(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            if is_foreign(subjects.DECISIONS, delivery.payload):
                self._on_foreign(
                    subjects.DECISIONS, delivery.seq, delivery.subject, delivery.payload
                )
                continue
            decision = codec.decode_act(delivery.payload)
            await self._caught_up(max(decision.cycle.cluster_seq, 1))
            recount = self._state.decided(delivery.seq, decision, self._ctx.now_ms())
            self._reporting.decided(delivery.seq, decision, recount)
        self._news.set()

    async def _answer_due(self) -> None:
        while True:
            self._news.clear()
            for assumed in self._state.assumed.over(self._ctx.now_ms()):
                if not await self._settle(assumed):
                    await asyncio.sleep(_RETRY_S)
                    self._news.set()
                    break
            self._reporting.observe(self._state.gangs.counts(), len(self._state.assumed))
            await asyncio.sleep(_PASS_S)
            await self._wait_for_next()

    async def _wait_for_next(self) -> None:
        next_ms = self._state.assumed.next_ms()
        wait_s = None if next_ms is None else max(0.0, (next_ms - self._ctx.now_ms()) / 1000)
        try:
            async with asyncio.timeout(wait_s):
                await self._news.wait()
        except TimeoutError:
            return

    async def _settle(self, assumed: AssumedDecision) -> bool:
        """Store the one outcome of a decision; False: it has to be tried again."""
        outcome = answer(
            assumed,
            self._state.cluster_state,
            observer=self._ctx.instance,
            generation=self._generation,
            now_ms=self._ctx.now_ms(),
        )
        subject = subjects.outcome(outcome.gang_id, outcome.decision_seq)
        try:
            if not await self._store(subject, codec.encode(outcome)):
                return False
        except (AppendRefused, BusError) as error:
            log.warning(
                "gang %s: the outcome of decision %d was not stored: %s",
                assumed.decision.gang,
                assumed.seq,
                error,
            )
            return False
        self._state.assumed.drop(assumed.seq)
        return True

    async def _store(self, subject: str, payload: bytes) -> bool:
        """Store an outcome unless the decision has one; False when a foreign message was stored in
        between.
        """
        behind = 0
        while True:
            try:
                await (
                    await self._publisher.publish(
                        subject, payload, expected_last_subject_sequence=behind
                    )
                )
            except WrongLastSequence:
                newest = await newest_record(
                    self._ctx.bus, subjects.OUTCOMES, subject, _decode_outcome, self._on_foreign
                )
                if newest.record is not None:
                    log.debug("an outcome is already stored under %s", subject)
                    return True
                if behind:
                    return False
                behind = newest.last_seq
            else:
                return True

    # The report.

    async def _recall(self) -> None:
        """Continue with the report file; a file of its name that is no report is renamed."""
        path = Path(self._ctx.settings.report_file)
        if not self._ctx.settings.report_file:
            return
        try:
            content = await asyncio.to_thread(path.read_bytes)
            self._state.recall(msgspec.json.decode(content, type=Observation))
        except FileNotFoundError:
            return
        except msgspec.MsgspecError as error:
            aside = path.with_name(f"{path.name}.unreadable")
            log.error("%s is not a valid report and was renamed to %s: %s", path, aside, error)
            await asyncio.to_thread(path.replace, aside)

    async def _keep_report(self) -> None:
        while True:
            await asyncio.sleep(self._ctx.settings.report_s)
            await self._write()

    async def _write(self) -> None:
        """Write the report file, whole or not at all; a full disk is logged, and the next write is
        tried.
        """
        if not self._ctx.settings.report_file or not self._state.cluster_state.epoch:
            return
        content = msgspec.json.format(
            msgspec.json.encode(self._state.build_report(self._ctx.now_ms()))
        )
        try:
            await asyncio.to_thread(
                write_whole, Path(self._ctx.settings.report_file), content + b"\n", mode=0o644
            )
        except OSError as error:
            log.error("the report is not written: %s", error)


def page_of(report: Observation, page: int) -> Observation:
    """One page of a report; without gangs behind the last page."""
    pages = max(1, -(-len(report.gangs) // PAGE_GANGS))
    gangs = report.gangs[page * PAGE_GANGS : (page + 1) * PAGE_GANGS]
    return msgspec.structs.replace(report, gangs=gangs, page=page, pages=pages)
