"""Each request of a decision reaches its own pod, as what it is, and only under a lease."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from typing_extensions import override

from services.binder.active_decision import DeliveryLease, activate
from services.binder.core.answers import TIMEOUT, Answer
from services.binder.core.commands import Command, Evict, Limits, Post, Read, Request
from services.binder.core.outcome import Sender
from services.binder.request_dispatcher import RequestDispatcher
from shared.contracts.decisions import Act, Binding, EvictionDecision, Victim
from tests.services.binder.core.samples import make_decision, make_release
from tests.services.binder.harness import MemoryPods
from tests.support.waiting import eventually

ANSWERED = Answer(201)


class RecordedPods(MemoryPods):
    """Keeps what it was asked, and answers with one answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[tuple[object, ...]] = []

    @override
    async def bind(self, binding: Binding, marks: Any, *, dry_run: bool) -> Answer:
        self.asked.append(("bind", binding.name, dry_run))
        return self.answer

    @override
    async def evict(self, victim: Victim, *, dry_run: bool) -> Answer:
        self.asked.append(("evict", victim.name, dry_run))
        return self.answer

    @override
    async def read(self, pod: Binding | Victim) -> Answer:
        self.asked.append(("read", pod.name))
        return self.answer


class Stand:
    """A dispatcher with one decision, in place of whose machine it counts the answers."""

    def __init__(self, decision: Act, answer: Answer = ANSWERED, *, held: bool = True) -> None:
        self.pods = RecordedPods(answer)
        self.answers = 0
        self.dispatcher = RequestDispatcher(
            cast("Any", self.pods), self._proceed, lambda: 0, requests_max=4, on_short=lambda: None
        )
        now_s = time.monotonic()
        lease = DeliveryLease(cast("Any", SimpleNamespace(seq=5)), now_s + (60 if held else -60))
        sender = Sender(binder="binder-0", decision_seq=5, delivered=1)
        active = activate(decision, lease, sender, Limits(), "i")
        machine = SimpleNamespace(
            targets=active.machine.targets, answered=self._answered, read_back=self._answered
        )
        self.active = msgspec.structs.replace(active, machine=cast("Any", machine))

    def _answered(self, *_: object) -> tuple[Command, ...]:
        self.answers += 1
        return ()

    def _proceed(self, *_: object) -> None:
        raise AssertionError("its machine wants nothing")

    async def send(self, *requests: Request) -> None:
        """Send requests, and wait for all answers."""
        running = asyncio.create_task(self.dispatcher.run())
        try:
            for request in requests:
                self.dispatcher.send(self.active, request)
            await eventually(lambda: self.answers == len(requests))
        finally:
            running.cancel()
            await asyncio.wait([running])


def an_eviction() -> EvictionDecision:
    return msgspec.structs.replace(make_release(2), via="eviction", reason="Preempted")


async def test_each_request_reaches_its_own_pod() -> None:
    bindings = Stand(make_decision(2))
    await bindings.send(Read(1), Post(1), Post(0, dry_run=True))
    assert sorted(bindings.pods.asked) == [
        ("bind", "w-0", True),
        ("bind", "w-1", False),
        ("read", "w-1"),
    ]


async def test_the_proof_of_an_eviction_evicts_no_pod() -> None:
    victims = Stand(an_eviction())
    await victims.send(Evict(0, dry_run=True), Evict(1))
    assert sorted(victims.pods.asked) == [("evict", "w-0", True), ("evict", "w-1", False)]


async def test_no_request_is_sent_after_the_lease_has_expired() -> None:
    expired, held = Stand(make_decision(1), held=False), Stand(make_decision(1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await expired.send(Post(0))
    assert not expired.pods.asked
    await held.send(Post(0))


async def test_an_answer_that_does_not_come_in_time_narrows_the_window() -> None:
    late = Stand(make_decision(1), Answer(0, TIMEOUT))
    await late.send(Post(0))
    assert late.dispatcher.width == 2
    refused = Stand(make_decision(1), Answer(403, "Forbidden"))
    await refused.send(Post(0))
    assert refused.dispatcher.width == 4


def test_pods_are_evicted_at_a_run_limit_and_released_for_all_other_reasons() -> None:
    why = "its run limit of 1h has passed"
    release = make_release(1)
    at_limit = msgspec.structs.replace(release, reason="RunLimitExceeded", why=why)
    marks = Stand(at_limit).active.marks
    assert marks["reason"] == "RunLimitExceeded"
    assert marks["message"].endswith(why)
    for reason in ("BindingRefused", "StartDeadline", "DegradedGrace"):
        other = msgspec.structs.replace(release, reason=reason)
        assert Stand(other).active.marks["reason"] == "GangReleased"


def test_the_condition_of_a_victim_is_bounded_and_names_no_gang_of_another_namespace() -> None:
    decision = msgspec.structs.replace(an_eviction(), gang="secret/job", why="x" * 5_000)
    message = Stand(decision).active.marks["message"]
    assert len(message) <= 1_024
    assert "secret" not in message
    assert Stand(decision).active.marks["reason"] == "PreemptionByScheduler"
