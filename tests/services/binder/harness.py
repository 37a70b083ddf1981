"""A binder on a real nats-server, with pods made of memory instead of an API server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from services.binder.config import BinderSettings
from services.binder.core.answers import Answer, PodView
from services.binder.service import Binder
from shared.bus.connection import Bus
from shared.bus.jetstream_api import ApiAnswer
from shared.bus.publisher import Publisher
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from shared.contracts.codec import decode_outcome, encode
from shared.contracts.decisions import Binding, EpochOpened, Victim
from shared.contracts.foreign_messages import is_foreign
from shared.contracts.outcomes import DecisionClaimed, Outcome
from tests.support.background import in_background
from tests.support.standing import Stand
from tests.support.waiting import eventually

EPOCH = 2
"""Epoch of the planner of these tests: DECISIONS' record 1 is setup's, record 2 opens the epoch."""


class MemoryPods:
    """Binds pods in memory; `u-3` is the UID of the pod w-3, as in `samples`."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.marks: dict[str, dict[str, str]] = {}
        self.posts: list[str] = []
        #: Cleared, every bind hangs until it is set.
        self.open = asyncio.Event()
        self.open.set()
        self.answers: dict[str, Answer] = {}
        #: Names of the pods of which was asked whether they may be evicted.
        self.proven: list[str] = []
        #: Names of the pods that are gone, and the conditions written before that.
        self.deleted: set[str] = set()
        self.conditions: dict[str, dict[str, Any]] = {}

    async def bind(self, binding: Binding, marks: Mapping[str, str], *, dry_run: bool) -> Answer:
        self.posts.append(binding.name)
        await self.open.wait()
        if binding.name in self.answers:
            return self.answers[binding.name]
        if binding.name in self.bound:
            return Answer(409, "Conflict", "already assigned")
        if not dry_run:
            self.bound[binding.name] = binding.node
            self.marks[binding.name] = dict(marks)
        return Answer(201)

    async def mark(self, victim: Victim, condition: Mapping[str, Any]) -> Answer:
        if victim.name in self.deleted:
            return Answer(404, "NotFound")
        self.conditions[victim.name] = dict(condition)
        return Answer(200)

    async def delete(self, victim: Victim) -> Answer:
        self.posts.append(victim.name)
        await self.open.wait()
        if victim.name in self.answers:
            return self.answers[victim.name]
        if victim.name in self.deleted:
            return Answer(404, "NotFound")
        self.deleted.add(victim.name)
        return Answer(200)

    async def evict(self, victim: Victim, *, dry_run: bool) -> Answer:
        if dry_run:
            self.proven.append(victim.name)
            return self.answers.get(victim.name, Answer(201))
        return await self.delete(victim)

    async def read(self, pod: Binding | Victim) -> PodView | Answer | None:
        if pod.name in self.deleted:
            return None
        return PodView(pod.uid, self.bound.get(pod.name, ""))


class Desk:
    """The planner's end of the bus, and what operators would see."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self._publisher = Publisher(bus)

    async def decide(self, decision: msgspec.Struct, gang_id: str = "g") -> int:
        """Append a decision and return its sequence."""
        stored = await (await self._publisher.publish(subjects.act(gang_id), encode(decision)))
        return stored.seq

    async def open_epoch(self) -> int:
        """Take over as a planner, and return the epoch: the record's own sequence."""
        epoch = (await self.bus.stream_info(subjects.DECISIONS)).last_seq + 1
        opened = EpochOpened(epoch=epoch, planner="planner-0", at_ms=0, cluster_epoch=1)
        stored = await (await self._publisher.publish(subjects.DECISIONS_EPOCH, encode(opened)))
        assert stored.seq == epoch
        return epoch

    async def make_again(self) -> None:
        """Lose NATS's storage, as far as decisions and outcomes go, and set it up again."""
        for stream in (subjects.DECISIONS, subjects.OUTCOMES):
            await self.bus.api(f"STREAM.DELETE.{stream}", {}, ApiAnswer)
        await ensure_streams(self.bus)
        assert await self.open_epoch() == EPOCH

    async def outcome(self, seq: int, gang_id: str = "g") -> Outcome | None:
        """The outcome of a decision, if there is one."""
        subject = subjects.outcome(gang_id, seq)
        stored = await self.bus.get_last(subjects.OUTCOMES, subject)
        if stored is None or is_foreign(subjects.OUTCOMES, stored.payload):
            return None
        outcome = decode_outcome(stored.payload)
        return outcome if isinstance(outcome, Outcome) else None

    async def store(self, outcome: Outcome | DecisionClaimed) -> None:
        """Store an outcome, or a claim, as another binder would."""
        subject = subjects.outcome(outcome.gang_id, outcome.decision_seq)
        await (await self._publisher.publish(subject, encode(outcome)))

    async def unacknowledged(self) -> int:
        """Decisions that are delivered or waiting, and not acknowledged."""
        info = await self.bus.api(
            f"CONSUMER.INFO.{subjects.DECISIONS}.{subjects.BINDER_CONSUMER}", {}, ConsumerInfo
        )
        return info.num_ack_pending + info.num_pending


class ConsumerInfo(ApiAnswer, frozen=True):
    """What a consumer says of itself."""

    num_ack_pending: int = 0
    num_pending: int = 0


@asynccontextmanager
async def a_desk(url: str) -> AsyncIterator[Desk]:
    """Set up the streams, open the epoch, and sit down."""
    bus = await Bus.connect(url, name="desk")
    try:
        await ensure_streams(bus)
        desk = Desk(bus)
        assert await desk.open_epoch() == EPOCH
        yield desk
    finally:
        await bus.close()


@asynccontextmanager
async def a_binder(
    url: str, pods: Any, instance: str = "binder-0", **settings: Any
) -> AsyncIterator[Stand[BinderSettings]]:
    """Run a binder, and let it look at the streams; leaving kills it where it stands."""
    bus = await Bus.connect(url, name="binder", instance=instance)
    stand = Stand("binder", instance, BinderSettings(**settings), bus)
    try:
        async with in_background(Binder(stand, pods).run(), name=instance) as task:
            stand.ready.require("decisions")
            await eventually(lambda: stand.ready.ready or task.done())
            yield stand
    finally:
        await bus.close()


async def answered(desk: Desk, seq: int) -> Outcome:
    """Wait for the outcome of a decision."""
    outcome = await eventually(lambda: desk.outcome(seq))
    assert outcome is not None
    return outcome


async def all_acknowledged(desk: Desk) -> None:
    """Wait until no decision is waiting or unacknowledged."""

    async def none_left() -> bool:
        return await desk.unacknowledged() == 0

    await eventually(none_left)
