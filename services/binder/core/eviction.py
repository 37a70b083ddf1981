"""The protocol of a decision that evicts pods for a gang: the requests it takes, and its outcome.
Pure.

What every decision goes through is `attempt`; the phases of this kind are

    proving ──(one did not pass)──> Finish PreflightFailed
       │ (all pass)
    removing ──(all settled)──────> Finish

Proving asks by dry run whether each binding of the gang would be taken and each victim may be
evicted: no pod is evicted for a gang that a policy would refuse, or while a budget protects one of
the victims. Then each victim is marked and evicted as in `removal`, but by the eviction API, which
counts it against its PodDisruptionBudgets: one that is refused there all the same is reported, the
others continue.

Victims come last among the targets, behind the gang's bindings. Doing all of it twice is harmless,
as there.
"""

from typing_extensions import override

from services.binder.core.answers import (
    Answer,
    RemovalMeaning,
    Sight,
    conflict_text,
    is_leaving,
    meaning_of_eviction,
    meaning_of_post,
    meaning_of_removal,
    meaning_of_sight,
)
from services.binder.core.attempt import NOTHING, Doubt
from services.binder.core.commands import Command, Evict, Limits, Mark, Post, Request
from services.binder.core.outcome import Finding, Sender
from services.binder.core.removal import Removal
from shared.contracts.decisions import Binding, EvictionDecision

_SKIPPED = Finding("skipped")


class Eviction(Removal):
    """A preemption on its way to its outcome."""

    def __init__(self, decision: EvictionDecision, sender: Sender, limits: Limits) -> None:
        """Take one delivery of `decision`; nothing is sent before `start`."""
        super().__init__(decision, sender, limits, targets=(*decision.bindings, *decision.victims))
        self._first_victim = len(decision.bindings)
        #: Victims that proving has shown to be gone.
        self._gone: set[int] = set()

    @override
    def answered(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        if self.phase != "proving":
            return super().answered(index, answer, now_ms)
        self._returned(index, "proving")
        meaning = (
            meaning_of_post(answer, dry_run=True)
            if index < self._first_victim
            else meaning_of_eviction(answer)
        )
        if meaning in {"read", "again"}:
            return self._doubted(index, answer, now_ms, read=meaning == "read")
        if meaning == "gone" and index >= self._first_victim:
            self._gone.add(index)
        elif meaning in {"gone", "refused"}:
            self._findings[index] = Finding(
                "gone" if meaning == "gone" else "refused",
                answer.status,
                answer.reason,
                answer.message,
            )
        return self._next(now_ms)

    @override
    def seen(self, index: int, sight: Sight | Answer | None, now_ms: int) -> tuple[Command, ...]:
        if self.phase == "reading" and index < self._first_victim:
            # Only what became of the victims is worth reporting then.
            self._returned(index, "reading")
            return self._next(now_ms)
        if self.phase != "proving":
            return super().seen(index, sight, now_ms)
        self._returned(index, "proving")
        doubt = self._read(index, now_ms)
        if isinstance(sight, Answer):
            return self._not_seen(index, doubt, sight, now_ms)
        target = self.targets[index]
        if isinstance(target, Binding):
            meaning = meaning_of_sight(sight, target)
            if meaning == "free":
                return self._still_there(index, doubt, now_ms)
            if meaning == "gone" or sight is None:
                self._findings[index] = Finding("gone", 404, "NotFound")
            else:
                # A preemptor that is bound already needs no victim.
                text = conflict_text(sight, target)
                self._findings[index] = Finding("conflict", 409, "Conflict", text)
        elif is_leaving(sight, target.uid):
            self._gone.add(index)
        else:
            return self._still_there(index, doubt, now_ms)
        return self._next(now_ms)

    @override
    def _begin(self) -> tuple[Command, ...]:
        self.phase = "proving"
        return self._give_out([self._proof(index, 0) for index in range(len(self.targets))])

    @override
    def _next(self, now_ms: int) -> tuple[Command, ...]:
        if self._in_flight:
            return NOTHING
        if self.phase != "proving":
            return super()._next(now_ms)
        self._instants.preflight_ms = now_ms
        if self._findings:
            for index in range(self._first_victim, len(self.targets)):
                self._findings.setdefault(index, _SKIPPED)
            return self._finish("PreflightFailed")
        self.phase = "removing"
        self._doubts.clear()
        self.evicted = len(self._gone)
        victims = range(self._first_victim, len(self.targets))
        marks = [Mark(index) for index in victims if index not in self._gone]
        return self._give_out(marks)

    @override
    def _ask_again(self, index: int, delay_ms: int) -> Request:
        if self.phase == "proving":
            return self._proof(index, delay_ms)
        return super()._ask_again(index, delay_ms)

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

    @override
    def _never_told(self, doubt: Doubt) -> Finding:
        if self.phase == "proving":
            last = doubt.last
            reason = last.reason or "PreflightUnanswered"
            return Finding("skipped", last.status, reason, last.message)
        return super()._never_told(doubt)
