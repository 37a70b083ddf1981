"""Queues followed on a real nats-server: snapshot, log, new epochs, and a watcher that is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from services.admission_webhook import reference_follower
from services.admission_webhook.reference_follower import ReferenceFollower
from shared.bus.connection import Bus
from shared.bus.jetstream_api import ApiAnswer
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from shared.contracts.cluster import Gone
from shared.model.objects import PriorityClass
from shared.model.reference_objects import Namespace
from tests.services.admission_webhook.reviews import volcano_queue
from tests.services.admission_webhook.stand_in_watcher import a_watcher
from tests.support.background import in_background
from tests.support.junk import store_answer
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


@asynccontextmanager
async def a_follower(url: str) -> AsyncIterator[ReferenceFollower]:
    bus = await Bus.connect(url, name="admission-webhook")
    follower = ReferenceFollower(bus, 0, lambda: None, lambda *_: None)
    try:
        async with in_background(follower.run(), name="follower"):
            yield follower
    finally:
        await bus.close()


def exists(follower: ReferenceFollower, name: str) -> bool:
    return follower.queues is not None and follower.queues.exists(name)


async def test_the_snapshot_and_the_records_after_it_make_the_cluster_state(
    nats_server: NatsServer,
) -> None:
    async with a_watcher(nats_server.url) as watcher:
        await watcher.change(volcano_queue("a"), volcano_queue("b"), volcano_queue("c"))
        async with a_follower(nats_server.url) as follower:
            assert follower.queues is None, "nothing is known before the snapshot"
            await eventually(lambda: all(exists(follower, name) for name in "abc"))
            await watcher.change(volcano_queue("d"), removed=(Gone(uid="u-a", resource_version=9),))
            await eventually(lambda: exists(follower, "d") and not exists(follower, "a"))
        kinds = ("queue", "namespace", "priorityclass")
        assert {question.kinds for question in watcher.asked} == {kinds}


async def test_queues_that_namespaces_name_are_known(nats_server: NatsServer) -> None:
    def a_namespace(version: int, queue: str) -> Namespace:
        return Namespace(uid="u-n", name="team", resource_version=version, queue=queue)

    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await eventually(lambda: follower.queues is not None)
        await watcher.change_namespaces(a_namespace(3, "lane"))
        await watcher.change_namespaces(a_namespace(2, "older"))
        await eventually(lambda: follower.namespace_queues == {"team": "lane"})
        await watcher.change_namespaces(removed=(Gone(uid="u-n", resource_version=4),))
        await eventually(lambda: follower.namespace_queues == {})


async def test_priority_classes_are_known_by_name(nats_server: NatsServer) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        assert follower.priority_classes is None
        await eventually(lambda: follower.priority_classes == frozenset())
        await watcher.change_priority_classes(
            PriorityClass(uid="u-h", name="high", resource_version=1)
        )
        await eventually(lambda: follower.priority_classes == frozenset({"high"}))
        await watcher.change_priority_classes(removed=(Gone(uid="u-h", resource_version=2),))
        await eventually(lambda: follower.priority_classes == frozenset())


async def test_a_snapshot_is_asked_for_until_there_is_one(nats_server: NatsServer) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        watcher.silent = True
        await eventually(lambda: len(watcher.asked) > 2)
        assert follower.queues is None
        watcher.silent = False
        await eventually(lambda: follower.queues is not None)


async def test_a_new_watchers_snapshot_replaces_the_cluster_state(nats_server: NatsServer) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await watcher.change(volcano_queue("old"))
        await eventually(lambda: exists(follower, "old"))
        watcher.epoch, watcher.queues = 7, {"new": volcano_queue("new")}
        await watcher.live()
        await eventually(lambda: exists(follower, "new") and not exists(follower, "old"))


async def test_a_queue_is_waited_for_and_not_longer_than_said(nats_server: NatsServer) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await eventually(lambda: follower.queues is not None)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(follower.wait_for_queue("late", 5))
            await watcher.change(volcano_queue("other"))
            await watcher.change(volcano_queue("late"))
        assert waiting.result()
        assert not await follower.wait_for_queue("never", 0.02)


async def test_a_priority_class_is_waited_for_and_not_longer_than_said(
    nats_server: NatsServer,
) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await eventually(lambda: follower.queues is not None)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(follower.wait_for_classes(("one", "two"), 5))
            for name in ("one", "two"):
                await watcher.change_priority_classes(
                    PriorityClass(uid=f"u-{name}", name=name, resource_version=1)
                )
        assert waiting.result()
        assert not await follower.wait_for_classes(("one", "never"), 0.02)


async def test_the_end_of_a_queues_children_is_waited_for(nats_server: NatsServer) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await watcher.change(volcano_queue("parent"))
        await watcher.change(volcano_queue("child", parent="parent"))
        await eventually(lambda: exists(follower, "child"))
        assert not await follower.wait_for_no_children("parent", 0.02)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(follower.wait_for_no_children("parent", 5))
            await watcher.change(volcano_queue("child", version=2))
        assert waiting.result()


async def test_queues_of_a_silent_watcher_are_as_good_as_unknown(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await eventually(lambda: follower.queues is not None)
        monkeypatch.setattr(reference_follower, "FRESH_S", 0.05)
        await eventually(lambda: follower.queues is None)
        assert not await follower.wait_for_queue("any", 0.02)
        monkeypatch.setattr(reference_follower, "FRESH_S", 5.0)
        await watcher.live()
        await eventually(lambda: follower.queues is not None)


async def test_the_cluster_state_outlives_a_restart_of_nats(nats_server: NatsServer) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await eventually(lambda: follower.queues is not None)
        await nats_server.kill()
        await nats_server.start()
        await eventually(lambda: watcher.bus.connected)
        await watcher.change(volcano_queue("after"))
        await eventually(lambda: exists(follower, "after"))


async def test_a_recreated_cluster_stream_is_followed_from_its_beginning(
    nats_server: NatsServer,
) -> None:
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await watcher.change(volcano_queue("old"))
        await eventually(lambda: exists(follower, "old"))
        watcher.queues = {"new": volcano_queue("new")}
        await watcher.bus.api(f"STREAM.DELETE.{subjects.CLUSTER}", None, ApiAnswer)
        await ensure_streams(watcher.bus)
        await watcher.live()  # a watcher's first record opens its epoch
        await eventually(lambda: exists(follower, "new") and not exists(follower, "old"))
        await watcher.change(volcano_queue("newer"))
        await eventually(lambda: exists(follower, "newer"))


async def test_readers_that_follow_and_readers_that_begin_skip_junk(
    nats_server: NatsServer,
) -> None:
    async with a_watcher(nats_server.url) as watcher:
        for name in ("for-the-first", "for-the-second"):
            async with a_follower(nats_server.url) as follower:
                await eventually(lambda: follower.queues is not None)
                for subject in (subjects.CLUSTER_QUEUES, subjects.CLUSTER_NAMESPACES):
                    await store_answer(watcher.bus, subjects.CLUSTER, subject)
                await watcher.change(volcano_queue(name))
                await eventually(partial(exists, follower, name))


async def test_junk_is_no_sign_of_a_watchers_life(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_follower, "FRESH_S", 0.5)
    async with a_watcher(nats_server.url) as watcher, a_follower(nats_server.url) as follower:
        await eventually(lambda: follower.queues is not None)

        async def forgotten() -> bool:
            await store_answer(watcher.bus, subjects.CLUSTER, subjects.CLUSTER_QUEUES)
            return follower.queues is None

        await eventually(forgotten)
