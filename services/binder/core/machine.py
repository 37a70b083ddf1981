"""The protocol of a decision that binds: its requests, their order, and its outcome. Pure.

`attempt` has the part that all decisions share; the phases of this kind are

    proving ──(one did not pass)──> Finish PreflightFailed
       │ (all pass; or no pre-flight is wanted)
    preparing ──(a claim failed)──> undoing ──> Finish PreparationFailed
       │ (all done; or there are no claims)
    binding ──(all answered)──────> Finish, after undoing the claims of members that are not bound

Each member is settled by exactly one of: a 2xx, a definite refusal, a read of the pod. All of it
may be repeated: the UID is a precondition, and a pod that is already on its node is bound.

Claims are written before the first binding (`preparing`), and read until their controllers have
completed them. They are undone in a first delivery only: in a later one a pod may be bound that
this binder does not know of. Undoing is repeated until it is carried out, so that none of its
writes can be carried out after the next decision. Devices whose write was not answered are not
undone. A member whose devices are not certainly released is `late`, so that no other pod gets them.
"""

from typing import Final, assert_never

import msgspec
from typing_extensions import override

from services.binder.core.answers import (
    Answer,
    PodView,
    conflict_text,
    meaning_of_post,
    meaning_of_read,
)
from services.binder.core.attempt import NOTHING, Attempt, UnsettledPod
from services.binder.core.claim_preparation import Progress, failed_members, preparations_of
from services.binder.core.commands import Command, Finish, Limits, Post, Prepare, Request, Undo
from services.binder.core.outcome import SKIPPED, Finding, Sender, outcome_of
from shared.contracts.decisions import DeviceChoice, GangDecision
from shared.model.invariants import required


class Machine(Attempt[GangDecision]):
    """A decision to bind a gang, being carried out."""

    def __init__(self, decision: GangDecision, sender: Sender, limits: Limits) -> None:
        """Carry out one delivery of `decision`."""
        super().__init__(decision, decision.bindings, sender, limits)
        self.preparations: Final = preparations_of(decision)
        self.bound = 0
        #: Why preparations failed, and how often the other ones were tried.
        self._unprepared: dict[int, str] = {}
        self._tries: dict[int, int] = {}
        #: How often a preparation was undone.
        self._undoing: dict[int, int] = {}
        self._preparing_ms = 0
        #: Preparations that wait for devices to be attached.
        self._attaching: set[int] = set()
        #: Preparations with a write of devices that was not answered, and none that succeeded
        #: since.
        self._in_doubt: set[int] = set()
        self._reason = ""
        self._on_node: set[int] = set()
        self._untested: str = ""

    @override
    def answered(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        """Take the answer to a `Post`."""
        dry_run = self.phase == "proving"
        self._take_answer(index, "proving", "binding")
        meaning = meaning_of_post(answer, dry_run=dry_run)
        match meaning:
            case "bound" if dry_run:
                pass
            case "bound":
                self._is_bound(index, now_ms)
            case "untested":
                self._untested = answer.message
            case "gone" | "refused":
                late = meaning == "refused" and self._may_come_late(index)
                self._findings[index] = Finding.of(meaning, answer, late=late)
            case "read" | "again":
                return self._retry_or_read(index, answer, now_ms, read=meaning == "read")
            case _:
                assert_never(meaning)
        return self._next(now_ms)

    @override
    def read_back(
        self, index: int, view: PodView | Answer | None, now_ms: int
    ) -> tuple[Command, ...]:
        """Take the answer to a `Read`: the pod, None for a 404, or an `Answer` that is neither."""
        self._take_answer(index, "proving", "binding", "reading")
        unsettled = self._read(index, now_ms)
        if isinstance(view, Answer):
            return self._read_failed(index, unsettled, view, now_ms)
        meaning = meaning_of_read(view, self.decision.bindings[index])
        match meaning:
            case "bound":
                self._is_bound(index, now_ms)
            case "gone":
                self._findings[index] = Finding("gone", 404, "NotFound")
            case "conflict":
                pod = required(view, f"pod {index} in conflict")
                text = conflict_text(pod, self.decision.bindings[index])
                late = self._may_come_late(index)
                self._findings[index] = Finding("conflict", 409, "Conflict", text, late=late)
            case "free":
                return self._retry_after_conflict(index, unsettled, now_ms)
            case _:
                assert_never(meaning)
        return self._next(now_ms)

    def prepared(self, index: int, progress: Progress, now_ms: int) -> tuple[Command, ...]:
        """Take the result of a `Prepare`."""
        self._take_answer(index, "preparing")
        if not self._preparing_ms:
            self._preparing_ms = now_ms
        if progress.in_doubt:
            self._in_doubt.add(index)
        elif progress.state == "done":
            self._in_doubt.discard(index)  # of the writes under one version only one succeeds
        if progress.state == "failed":
            self._unprepared[index] = progress.message
        elif progress.state != "done" and not self._unprepared:
            tries = self._tries[index] = self._tries.get(index, 0) + 1
            limits = self._limits
            delay_ms = min(limits.backoff_ms_min << min(tries - 1, 10), limits.backoff_ms_max)
            delay_ms = max(delay_ms, progress.retry_after_ms)
            if progress.attaching:
                self._attaching.add(index)
            # Also after a request that failed since.
            most_ms = limits.attaching_ms if index in self._attaching else limits.claims_ms
            if now_ms + delay_ms - self._preparing_ms <= most_ms:
                self._in_flight.add(index)
                return (Prepare(index, again=progress.state == "waiting", delay_ms=delay_ms),)
            what = progress.message or "no retry completed it"
            self._unprepared[index] = f"{self._named(index)} after {most_ms} ms: {what}"
        return self._next(now_ms)

    def undone(self, index: int, now_ms: int, *, settled: bool = True) -> tuple[Command, ...]:
        """Take the end of an `Undo`; not `settled`, one of its writes may still be carried out."""
        self._take_answer(index, "undoing")
        tries = self._undoing[index] = self._undoing.get(index, 0) + 1
        if not settled and tries < self._limits.posts_max:
            self._in_flight.add(index)
            return (Undo(index, delay_ms=self._limits.backoff_ms_min << min(tries, 4)),)
        if not settled:
            self._in_doubt.add(index)
        return self._next(now_ms)

    # Phases.

    @override
    def _begin(self) -> tuple[Command, ...]:
        if not self.decision.preflight:
            return self._prepare()
        self.phase = "proving"
        return self._send_all([Post(index, dry_run=True) for index in range(len(self.targets))])

    def _prepare(self) -> tuple[Command, ...]:
        if not self.preparations:
            return self._bind()
        self.phase = "preparing"
        self._unsettled.clear()
        return self._send_all([Prepare(index) for index in range(len(self.preparations))])

    def _bind(self) -> tuple[Command, ...]:
        self.phase = "binding"
        self._unsettled.clear()
        return self._send_all(
            [Post(index) for index in range(len(self.targets)) if index not in self._on_node]
        )

    @override
    def _next(self, now_ms: int) -> tuple[Command, ...]:
        if self._in_flight:
            return NOTHING
        if self.phase == "proving":
            self._instants.preflight_ms = now_ms
            if not self._findings:
                return self._prepare()
            return self._finish("PreflightFailed")
        if self.phase == "preparing":
            if not self._unprepared:
                return self._bind()
            failed = failed_members(self.preparations, self._unprepared, self.decision.bindings)
            for place, text in failed.items():
                self._findings[place] = Finding("unprepared", 0, "ClaimNotPrepared", text)
            return self._undo("PreparationFailed")
        if self.phase == "binding":
            return self._undo("")
        return self._finish("BinderGaveUp" if self.phase == "reading" else self._reason)

    def _undo(self, reason: str) -> tuple[Command, ...]:
        """Undo the preparations of members that are certainly not bound, then finish."""
        self._reason = reason
        doubtful = {"bound", "unknown"}
        idle = {
            binding.uid
            for index, binding in enumerate(self.targets)
            if index not in self._on_node
            and (finding := self._findings.get(index, SKIPPED)).result not in doubtful
            and not finding.late
        }
        indexes = [
            index
            for index, preparation in enumerate(self.preparations)
            if preparation.choice.pod_uid in idle and index not in self._in_doubt
        ]
        if self.sender.delivered > 1:
            # They stay with their claims, which the planner may read later than this outcome.
            self._in_doubt.update(
                index
                for index in indexes
                if isinstance(self.preparations[index].choice, DeviceChoice)
            )
            return self._finish(reason)
        if not indexes:
            return self._finish(reason)
        self.phase = "undoing"
        return self._send_all([Undo(index) for index in indexes])

    def _named(self, index: int) -> str:
        choice = self.preparations[index].choice
        return f'claim "{choice.claim}" is not ready for node {choice.node}'

    def _finish(self, reason: str) -> tuple[Command, ...]:
        self.phase = "done"
        findings = [
            (binding.uid, binding.node, self._finding(index, binding.uid))
            for index, binding in enumerate(self.decision.bindings)
            if index not in self._on_node
        ]
        notes = (f"PreflightUntested: {self._untested[:300]}",) if self._untested else ()
        outcome = outcome_of(
            self.decision,
            self.sender,
            self._instants,
            bound=self.bound,
            reason=reason,
            notes=notes,
            findings=findings,
        )
        return (Finish(outcome),)

    # One member.

    def _finding(self, index: int, uid: str) -> Finding:
        """The finding of a member that is not bound. While its devices may still be allocated to
        its claim, it is late, like a member whose binding may still be carried out.
        """
        finding = self._findings.get(index, SKIPPED)
        doubtful = {self.preparations[at].choice.pod_uid for at in self._in_doubt}
        return msgspec.structs.replace(finding, late=True) if uid in doubtful else finding

    def _is_bound(self, index: int, now_ms: int) -> None:
        self._on_node.add(index)
        self.bound += 1
        if not self._instants.first_bound_ms:
            self._instants.first_bound_ms = now_ms
        self._instants.last_bound_ms = now_ms

    def _may_come_late(self, index: int) -> bool:
        """Whether a POST of the member was not answered: the refusal of a second one does not
        decide the first, which may still be in flight. A dry run binds no pod, however late.
        """
        unsettled = self._unsettled.get(index)
        return unsettled is not None and unsettled.unanswered and self.phase == "binding"

    @override
    def _repeat_request(self, index: int, delay_ms: int) -> Request:
        return Post(index, delay_ms, dry_run=self.phase == "proving")

    @override
    def _finding_of_unsettled(self, unsettled: UnsettledPod) -> Finding:
        """A 409 without a binding after it is a conflict; any other request but a dry run may still
        be carried out late.
        """
        if self.phase != "proving" and unsettled.last.status == 409:
            return Finding.of("conflict", unsettled.last, late=unsettled.unanswered)
        return super()._finding_of_unsettled(unsettled)
