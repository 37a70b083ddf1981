"""The standby's part: answers queries from its cluster state, and keeps the rolling recording.

The active planner does not answer `ask.planner.fit`: it only decides. When a new segment of the
recording is due, the standby requests a snapshot, and keeps the records applied between request and
answer, so that the segment reproduces every later decision from its base.
"""

import asyncio
import logging
import pathlib
from typing import Final

from services.gang_planner.applier import Applier
from services.gang_planner.config import PlannerSettings
from services.gang_planner.core.planner import Planner
from services.gang_planner.estimator import EstimateFailed, Estimator, suggestions_in_copy
from services.gang_planner.inbox import Arrival, ClusterArrival, DecisionArrival, OutcomeArrival
from services.gang_planner.recorder import Frame, Recorder
from shared.bus.cluster_log import fetch_snapshot
from shared.bus.questions import serve
from shared.contracts import codec, subjects
from shared.contracts.cluster import SnapshotPage
from shared.contracts.questions import (
    EstimatesAnswer,
    EstimatesRequest,
    FitAnswer,
    FitRequest,
    FragmentationAnswer,
    FragmentationRequest,
    LedgerAnswer,
    LedgerRequest,
    SuggestionsAnswer,
    SuggestionsRequest,
)
from shared.runtime.lifecycle import Context, Spawned

log = logging.getLogger(__name__)

#: Records reach the disk after this at the latest, so that a bundle has the newest ones.
_FLUSH_MS: Final = 2_000


class Standby:
    """The work of a planner while another one is active."""

    def __init__(
        self, context: Context[PlannerSettings], planner: Planner, applier: Applier
    ) -> None:
        settings = context.settings
        self._context = context
        self._planner = planner
        self._applier = applier
        self._active = False
        self._estimator = Estimator(planner, context.now_ms, settings.estimates_s)
        self._estimating: Spawned | None = None
        self._flushed_ms = 0
        self._recorder: Recorder | None = None
        if settings.recording_dir:
            self._recorder = Recorder(
                pathlib.Path(settings.recording_dir),
                keep_s=settings.recording_s,
                keep_bytes=settings.recording_bytes,
            )
        self._base: asyncio.Task[tuple[SnapshotPage, ...]] | None = None
        #: Cluster records applied since the base was requested.
        self._since_base: list[Frame] = []

    async def serve(self) -> None:
        """Answer `ask.planner.fit`, `.ledger`, `.fragmentation`, `.estimates` and `.suggestions`
        from now on.
        """
        bus = self._context.bus
        await serve(bus, subjects.ASK_FIT, codec.decode_fit_request, self._answer_fit)
        await serve(bus, subjects.ASK_LEDGER, codec.decode_ledger_request, self._answer_ledger)
        await serve(
            bus,
            subjects.ASK_FRAGMENTATION,
            codec.decode_fragmentation_request,
            self._answer_fragmentation,
        )
        await serve(
            bus, subjects.ASK_ESTIMATES, codec.decode_estimates_request, self._answer_estimates
        )
        await serve(bus, subjects.ASK_SUGGESTIONS, codec.decode_suggestions_request, self._suggest)
        if self._context.settings.estimates_s:
            estimating = self._estimator.run(lambda: self._answers)
            self._estimating = self._context.spawn("estimates", estimating)

    async def _answer_fit(self, question: FitRequest) -> FitAnswer | None:
        if not self._answers:
            return None
        try:
            return self._planner.would_fit(question)
        except Exception as error:
            # Also an InvariantViolation: the contradiction is in copies of the state to which a
            # user's hypothetical gang was added, and does not show that the state contradicts
            # itself. If the process ended, one user could end every standby, again and again. The
            # state that decisions follow from is not spared: the active planner's steps end the
            # process as loudly as ever, and so does an error in the other two answers, into which
            # nothing of a question enters.
            log.exception(
                "the question about %s/%s with %d pods failed",
                question.group.namespace,
                question.group.name,
                len(question.pods),
            )
            said = f"an internal error of the planner: {type(error).__name__}; its log says more"
            return FitAnswer(fits=False, ever=True, sentence=said, failure="internal")

    async def _answer_ledger(self, question: LedgerRequest) -> LedgerAnswer | None:
        return self._planner.ledger(question.after) if self._answers else None

    async def _answer_fragmentation(self, _: FragmentationRequest) -> FragmentationAnswer | None:
        return self._planner.fragmentation() if self._answers else None

    async def _answer_estimates(self, question: EstimatesRequest) -> EstimatesAnswer | None:
        return self._estimator.page(question.after) if self._answers else None

    async def _suggest(self, question: SuggestionsRequest) -> SuggestionsAnswer | None:
        if not self._answers:
            return None
        try:
            now_ms = self._context.now_ms()
            return await suggestions_in_copy(self._planner, now_ms, question.gang_id)
        except EstimateFailed as error:
            gang = self._planner.gang_name(question.gang_id)
            log.error("no suggestions for gang %s: %s", gang, error)
            return SuggestionsAnswer(sentence=str(error), failed=True)

    @property
    def _answers(self) -> bool:
        return not self._active and self._applier.caught_up

    def become_active(self) -> None:
        """Stop answering and recording, because this process decides from now on."""
        self._active = True
        if self._estimating is not None:
            self._estimating.cancel()
        if self._recorder is not None:
            self._recorder.flush()
        if self._base is not None:
            self._base.cancel()
            self._base = None

    @property
    def recording(self) -> bool:
        """Whether a recording is kept."""
        return self._recorder is not None and not self._active

    @property
    def awaits_base(self) -> bool:
        """Whether a segment waits for its base; records must be read without a pause until then."""
        return self._base is not None

    async def close(self) -> None:
        """Write the recorded frames to the disk."""
        if self._recorder is not None:
            self._recorder.flush()

    def record(self, arrivals: list[Arrival], now_ms: int) -> None:
        """Record what was just applied; begin a new segment when due, once its base has arrived."""
        if self._recorder is None:
            return
        frames = [frame for frame in map(_frame, arrivals) if frame is not None]
        for frame in frames:
            self._recorder.append(frame)
        if now_ms - self._flushed_ms >= _FLUSH_MS:
            self._recorder.flush()
            self._flushed_ms = now_ms
        if self._base is None:
            if self._recorder.due(now_ms // 1000):
                self._since_base = []
                self._base = asyncio.create_task(
                    fetch_snapshot(self._context.bus), name="recording-base"
                )
            return
        self._since_base.extend(frame for frame in frames if frame.kind == "cluster")
        if self._base.done():
            pages = self._base.result()
            self._base = None
            self._recorder.begin(self._base_frames(pages), now_ms // 1000)
            self._recorder.flush()

    def _base_frames(self, pages: tuple[SnapshotPage, ...]) -> list[Frame]:
        frames = [Frame(kind="configuration", payload=self._planner.configuration.source.encode())]
        frames += [Frame(kind="snapshot", payload=codec.encode(page)) for page in pages]
        frames += [
            Frame(kind="checkpoint", payload=codec.encode(page))
            for page in self._planner.checkpoint(self._applier.applied[subjects.OUTCOMES])
        ]
        frames += [frame for frame in self._since_base if frame.seq > pages[0].cluster_seq]
        self._since_base = []
        return frames


def _frame(arrival: Arrival) -> Frame | None:
    match arrival:
        case ClusterArrival(seq, _, payload):
            return Frame(kind="cluster", seq=seq, payload=payload)
        case DecisionArrival(seq, payload):
            return Frame(kind="decision", seq=seq, payload=payload)
        case OutcomeArrival(seq, _, payload):
            return Frame(kind="outcome", seq=seq, payload=payload)
        case _:
            return None
