"""One delivery of a decision: the part of the protocol that binding and removing share. Pure.

In: `start`, then one `answered`, `read_back` or `looked_up` for every command returned, in any
order. Out: commands. The shell sends them (bounded, in this order), waits `delay_ms` before those
that ask for it, and passes the answers in.

    looking ──(an outcome exists)──────────────────────────────────> Forget
       │ (none)
       ├─(delivered too often)─> reading ──(all read back)─────────> Finish BinderGaveUp
       └───────────────────────> the phases of the kind of decision > Finish

A first delivery skips `looking`. A request that the API server did not decide is repeated with
growing, jittered delays, at most `posts_max` times and for `patience_ms`; then the pod is read; if
even that does not settle it, it is `unknown`.

Invariants: at most one request per pod is in flight; no request is sent for a settled pod; `Finish`
or `Forget` is returned exactly once, when no request is in flight. An answer that belongs to no
request raises `InvariantViolation`.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Generic, Literal, TypeVar

import msgspec

from services.binder.core.answers import Answer, PodView
from services.binder.core.commands import Command, Forget, Limits, LookUp, Read, Request
from services.binder.core.outcome import Finding, Instants, Sender
from shared.contracts.decisions import Binding, EvictionDecision, GangDecision, Victim
from shared.model.invariants import InvariantViolation

D_co = TypeVar("D_co", bound=GangDecision | EvictionDecision, covariant=True)

Phase = Literal[
    "new", "looking", "reading", "proving", "preparing", "binding", "undoing", "removing", "done"
]

NOTHING: Final[tuple[Command, ...]] = ()


class UnsettledPod(msgspec.Struct, eq=False):
    """A pod that no answer has settled yet: its requests so far, and the last answer."""

    #: When the first answer came that did not settle it.
    first_ms: int
    posts: int = 0
    reads: int = 0
    last: Answer = Answer(0)
    #: A request that writes had no answer, or an unclear one: it may still be carried out.
    unanswered: bool = False


class Attempt(ABC, Generic[D_co]):
    """A decision being carried out; a subclass for each kind."""

    def __init__(
        self, decision: D_co, targets: tuple[Binding | Victim, ...], sender: Sender, limits: Limits
    ) -> None:
        """Carry out one delivery of `decision`, which is about the pods `targets`; `sender` is the
        binder that does, and which delivery it is.
        """
        self.targets: Final[tuple[Binding | Victim, ...]] = targets
        self.decision: Final = decision
        self.sender: Final = sender
        self.phase: Phase = "new"
        self._limits = limits
        self._instants = Instants()
        self._in_flight: set[int] = set()
        self._unsettled: dict[int, UnsettledPod] = {}
        self._findings: dict[int, Finding] = {}

    def start(self, now_ms: int) -> tuple[Command, ...]:
        """Return the first commands. Call once."""
        if self.phase != "new":
            raise InvariantViolation("decision", "started twice", **self._history())
        self._instants.received_ms = now_ms
        if self.sender.delivered > 1:
            self.phase = "looking"
            return (LookUp(),)
        return self._begin_or_read_back()

    def looked_up(self, *, outcome_exists: bool) -> tuple[Command, ...]:
        """Take the answer to `LookUp`."""
        if self.phase != "looking":
            raise InvariantViolation("look-up", "answered and never sent", **self._history())
        if outcome_exists:
            self.phase = "done"
            return (Forget(),)
        return self._begin_or_read_back()

    @abstractmethod
    def answered(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        """Take the answer to a request that writes."""

    @abstractmethod
    def read_back(
        self, index: int, view: PodView | Answer | None, now_ms: int
    ) -> tuple[Command, ...]:
        """Take the answer to a `Read`: the pod, None for a 404, or an `Answer` that is neither."""

    @abstractmethod
    def _begin(self) -> tuple[Command, ...]:
        """Return the first requests of a decision that is carried out."""

    @abstractmethod
    def _repeat_request(self, index: int, delay_ms: int) -> Request:
        """The request of pod `index` that has to be repeated."""

    @abstractmethod
    def _next(self, now_ms: int) -> tuple[Command, ...]:
        """Begin the next phase once no request of this one is in flight."""

    def _finding_of_unsettled(self, unsettled: UnsettledPod) -> Finding:
        """The finding of a pod that no answer settled; a dry run has no effect later."""
        last = unsettled.last
        if self.phase == "proving":
            reason = last.reason or "PreflightUnanswered"
            return Finding("skipped", last.status, reason, last.message)
        return Finding.of("unknown", last)

    def _begin_or_read_back(self) -> tuple[Command, ...]:
        if self.sender.delivered <= self._limits.deliveries_max:
            return self._begin()
        self.phase = "reading"
        return self._send_all([Read(index) for index in range(len(self.targets))])

    def _send_all(self, requests: Sequence[Request]) -> tuple[Command, ...]:
        """Send the first requests of a phase; without any, begin the next one."""
        self._in_flight.update(request.index for request in requests)
        return tuple(requests) if requests else self._next(self._instants.received_ms)

    def _take_answer(self, index: int, *phases: Phase) -> None:
        if self.phase not in phases or index not in self._in_flight:
            raise InvariantViolation(
                "answer", "answer to no request", index=index, **self._history()
            )
        self._in_flight.remove(index)

    def _retry_or_read(
        self, index: int, answer: Answer, now_ms: int, *, read: bool
    ) -> tuple[Command, ...]:
        """Repeat the request if the limits allow it; otherwise, or with `read`, read the pod."""
        unsettled = self._unsettled.get(index)
        if unsettled is None:
            unsettled = self._unsettled[index] = UnsettledPod(now_ms)
        unsettled.posts += 1
        unsettled.last = answer
        unsettled.unanswered |= answer.status == 0 or answer.status >= 500
        self._in_flight.add(index)
        if not read:
            delay_ms = self._delay_ms(index, unsettled.posts, answer.retry_after_ms)
            if self._may_retry(unsettled, now_ms, delay_ms):
                return (self._repeat_request(index, delay_ms),)
        return (Read(index),)

    def _read(self, index: int, now_ms: int) -> UnsettledPod:
        """Count a read of a pod."""
        unsettled = self._unsettled.setdefault(index, UnsettledPod(now_ms))
        unsettled.reads += 1
        return unsettled

    def _read_failed(
        self, index: int, unsettled: UnsettledPod, answer: Answer, now_ms: int
    ) -> tuple[Command, ...]:
        """Read again, or leave the pod unsettled."""
        delay_ms = self._delay_ms(index, unsettled.reads, answer.retry_after_ms)
        if unsettled.reads < self._limits.reads_max and delay_ms <= self._limits.patience_ms:
            self._in_flight.add(index)
            return (Read(index, delay_ms),)
        if not unsettled.posts:
            unsettled.last = answer
        self._findings[index] = self._finding_of_unsettled(unsettled)
        return self._next(now_ms)

    def _retry_after_conflict(
        self, index: int, unsettled: UnsettledPod, now_ms: int
    ) -> tuple[Command, ...]:
        """Repeat a request after a 409 whose cause is gone; otherwise the pod stays unsettled."""
        if self._may_retry_conflict(unsettled, now_ms):
            self._in_flight.add(index)
            return (self._repeat_request(index, self._delay_ms(index, unsettled.posts, 0)),)
        self._findings[index] = self._finding_of_unsettled(unsettled)
        return self._next(now_ms)

    def _may_retry_conflict(self, unsettled: UnsettledPod, now_ms: int) -> bool:
        return unsettled.last.status == 409 and self._may_retry(unsettled, now_ms, 0)

    def _may_retry(self, unsettled: UnsettledPod, now_ms: int, delay_ms: int) -> bool:
        limits = self._limits
        waited_ms = now_ms - unsettled.first_ms
        return unsettled.posts < limits.posts_max and waited_ms + delay_ms <= limits.patience_ms

    def _delay_ms(self, index: int, tries: int, at_least_ms: int) -> int:
        """Doubling, from half to all of the bound; the jitter is a hash, so that a replay waits
        as long. It is added to a Retry-After, so that requests do not all return at once.
        """
        limits = self._limits
        full_ms = min(limits.backoff_ms_min << (tries - 1), limits.backoff_ms_max)
        jitter = zlib.crc32(f"{self.targets[index].uid}:{tries}".encode()) % 1024
        delay_ms = full_ms // 2 + full_ms * jitter // 2048
        return max(delay_ms, at_least_ms + delay_ms if at_least_ms else 0)

    def _history(self) -> dict[str, object]:
        return {
            "gang": self.decision.gang,
            "decision_seq": self.sender.decision_seq,
            "phase": self.phase,
            "pods_in_flight": len(self._in_flight),
        }
