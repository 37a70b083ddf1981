"""The protocol of one decision: the requests it takes, their order, and its outcome. Pure.

In: `start`, then one `answered`, `seen` or `looked_up` for every command given out, in any order.
Out: commands. The shell sends them (bounded, in the order given), waits `delay_ms` where a command
asks for it, and hands back what came.

    looking ──(an outcome exists)──────────────────────────────────> Forget
       │ (none)
       ├─(delivered too often)─> reading ──(all read back)─────────> Finish BinderGaveUp
       ├─(pre-flight wanted)───> proving ──(one did not pass)──────> Finish PreflightFailed
       │                            │ (all pass)
       └────────────────────────────┴─> binding ──(all answered)───> Finish

A first delivery skips `looking`. Each member is settled by exactly one of: a 2xx, a definite
refusal, a read of the pod. What has no verdict is asked again with growing, jittered delays, at
most `posts_max` times and `patience_ms` long; then the pod is read; what even that does not tell is
`unknown`. Doing all of it twice is harmless: the UID is a precondition, and a pod that is already
on its node is bound.

Invariants: at most one request per member is under way; a member settled is never asked again;
`Finish` or `Forget` is given exactly once, when nothing is under way. An answer that belongs to no
request raises `InvariantViolation`.
"""

import zlib
from typing import Final, Literal, TypeAlias, assert_never

import msgspec

from services.binder.core.answers import (
    Answer,
    Sight,
    conflict_text,
    meaning_of_post,
    meaning_of_sight,
)
from services.binder.core.outcome import Finding, Instants, Sender, outcome_of
from services.binder.errors import InvariantViolation
from shared.contracts.decisions import Binding, GangDecision
from shared.contracts.outcomes import Outcome


class Limits(msgspec.Struct, frozen=True):
    """How long one member is tried, and how often one decision."""

    #: POSTs of one member in one phase. With the delays below they last about seven seconds: an
    #: API server restarts in less.
    posts_max: int = 8
    #: Reads of one pod until its state counts as unknown.
    reads_max: int = 3
    #: No new try of a member later than this after its first answer.
    patience_ms: int = 8_000
    backoff_ms_min: int = 100
    backoff_ms_max: int = 2_000
    #: Deliveries that are carried out; later ones only read back.
    deliveries_max: int = 5


class Post(msgspec.Struct, frozen=True, gc=False):
    """Send the Binding of member `index`, after `delay_ms`."""

    index: int
    dry_run: bool = False
    delay_ms: int = 0


class Read(msgspec.Struct, frozen=True, gc=False):
    """Read the pod of member `index`, after `delay_ms`."""

    index: int
    delay_ms: int = 0


class LookUp(msgspec.Struct, frozen=True, gc=False):
    """Ask the stream's leader whether this decision already has an outcome."""


class Finish(msgspec.Struct, frozen=True):
    """Publish this outcome, then acknowledge."""

    outcome: Outcome


class Forget(msgspec.Struct, frozen=True, gc=False):
    """Acknowledge and do nothing: another delivery has finished the decision."""


Command: TypeAlias = Post | Read | LookUp | Finish | Forget
Phase = Literal["new", "looking", "reading", "proving", "binding", "done"]

NOTHING: Final[tuple[Command, ...]] = ()


class _Doubt:
    """A member that has no verdict yet: how often it was asked, and what came last."""

    __slots__ = ("first_ms", "last", "posts", "reads")

    def __init__(self, now_ms: int) -> None:
        self.first_ms = now_ms
        self.posts = 0
        self.reads = 0
        self.last = Answer(0)


class Machine:
    """One decision on its way to its outcome."""

    def __init__(self, decision: GangDecision, sender: Sender, limits: Limits) -> None:
        """Take one delivery of `decision`; nothing is sent before `start`."""
        self.decision = decision
        self.phase: Phase = "new"
        self.bound = 0
        self._sender = sender
        self._limits = limits
        self._instants = Instants()
        self._under_way: set[int] = set()
        self._on_node: set[int] = set()
        self._doubts: dict[int, _Doubt] = {}
        self._findings: dict[int, Finding] = {}
        self._untested: str = ""

    @property
    def instants(self) -> Instants:
        """What happened when, so far."""
        return self._instants

    def start(self, now_ms: int) -> tuple[Command, ...]:
        """Give out the first commands. Call once."""
        if self.phase != "new":
            raise InvariantViolation("decision started twice", **self._story())
        self._instants.received_ms = now_ms
        if self._sender.delivered > 1:
            self.phase = "looking"
            return (LookUp(),)
        return self._open()

    def looked_up(self, *, outcome_exists: bool) -> tuple[Command, ...]:
        """Take the answer to `LookUp`."""
        if self.phase != "looking":
            raise InvariantViolation("look-up answered that was not asked", **self._story())
        if outcome_exists:
            self.phase = "done"
            return (Forget(),)
        return self._open()

    def answered(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        """Take the answer to a `Post`."""
        dry_run = self.phase == "proving"
        self._returned(index, "proving", "binding")
        meaning = meaning_of_post(answer, dry_run=dry_run)
        match meaning:
            case "bound" if dry_run:
                pass
            case "bound":
                self._is_bound(index, now_ms)
            case "untested":
                self._untested = answer.message
            case "gone" | "refused":
                self._findings[index] = Finding(
                    meaning, answer.status, answer.reason, answer.message
                )
            case "read" | "again":
                return self._doubted(index, answer, now_ms)
            case _:
                assert_never(meaning)
        return self._next(now_ms)

    def seen(self, index: int, sight: Sight | Answer | None, now_ms: int) -> tuple[Command, ...]:
        """Take what a `Read` showed: the pod, `None` for a 404, or an `Answer` that is neither."""
        self._returned(index, "proving", "binding", "reading")
        doubt = self._doubts.setdefault(index, _Doubt(now_ms))
        doubt.reads += 1
        if isinstance(sight, Answer):
            return self._not_seen(index, doubt, sight, now_ms)
        meaning = meaning_of_sight(sight, self.decision.bindings[index])
        match meaning:
            case "bound":
                self._is_bound(index, now_ms)
            case "gone":
                self._findings[index] = Finding("gone", 404, "NotFound")
            case "conflict":
                assert sight is not None, "no pod, no conflict"
                text = conflict_text(sight, self.decision.bindings[index])
                self._findings[index] = Finding("conflict", 409, "Conflict", text)
            case "free":
                if doubt.last.status == 409 and self._may_try(doubt, now_ms, 0):
                    return self._post_again(index, doubt)
                self._findings[index] = self._never_told(doubt)
            case _:
                assert_never(meaning)
        return self._next(now_ms)

    # Phases.

    def _open(self) -> tuple[Command, ...]:
        if self._sender.delivered > self._limits.deliveries_max:
            self.phase = "reading"
            return self._give_out([Read(index) for index in range(len(self.decision.bindings))])
        if self.decision.preflight:
            self.phase = "proving"
            return self._give_out(
                [Post(index, dry_run=True) for index in range(len(self.decision.bindings))]
            )
        return self._bind()

    def _bind(self) -> tuple[Command, ...]:
        self.phase = "binding"
        self._doubts.clear()
        return self._give_out(
            [
                Post(index)
                for index in range(len(self.decision.bindings))
                if index not in self._on_node
            ]
        )

    def _give_out(self, commands: list[Post] | list[Read]) -> tuple[Command, ...]:
        self._under_way.update(command.index for command in commands)
        return tuple(commands) if commands else self._next(self._instants.received_ms)

    def _next(self, now_ms: int) -> tuple[Command, ...]:
        """Go to the next phase once nothing of this one is under way."""
        if self._under_way:
            return NOTHING
        if self.phase == "proving":
            self._instants.preflight_ms = now_ms
            if not self._findings:
                return self._bind()
            return self._finish("PreflightFailed")
        return self._finish("BinderGaveUp" if self.phase == "reading" else "")

    def _finish(self, reason: str) -> tuple[Command, ...]:
        self.phase = "done"
        findings: list[tuple[Binding, Finding]] = []
        skipped = Finding("skipped")
        for index, binding in enumerate(self.decision.bindings):
            if index not in self._on_node:
                findings.append((binding, self._findings.get(index, skipped)))
        notes = (f"PreflightUntested: {self._untested[:300]}",) if self._untested else ()
        outcome = outcome_of(
            self.decision,
            self._sender,
            self._instants,
            bound=self.bound,
            reason=reason,
            notes=notes,
            findings=findings,
        )
        return (Finish(outcome),)

    # One member.

    def _returned(self, index: int, *phases: Phase) -> None:
        if self.phase not in phases or index not in self._under_way:
            raise InvariantViolation("answer to no request", index=index, **self._story())
        self._under_way.remove(index)

    def _is_bound(self, index: int, now_ms: int) -> None:
        self._on_node.add(index)
        self.bound += 1
        if not self._instants.first_bound_ms:
            self._instants.first_bound_ms = now_ms
        self._instants.last_bound_ms = now_ms

    def _doubted(self, index: int, answer: Answer, now_ms: int) -> tuple[Command, ...]:
        """Ask again or read, whichever the answer calls for and the limits allow."""
        doubt = self._doubts.get(index)
        if doubt is None:
            doubt = self._doubts[index] = _Doubt(now_ms)
        doubt.posts += 1
        doubt.last = answer
        self._under_way.add(index)
        if answer.status != 409:
            delay_ms = self._delay_ms(index, doubt.posts, answer.retry_after_ms)
            if self._may_try(doubt, now_ms, delay_ms):
                return (Post(index, self.phase == "proving", delay_ms),)
        return (Read(index),)

    def _post_again(self, index: int, doubt: _Doubt) -> tuple[Command, ...]:
        """Try once more after a 409 whose reason is no longer there."""
        self._under_way.add(index)
        return (Post(index, self.phase == "proving", self._delay_ms(index, doubt.posts, 0)),)

    def _not_seen(
        self, index: int, doubt: _Doubt, answer: Answer, now_ms: int
    ) -> tuple[Command, ...]:
        """Read again, or leave the member untold."""
        delay_ms = self._delay_ms(index, doubt.reads, answer.retry_after_ms)
        if doubt.reads < self._limits.reads_max and delay_ms <= self._limits.patience_ms:
            self._under_way.add(index)
            return (Read(index, delay_ms),)
        if not doubt.posts:
            doubt.last = answer
        self._findings[index] = self._never_told(doubt)
        return self._next(now_ms)

    def _never_told(self, doubt: _Doubt) -> Finding:
        """Name the end of a member that no answer settled.

        A dry run can bind nothing later, so there the member was simply not sent; a 409 that was
        never followed by a binding is a conflict; everything else may still be carried out late.
        """
        last = doubt.last
        if self.phase == "proving":
            return Finding(
                "skipped", last.status, last.reason or "PreflightUnanswered", last.message
            )
        if last.status == 409:
            return Finding("conflict", 409, last.reason, last.message)
        return Finding("unknown", last.status, last.reason, last.message)

    def _may_try(self, doubt: _Doubt, now_ms: int, delay_ms: int) -> bool:
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
        jitter = zlib.crc32(f"{self.decision.bindings[index].uid}:{tries}".encode()) % 1024
        delay_ms = full_ms // 2 + full_ms * jitter // 2048
        return max(delay_ms, at_least_ms + delay_ms if at_least_ms else 0)

    def _story(self) -> dict[str, object]:
        return {
            "gang": self.decision.gang,
            "decision_seq": self._sender.decision_seq,
            "phase": self.phase,
            "under_way": len(self._under_way),
        }
