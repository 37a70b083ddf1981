"""One delivery of a decision, as far as binding and removing are alike. Pure.

In: `start`, then one `answered`, `seen` or `looked_up` for every command given out, in any order.
Out: commands. The shell sends them (bounded, in the order given), waits `delay_ms` where a command
asks for it, and hands back what came.

    looking ──(an outcome exists)──────────────────────────────────> Forget
       │ (none)
       ├─(delivered too often)─> reading ──(all read back)─────────> Finish BinderGaveUp
       └───────────────────────> the phases of the kind of decision > Finish

A first delivery skips `looking`. What has no verdict of the API server is asked again with growing,
jittered delays, at most `posts_max` times and `patience_ms` long; then the pod is read; what even
that does not decide it is `unknown`.

Invariants: at most one request per pod is in flight; a pod settled is never asked again; `Finish`
or `Forget` is given exactly once, when nothing is in flight. An answer that belongs to no request
raises `InvariantViolation`.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Generic, Literal, TypeVar

from services.binder.core.answers import Answer, Sight
from services.binder.core.commands import Command, Forget, Limits, LookUp, Read, Request
from services.binder.core.outcome import Finding, Instants, Sender
from shared.contracts.decisions import Binding, EvictionDecision, GangDecision, Victim
from shared.model.invariants import InvariantViolation

D_co = TypeVar("D_co", bound=GangDecision | EvictionDecision, covariant=True)

Phase = Literal[
    "new",
    "looking",
    "reading",
    "proving",
    "preparing",
    "binding",
    "undoing",
    "removing",
    "done",
]

NOTHING: Final[tuple[Command, ...]] = ()


class Doubt:
    """A pod that has no verdict yet: how often it was asked, and what came last."""

    __slots__ = ("first_ms", "last", "posts", "reads", "unanswered")

    def __init__(self, now_ms: int) -> None:
        """Begin to count with the first answer that was no verdict."""
        self.first_ms = now_ms
        self.posts = 0
        self.reads = 0
        self.last = Answer(0)
        #: A request that writes had no answer, or an unclear one: it may be carried out yet.
        self.unanswered = False


class Attempt(ABC, Generic[D_co]):
    """A decision on its way to its outcome; what kind of decision it is, the subclass knows."""

    def __init__(
        self,
        decision: D_co,
        targets: tuple[Binding | Victim, ...],
        sender: Sender,
        limits: Limits,
    ) -> None:
        """Take one delivery of `decision`, about the pods `targets`; nothing is sent before
        `start`.
        """
        self.targets: Final[tuple[Binding | Victim, ...]] = targets
        self.phase: Phase = "new"
        self._decision = decision
        self._sender = sender
        self._limits = limits
        self._instants = Instants()
        self._in_flight: set[int] = set()
        self._doubts: dict[int, Doubt] = {}
        self._findings: dict[int, Finding] = {}

    @property
    def decision(self) -> D_co:
        """What is carried out."""
        return self._decision

    @property
    def sender(self) -> Sender:
        """The binder that carries it out, and in which delivery."""
        return self._sender

    @property
    def instants(self) -> Instants:
        """What happened when, so far."""
        return self._instants

    def start(self, now_ms: int) -> tuple[Command, ...]:
        """Give out the first commands. Call once."""
        if self.phase != "new":
            raise InvariantViolation("decision", "started twice", **self._story())
        self._instants.received_ms = now_ms
        if self._sender.delivered > 1:
            self.phase = "looking"
            return (LookUp(),)
        return self._open()

    def looked_up(self, *, outcome_exists: bool) -> tuple[Command, ...]:
        """Take the answer to `LookUp`."""
        if self.phase != "looking":
            raise InvariantViolation("look-up", "answered and never sent", **self._story())
        if outcome_exists:
            self.phase = "done"
            return (Forget(),)
        return self._open()

    @abstractmethod
    def answered(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        """Take the answer to a request that writes."""

    @abstractmethod
    def seen(self, index: int, sight: Sight | Answer | None, now_ms: int) -> tuple[Command, ...]:
        """Take what a `Read` showed: the pod, `None` for a 404, or an `Answer` that is neither."""

    @abstractmethod
    def _begin(self) -> tuple[Command, ...]:
        """Give out the first requests of a decision that is carried out."""

    @abstractmethod
    def _ask_again(self, index: int, delay_ms: int) -> Request:
        """Name the request that pod `index` waits for an answer to."""

    @abstractmethod
    def _next(self, now_ms: int) -> tuple[Command, ...]:
        """Go to the next phase once nothing of this one is in flight."""

    @abstractmethod
    def _never_told(self, doubt: Doubt) -> Finding:
        """Name the end of a pod that no answer settled."""

    def _open(self) -> tuple[Command, ...]:
        if self._sender.delivered <= self._limits.deliveries_max:
            return self._begin()
        self.phase = "reading"
        return self._give_out([Read(index) for index in range(len(self.targets))])

    def _give_out(self, requests: Sequence[Request]) -> tuple[Command, ...]:
        """Send the first requests of a phase; without any, it is over."""
        self._in_flight.update(request.index for request in requests)
        return tuple(requests) if requests else self._next(self._instants.received_ms)

    def _returned(self, index: int, *phases: Phase) -> None:
        if self.phase not in phases or index not in self._in_flight:
            raise InvariantViolation("answer", "answer to no request", index=index, **self._story())
        self._in_flight.remove(index)

    def _doubted(
        self, index: int, answer: Answer, now_ms: int, *, read: bool
    ) -> tuple[Command, ...]:
        """Ask again if the limits allow it, else, or if the answer calls for it, `read`."""
        doubt = self._doubts.get(index)
        if doubt is None:
            doubt = self._doubts[index] = Doubt(now_ms)
        doubt.posts += 1
        doubt.last = answer
        doubt.unanswered |= answer.status == 0 or answer.status >= 500
        self._in_flight.add(index)
        if not read:
            delay_ms = self._delay_ms(index, doubt.posts, answer.retry_after_ms)
            if self._may_try(doubt, now_ms, delay_ms):
                return (self._ask_again(index, delay_ms),)
        return (Read(index),)

    def _read(self, index: int, now_ms: int) -> Doubt:
        """Count a read of a pod."""
        doubt = self._doubts.setdefault(index, Doubt(now_ms))
        doubt.reads += 1
        return doubt

    def _not_seen(
        self, index: int, doubt: Doubt, answer: Answer, now_ms: int
    ) -> tuple[Command, ...]:
        """Read again, or leave the pod untold."""
        delay_ms = self._delay_ms(index, doubt.reads, answer.retry_after_ms)
        if doubt.reads < self._limits.reads_max and delay_ms <= self._limits.patience_ms:
            self._in_flight.add(index)
            return (Read(index, delay_ms),)
        if not doubt.posts:
            doubt.last = answer
        self._findings[index] = self._never_told(doubt)
        return self._next(now_ms)

    def _still_there(self, index: int, doubt: Doubt, now_ms: int) -> tuple[Command, ...]:
        """Try again after a 409 whose reason is no longer there; else nothing settled it."""
        if self._may_try_again(doubt, now_ms):
            self._in_flight.add(index)
            return (self._ask_again(index, self._delay_ms(index, doubt.posts, 0)),)
        self._findings[index] = self._never_told(doubt)
        return self._next(now_ms)

    def _may_try_again(self, doubt: Doubt, now_ms: int) -> bool:
        return doubt.last.status == 409 and self._may_try(doubt, now_ms, 0)

    def _may_try(self, doubt: Doubt, now_ms: int, delay_ms: int) -> bool:
        limits = self._limits
        waited_ms = now_ms - doubt.first_ms
        return doubt.posts < limits.posts_max and waited_ms + delay_ms <= limits.patience_ms

    def _delay_ms(self, index: int, tries: int, at_least_ms: int) -> int:
        """Grow by doubling, between half and all of it; the jitter is a hash, so that a replay
        waits alike.

        Within a Retry-After the server has spoken: the jitter is then added, or all would come back
        at once.
        """
        limits = self._limits
        full_ms = min(limits.backoff_ms_min << (tries - 1), limits.backoff_ms_max)
        jitter = zlib.crc32(f"{self.targets[index].uid}:{tries}".encode()) % 1024
        delay_ms = full_ms // 2 + full_ms * jitter // 2048
        return max(delay_ms, at_least_ms + delay_ms if at_least_ms else 0)

    def _story(self) -> dict[str, object]:
        return {
            "gang": self._decision.gang,
            "decision_seq": self._sender.decision_seq,
            "phase": self.phase,
            "pods_in_flight": len(self._in_flight),
        }
