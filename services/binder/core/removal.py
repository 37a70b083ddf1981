"""The protocol of a decision that removes pods: its requests and its outcome. Pure.

`attempt` has the part that all decisions share; the one phase of this kind is

    removing ──(all settled)──> Finish

in which each victim is marked (condition DisruptionTarget, so that a Job's podFailurePolicy can
distinguish this from a failure) and then deleted, all victims concurrently. A victim that has
succeeded, as the answer to the mark shows, is not deleted: it uses no capacity, and its controller
would not create it again. A victim counts as removed after that, after a 2xx to the DELETE, a 404
to any request, or a read that shows it gone, being deleted, succeeded, or replaced by another UID;
as refused after a definite refusal of the DELETE; otherwise it is unknown. A mark that the API
server refuses or does not take is reported in the outcome's notes and the pod is deleted anyway: a
gang that stays partly bound for ever is worse than a missing condition.

All of it may be repeated, and a crash between two requests does no harm: the UID is a precondition
of both, the mark is the same each time, and deletion is not reversible. A DELETE that arrives late
can only hit a pod that was to be deleted.
"""

from typing import Final

from typing_extensions import override

from services.binder.core.answers import (
    Answer,
    PodView,
    RemovalMeaning,
    is_leaving,
    meaning_of_removal,
)
from services.binder.core.attempt import NOTHING, Attempt
from services.binder.core.commands import Command, Delete, Finish, Limits, Mark, Request
from services.binder.core.outcome import Finding, Sender, outcome_of
from shared.contracts.decisions import Binding, EvictionDecision, Victim

#: Longest text kept of the API server's answer to a refused mark.
_WORDS_MAX: Final = 300


class Removal(Attempt[EvictionDecision]):
    """A release being carried out."""

    def __init__(
        self,
        decision: EvictionDecision,
        sender: Sender,
        limits: Limits,
        *,
        targets: tuple[Binding | Victim, ...] = (),
    ) -> None:
        """Carry out one delivery of `decision`. `targets`: its victims, behind the bindings that
        are dry-run first; empty: only the victims.
        """
        super().__init__(decision, targets or decision.victims, sender, limits)
        self.evicted = 0
        #: Victims whose mark is settled: their next request is the DELETE.
        self._marked: set[int] = set()
        self._unmarked = ""

    @override
    def answered(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        self._take_answer(index, "removing")
        marking = index not in self._marked
        meaning = self._meaning(answer, marking=marking)
        if meaning in {"read", "again"}:
            return self._retry_or_read(index, answer, now_ms, read=meaning == "read")
        if meaning != "gone" and marking:
            return self._delete(index, answer if meaning == "refused" else None)
        if meaning == "refused":
            self._findings[index] = Finding.of("refused", answer)
        else:
            self.evicted += 1
        return self._next(now_ms)

    @override
    def read_back(
        self, index: int, view: PodView | Answer | None, now_ms: int
    ) -> tuple[Command, ...]:
        self._take_answer(index, "removing", "reading")
        unsettled = self._read(index, now_ms)
        if isinstance(view, Answer):
            return self._read_failed(index, unsettled, view, now_ms)
        if is_leaving(view, self.targets[index].uid):
            self.evicted += 1
            return self._next(now_ms)
        if (
            self.phase == "reading"
            or index in self._marked
            or self._may_retry_conflict(unsettled, now_ms)
        ):
            return self._retry_after_conflict(index, unsettled, now_ms)
        return self._delete(index, unsettled.last)

    @override
    def _begin(self) -> tuple[Command, ...]:
        self.phase = "removing"
        return self._send_all([Mark(index) for index in range(len(self.targets))])

    def _delete(self, index: int, unmarked: Answer | None) -> tuple[Command, ...]:
        """Remove a victim whose mark is written, or was refused with the answer `unmarked`."""
        if unmarked is not None and not self._unmarked:
            self._unmarked = f"{unmarked.status} {unmarked.reason} {unmarked.message}"
        self._marked.add(index)
        self._unsettled.pop(index, None)
        self._in_flight.add(index)
        return (self._removal(index, 0),)

    @override
    def _repeat_request(self, index: int, delay_ms: int) -> Request:
        return self._removal(index, delay_ms) if index in self._marked else Mark(index, delay_ms)

    def _removal(self, index: int, delay_ms: int) -> Request:
        """The request that removes a victim."""
        return Delete(index, delay_ms)

    def _meaning(self, answer: Answer, *, marking: bool) -> RemovalMeaning:
        """The meaning of the answer to a mark or to a removal."""
        return meaning_of_removal(answer, patch=marking)

    @override
    def _next(self, now_ms: int) -> tuple[Command, ...]:
        if self._in_flight:
            return NOTHING
        return self._finish("BinderGaveUp" if self.phase == "reading" else "")

    def _finish(self, reason: str) -> tuple[Command, ...]:
        self.phase = "done"
        findings = sorted(self._findings.items())
        outcome = outcome_of(
            self.decision,
            self.sender,
            self._instants,
            evicted=self.evicted,
            reason=reason,
            notes=(f"NotMarked: {self._unmarked[:_WORDS_MAX]}",) if self._unmarked else (),
            findings=[(self.targets[i].uid, self._node(i), finding) for i, finding in findings],
        )
        return (Finish(outcome),)

    def _node(self, index: int) -> str:
        """The node of a binding; "" for a victim, as on the wire."""
        target = self.targets[index]
        return target.node if isinstance(target, Binding) else ""
