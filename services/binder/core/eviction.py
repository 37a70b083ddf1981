"""The protocol of a decision that evicts pods for a gang: its requests and its outcome. Pure.

`attempt` has the part that all decisions share; the phases of this kind are

    proving ──(one did not pass)──> Finish PreflightFailed
       │ (all pass)
    removing ──(all settled)──────> Finish

Proving dry-runs each binding of the gang and each eviction: no pod is evicted for a gang that an
admission policy would refuse, or while a budget protects one of the victims. Then each victim is
marked and evicted as in `removal`, but by the eviction API, which respects PodDisruptionBudgets. A
victim that is refused there is reported; the other victims are evicted.

The victims are the last targets, behind the gang's bindings. All of it may be repeated, as there.
"""

from typing_extensions import override

from services.binder.core.answers import (
    Answer,
    PodView,
    RemovalMeaning,
    conflict_text,
    is_leaving,
    meaning_of_eviction,
    meaning_of_post,
    meaning_of_read,
    meaning_of_removal,
)
from services.binder.core.attempt import NOTHING
from services.binder.core.commands import Command, Evict, Limits, Mark, Post, Request
from services.binder.core.outcome import SKIPPED, Finding, Sender
from services.binder.core.removal import Removal
from shared.contracts.decisions import Binding, EvictionDecision


class Eviction(Removal):
    """A preemption being carried out."""

    def __init__(self, decision: EvictionDecision, sender: Sender, limits: Limits) -> None:
        """Carry out one delivery of `decision`."""
        super().__init__(decision, sender, limits, targets=(*decision.bindings, *decision.victims))
        self._first_victim = len(decision.bindings)
        #: Victims that were gone when they were dry-run.
        self._gone: set[int] = set()

    @override
    def answered(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        if self.phase != "proving":
            return super().answered(index, answer, now_ms)
        self._take_answer(index, "proving")
        meaning = (
            meaning_of_post(answer, dry_run=True)
            if index < self._first_victim
            else meaning_of_eviction(answer)
        )
        if meaning in {"read", "again"}:
            return self._retry_or_read(index, answer, now_ms, read=meaning == "read")
        if meaning == "gone" and index >= self._first_victim:
            self._gone.add(index)
        elif meaning == "gone" or meaning == "refused":
            self._findings[index] = Finding.of(meaning, answer)
        return self._next(now_ms)

    @override
    def read_back(
        self, index: int, view: PodView | Answer | None, now_ms: int
    ) -> tuple[Command, ...]:
        if self.phase == "reading" and index < self._first_victim:
            # Only the victims are reported then.
            self._take_answer(index, "reading")
            return self._next(now_ms)
        if self.phase != "proving":
            return super().read_back(index, view, now_ms)
        self._take_answer(index, "proving")
        unsettled = self._read(index, now_ms)
        if isinstance(view, Answer):
            return self._read_failed(index, unsettled, view, now_ms)
        target = self.targets[index]
        if isinstance(target, Binding):
            meaning = meaning_of_read(view, target)
            if meaning == "free":
                return self._retry_after_conflict(index, unsettled, now_ms)
            if meaning == "gone" or view is None:
                self._findings[index] = Finding("gone", 404, "NotFound")
            else:
                # A preemptor that is bound already needs no victim.
                text = conflict_text(view, target)
                self._findings[index] = Finding("conflict", 409, "Conflict", text)
        elif is_leaving(view, target.uid):
            self._gone.add(index)
        else:
            return self._retry_after_conflict(index, unsettled, now_ms)
        return self._next(now_ms)

    @override
    def _begin(self) -> tuple[Command, ...]:
        self.phase = "proving"
        return self._send_all([self._proof(index, 0) for index in range(len(self.targets))])

    @override
    def _next(self, now_ms: int) -> tuple[Command, ...]:
        if self._in_flight:
            return NOTHING
        if self.phase != "proving":
            return super()._next(now_ms)
        self._instants.preflight_ms = now_ms
        if self._findings:
            for index in range(self._first_victim, len(self.targets)):
                self._findings.setdefault(index, SKIPPED)
            return self._finish("PreflightFailed")
        self.phase = "removing"
        self._unsettled.clear()
        self.evicted = len(self._gone)
        victims = range(self._first_victim, len(self.targets))
        marks = [Mark(index) for index in victims if index not in self._gone]
        return self._send_all(marks)

    @override
    def _repeat_request(self, index: int, delay_ms: int) -> Request:
        if self.phase == "proving":
            return self._proof(index, delay_ms)
        return super()._repeat_request(index, delay_ms)

    def _proof(self, index: int, delay_ms: int) -> Request:
        if index < self._first_victim:
            return Post(index, dry_run=True, delay_ms=delay_ms)
        return Evict(index, dry_run=True, delay_ms=delay_ms)

    @override
    def _removal(self, index: int, delay_ms: int) -> Request:
        return Evict(index, delay_ms=delay_ms)

    @override
    def _meaning(self, answer: Answer, *, marking: bool) -> RemovalMeaning:
        return meaning_of_removal(answer, patch=True) if marking else meaning_of_eviction(answer)
