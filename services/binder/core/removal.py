"""The protocol of a decision that removes pods: the requests it takes, and its outcome. Pure.

What every decision goes through is `attempt`; the one phase of this kind is

    removing ──(all settled)──> Finish

in which each victim is marked (condition DisruptionTarget, so that a Job's podFailurePolicy can
distinguish this from a failure) and then deleted, all victims side by side. One that the mark's
answer shows to have succeeded meanwhile is left: it holds nothing, and its controller would not
make it again. A victim is settled as removed by that, a 2xx to the DELETE, a 404 to anything, or a
read that shows it gone, going, succeeded, or another UID under its name; as refused by a definite
refusal of the DELETE; all else is unknown. A mark that the API server refuses, or does not take as
long as we try, is reported in the outcome's notes and does not keep the pod alive: a gang that
stays partly bound for ever is worse than a missing condition.

Doing all of it twice is harmless, a crash between any two requests likewise: the UID is a
precondition of both, the mark is the same each time, and a pod that is going stays going. A DELETE
that arrives late can only hit what was to be deleted.
"""

from typing import Final

from typing_extensions import override

from services.binder.core.answers import (
    Answer,
    RemovalMeaning,
    Sight,
    is_leaving,
    meaning_of_removal,
)
from services.binder.core.attempt import NOTHING, Attempt, Doubt
from services.binder.core.commands import Command, Delete, Finish, Limits, Mark, Request
from services.binder.core.outcome import Finding, Sender, outcome_of
from shared.contracts.decisions import Binding, EvictionDecision, Victim

#: Of the API server's words about a refused mark.
_WORDS_MAX: Final = 300


class Removal(Attempt[EvictionDecision]):
    """A release on its way to its outcome."""

    def __init__(
        self,
        decision: EvictionDecision,
        sender: Sender,
        limits: Limits,
        *,
        targets: tuple[Binding | Victim, ...] = (),
    ) -> None:
        """Take one delivery of `decision`; nothing is sent before `start`. `targets`: its victims,
        and what else is asked about.
        """
        super().__init__(decision, targets or decision.victims, sender, limits)
        self.evicted = 0
        #: Victims whose mark is settled: their next request is the DELETE.
        self._marked: set[int] = set()
        self._unmarked = ""

    @override
    def answered(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        self._returned(index, "removing")
        marking = index not in self._marked
        meaning = self._meaning(answer, marking=marking)
        if meaning in {"read", "again"}:
            return self._doubted(index, answer, now_ms, read=meaning == "read")
        if meaning != "gone" and marking:
            return self._delete(index, answer if meaning == "refused" else None)
        if meaning == "refused":
            self._findings[index] = Finding("refused", answer.status, answer.reason, answer.message)
        else:
            self.evicted += 1
        return self._next(now_ms)

    @override
    def seen(self, index: int, sight: Sight | Answer | None, now_ms: int) -> tuple[Command, ...]:
        self._returned(index, "removing", "reading")
        doubt = self._read(index, now_ms)
        if isinstance(sight, Answer):
            return self._not_seen(index, doubt, sight, now_ms)
        if is_leaving(sight, self.targets[index].uid):
            self.evicted += 1
            return self._next(now_ms)
        if self.phase == "reading" or index in self._marked or self._may_try_again(doubt, now_ms):
            return self._still_there(index, doubt, now_ms)
        return self._delete(index, doubt.last)

    @override
    def _begin(self) -> tuple[Command, ...]:
        self.phase = "removing"
        return self._give_out([Mark(index) for index in range(len(self.targets))])

    def _delete(self, index: int, unmarked: Answer | None) -> tuple[Command, ...]:
        """Continue with a victim whose mark is written, or will not be for the reason given."""
        if unmarked is not None and not self._unmarked:
            self._unmarked = f"{unmarked.status} {unmarked.reason} {unmarked.message}"
        self._marked.add(index)
        self._doubts.pop(index, None)
        self._in_flight.add(index)
        return (self._removal(index, 0),)

    @override
    def _ask_again(self, index: int, delay_ms: int) -> Request:
        return self._removal(index, delay_ms) if index in self._marked else Mark(index, delay_ms)

    def _removal(self, index: int, delay_ms: int) -> Request:
        """Name the request that removes a victim."""
        return Delete(index, delay_ms)

    def _meaning(self, answer: Answer, *, marking: bool) -> RemovalMeaning:
        """Judge the answer to a mark or to a removal."""
        return meaning_of_removal(answer, patch=marking)

    @override
    def _next(self, now_ms: int) -> tuple[Command, ...]:
        if self._in_flight:
            return NOTHING
        return self._finish("BinderGaveUp" if self.phase == "reading" else "")

    def _finish(self, reason: str) -> tuple[Command, ...]:
        self.phase = "done"
        found = sorted(self._findings.items())
        outcome = outcome_of(
            self._decision,
            self._sender,
            self._instants,
            evicted=self.evicted,
            reason=reason,
            notes=(f"NotMarked: {self._unmarked[:_WORDS_MAX]}",) if self._unmarked else (),
            findings=[(self.targets[i].uid, self._node(i), one) for i, one in found],
        )
        return (Finish(outcome),)

    def _node(self, index: int) -> str:
        """The node that a pod asked about was to go to; "" for a victim."""
        target = self.targets[index]
        return target.node if isinstance(target, Binding) else ""

    @override
    def _never_told(self, doubt: Doubt) -> Finding:
        last = doubt.last
        return Finding("unknown", last.status, last.reason, last.message)
