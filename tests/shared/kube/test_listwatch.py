"""List-watch against an API server that misbehaves by script. The clock is a fake one: backoffs
cost no time.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Literal

import pytest
from aiohttp import web
from typing_extensions import override

from shared.kube.client import KubeClient
from shared.kube.credentials import Credentials
from shared.kube.decoding import Undecodable
from shared.kube.errors import KubeError
from shared.kube.kubeconfig import Access
from shared.kube.listwatch import Absent, Batch, Changes, Clock, Listed, ListWatch, Pace
from shared.kube.objects import Pod
from shared.kube.resources import PODS
from shared.kube.slices import Slices
from tests.support.manual_clock import SleepingClock
from tests.support.scripted_apiserver import (
    Answer,
    ScriptedApiServer,
    event,
    failure,
    listing,
    pod,
    pods,
    reset,
    scripted_apiserver,
    status,
    watch,
)
from tests.support.waiting import eventually

EXPIRED = event("ERROR", status(410, "Expired", "too old resource version"))


class FakeClock(SleepingClock, Clock):
    """Time passes only by sleeping, and that at once; waits for events are real."""

    def __init__(self) -> None:
        super().__init__(1000.0)
        self.waits: list[float] = []

    @override
    def monotonic_s(self) -> float:
        return self.now_s

    @override
    async def wait(self, event: asyncio.Event, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        return await event.wait()


class Rig:
    """One list-watch on one scripted API server, its batches in a queue."""

    def __init__(self, server: ScriptedApiServer, clock: FakeClock) -> None:
        self.server = server
        self.clock = clock
        self.batches: asyncio.Queue[Batch[Pod]] = asyncio.Queue()
        self.watch: ListWatch[Pod]

    async def sink(self, batch: Batch[Pod]) -> None:
        await self.batches.put(batch)

    async def next(self) -> Batch[Pod]:
        async with asyncio.timeout(5):
            return await self.batches.get()

    async def listed(self) -> Listed[Pod]:
        batch = await self.next()
        assert isinstance(batch, Listed)
        return batch

    async def changes(self) -> Changes[Pod]:
        batch = await self.next()
        assert isinstance(batch, Changes)
        return batch

    def asked(self, kind: Literal["list", "watch"]) -> list[dict[str, str]]:
        """Queries of the lists, or of the watches, so far."""
        return [
            dict(request.query)
            for request in self.server.requests
            if ("watch" in request.query) == (kind == "watch")
        ]

    def saying(self, *chunks: bytes, then: Literal["hang", "end", "reset"] = "hang") -> Answer:
        return watch(lambda: self.server, *chunks, then=then)


def names(batch: Listed[Pod] | Changes[Pod]) -> list[str]:
    if isinstance(batch, Listed):
        return [item.metadata.name for item in batch.objects]
    return [f"{change.type} {change.object.metadata.name}" for change in batch.changes]


Script = Callable[[Rig], list[Answer]]


@asynccontextmanager
async def running(script: Script, **options: Any) -> AsyncGenerator[Rig]:
    """Run a list-watch of pods on the script until the block ends."""
    async with scripted_apiserver() as server:
        rig = Rig(server, FakeClock())
        server.then(*script(rig))
        access = Access(origin="test", server=server.url)
        async with KubeClient(Credentials(access)) as client:
            rig.watch = ListWatch(client, PODS, Pod, clock=rig.clock, random=Random(7), **options)
            task = asyncio.create_task(rig.watch.run(rig.sink), name="list-watch")
            try:
                yield rig
            finally:
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task


async def test_a_list_is_followed_by_what_happens_after_it() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [
            listing(10, *pods("ab")),
            rig.saying(
                event("ADDED", pod("c", 11)) + event("MODIFIED", pod("a", 12)),
                event("DELETED", pod("b", 13)),
            ),
        ]

    async with running(script) as rig:
        first = await rig.listed()
        assert names(first) == ["a", "b"]
        assert first.resource_version == 10
        batches = [await rig.changes()]
        while batches[-1].resource_version < 13:
            batches.append(await rig.changes())
        seen = [name for batch in batches for name in names(batch)]
        assert seen == ["ADDED c", "MODIFIED a", "DELETED b"]
        assert rig.watch.state == "watching"
        assert rig.asked("list") == [{"limit": "2000"}]
        [query] = rig.asked("watch")
        assert 240 <= int(query.pop("timeoutSeconds")) <= 300
        assert query == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "10"}


async def test_lines_that_arrive_together_are_one_batch() -> None:
    lines = [event("ADDED", pod(f"p{number}", number + 2)) for number in range(500)]
    async with running(lambda rig: [listing(1), rig.saying(b"".join(lines))]) as rig:
        await rig.listed()
        batches = [await rig.changes()]
        while batches[-1].resource_version < 501:
            batches.append(await rig.changes())
        assert sum(len(batch.changes) for batch in batches) == 500
        assert len(batches) < 20


async def test_a_watch_distinguishes_new_objects_from_changes_of_known_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[bool] = []

    async def turn(_: Slices, *, news: bool) -> None:
        reported.append(news)

    monkeypatch.setattr(Slices, "turn", turn)
    lines = [
        event("ADDED", pod("a", 2)),
        event("MODIFIED", pod("a", 3)),
        event("DELETED", pod("a", 4)),
        event("MODIFIED", pod("c", 5)) + event("ADDED", pod("b", 6)),
        event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "7"}}),
    ]
    taken = asyncio.Semaphore(0)

    async def one_by_one(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line)
            await taken.acquire()
        await rig.server.hang()
        return response

    async with running(lambda _: [listing(1), one_by_one]) as rig:
        await rig.listed()
        for _ in lines:
            await rig.changes()
            taken.release()
        await eventually(lambda: len(reported) == 6)
    assert reported == [True, True, False, False, True, False]


async def test_selectors_narrow_list_and_watch() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [listing(1), rig.saying(event("ADDED", pod("a", 2)))]

    async with running(script, namespace="shop", label_selector="a=b", field_selector="c=d") as rig:
        await rig.listed()
        await rig.changes()
        for query in (*rig.asked("list"), *rig.asked("watch")):
            assert (query["labelSelector"], query["fieldSelector"]) == ("a=b", "c=d")
        assert {request.path for request in rig.server.requests} == {"/api/v1/namespaces/shop/pods"}


async def test_a_bookmark_is_a_sign_of_life_and_moves_the_version() -> None:
    def script(rig: Rig) -> list[Answer]:
        bookmark = event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "50"}})
        return [listing(10), rig.saying(bookmark, then="end"), rig.saying()]

    async with running(script) as rig:
        await rig.listed()
        batch = await rig.changes()
        assert (names(batch), batch.resource_version) == ([], 50)
        await eventually(lambda: len(rig.asked("watch")) == 2)
        assert rig.asked("watch")[1]["resourceVersion"] == "50"
        assert rig.clock.sleeps == []


@pytest.mark.parametrize("as_status", [False, True], ids=["as an event", "as an answer"])
async def test_an_expired_version_leads_to_a_new_list(as_status: bool) -> None:
    def script(rig: Rig) -> list[Answer]:
        gone = failure(410, "Expired", "too old") if as_status else rig.saying(EXPIRED)
        return [listing(10, pod("a")), gone, listing(30, pod("b")), rig.saying()]

    async with running(script) as rig:
        assert names(await rig.listed()) == ["a"]
        assert names(await rig.listed()) == ["b"]
        await eventually(lambda: rig.watch.state == "watching")
        assert rig.watch.relists == 1
        assert rig.asked("watch")[1]["resourceVersion"] == "30"


async def test_an_api_server_back_from_an_outage_is_listed_at_once_when_the_version_expired() -> (
    None
):
    """It starts with an empty watch cache, so every watch that outlived it gets a 410."""

    def script(rig: Rig) -> list[Answer]:
        down = [failure(500, "InternalError")] * 8
        gone = [failure(410, "Expired", "too old")]
        return [listing(10), *down, *gone, listing(30), rig.saying()]

    async with running(script) as rig:
        await rig.listed()
        await rig.listed()
        assert max(rig.clock.sleeps[:8]) > 1
        assert rig.clock.sleeps[8] <= 0.2


async def test_an_api_server_that_says_410_to_every_version_is_no_hot_loop() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [*[listing(10), failure(410, "Expired", "too old")] * 8, listing(30), rig.saying()]

    async with running(script) as rig:
        for _ in range(9):
            await rig.listed()
        assert max(rig.clock.sleeps) > 1


async def test_what_came_before_an_error_in_the_same_batch_is_not_lost() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [
            listing(10),
            rig.saying(event("ADDED", pod("a", 11)) + EXPIRED),
            listing(30, pod("a")),
            rig.saying(),
        ]

    async with running(script) as rig:
        await rig.listed()
        assert names(await rig.changes()) == ["ADDED a"]
        assert names(await rig.listed()) == ["a"]


async def test_a_malformed_object_is_reported_and_the_watch_goes_on() -> None:
    def script(rig: Rig) -> list[Answer]:
        bad = event("ADDED", pod("bad", 11, spec={"containers": 3}))
        return [listing(10), rig.saying(bad + event("ADDED", pod("good", 12)))]

    async with running(script) as rig:
        await rig.listed()
        batch = await rig.changes()
        assert names(batch) == ["ADDED bad", "ADDED good"]
        assert isinstance(batch.changes[0].object, Undecodable)
        assert rig.watch.relists == 0


@pytest.mark.parametrize("garbage", [b"<html>\n", b'{"type":"ADDED"\n', b"\xff\xfe\n"])
async def test_a_garbage_line_costs_a_new_list_and_nothing_else(garbage: bytes) -> None:
    def script(rig: Rig) -> list[Answer]:
        good = event("ADDED", pod("a", 11))
        return [listing(10), rig.saying(good + garbage + good), listing(12, pod("a")), rig.saying()]

    async with running(script) as rig:
        await rig.listed()
        assert names(await rig.changes()) == ["ADDED a"]
        assert names(await rig.listed()) == ["a"]


async def test_a_broken_connection_is_resumed_where_it_broke() -> None:
    def script(rig: Rig) -> list[Answer]:
        half = event("ADDED", pod("lost", 12))[:40]
        return [
            listing(10),
            rig.saying(event("ADDED", pod("a", 11)), half, then="reset"),
            listing(11, pod("any")),  # Is its etcd still the same? It is.
            rig.saying(event("ADDED", pod("lost", 12))),
        ]

    async with running(script) as rig:
        await rig.listed()
        assert names(await rig.changes()) == ["ADDED a"]
        assert names(await rig.changes()) == ["ADDED lost"]
        assert rig.asked("watch")[1]["resourceVersion"] == "11"
        assert rig.asked("list")[1] == {"limit": "1"}
        assert rig.watch.relists == 0


async def test_an_etcd_restored_from_a_backup_leads_to_a_new_list() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [
            listing(1000, pod("a")),
            rig.saying(then="reset"),
            listing(400),
            listing(400, pod("old")),
            rig.saying(),
        ]

    async with running(script) as rig:
        await rig.listed()
        again = await rig.listed()
        assert (names(again), again.resource_version) == (["old"], 400)


async def test_whether_etcd_was_restored_is_asked_until_it_is_answered() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [
            listing(1000, pod("a")),
            rig.saying(then="reset"),
            failure(500, "InternalError"),
            listing(400),
            listing(400, pod("old")),
            rig.saying(),
        ]

    async with running(script) as rig:
        await rig.listed()
        assert names(await rig.listed()) == ["old"]
        assert rig.asked("list")[1:3] == [{"limit": "1"}, {"limit": "1"}]


async def test_a_silent_connection_is_given_up_and_opened_again() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [
            listing(10),
            rig.saying(event("ADDED", pod("a", 11))),
            listing(11),
            rig.saying(event("ADDED", pod("b", 12))),
        ]

    pace = Pace(watch_s_min=0, watch_s_max=0, silence_margin_s=0.1)
    async with running(script, pace=pace) as rig:
        await rig.listed()
        assert names(await rig.changes()) == ["ADDED a"]
        assert names(await rig.changes()) == ["ADDED b"]
        assert rig.watch.relists == 0


async def test_lines_may_be_megabytes_long_but_not_endless() -> None:
    def script(rig: Rig) -> list[Answer]:
        long = event("ADDED", pod("long", 11, status={"message": "x" * 3_900_000}))
        endless = event("ADDED", pod("endless", 12, status={"message": "x" * 9_000_000}))
        return [listing(10), rig.saying(long, endless), listing(20, pod("long")), rig.saying()]

    async with running(script) as rig:
        await rig.listed()
        assert names(await rig.changes()) == ["ADDED long"]
        assert names(await rig.listed()) == ["long"]


async def test_a_kind_that_is_not_served_is_absent_until_it_is() -> None:
    def script(rig: Rig) -> list[Answer]:
        nothing = failure(404, "NotFound", "the server could not find the requested resource")
        return [nothing, nothing, listing(5, pod("a")), rig.saying()]

    async with running(script) as rig:
        assert await rig.next() == Absent()
        await eventually(lambda: rig.clock.waits == [5.0])
        assert rig.watch.state == "absent"
        rig.watch.wake()
        await eventually(lambda: rig.clock.waits == [5.0, 5.0])
        assert rig.batches.empty()
        rig.watch.wake()
        assert names(await rig.listed()) == ["a"]
        assert rig.watch.relists == 0


async def test_a_kind_that_is_removed_becomes_absent() -> None:
    def script(rig: Rig) -> list[Answer]:
        gone = event("DELETED", pod("a", 6))
        return [listing(5, pod("a")), rig.saying(gone, then="end"), failure(404, "NotFound")]

    async with running(script) as rig:
        await rig.listed()
        assert names(await rig.changes()) == ["DELETED a"]
        assert await rig.next() == Absent()


async def test_retry_after_is_respected() -> None:
    def script(rig: Rig) -> list[Answer]:
        busy = failure(429, "TooManyRequests", details={"retryAfterSeconds": 7})
        return [busy, listing(1), rig.saying()]

    async with running(script) as rig:
        await rig.listed()
        assert rig.clock.sleeps == [7.0]


async def test_failures_in_a_row_are_said_once_and_spaced_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def script(rig: Rig) -> list[Answer]:
        down = [reset, failure(500, "InternalError"), failure(403, "Forbidden")]
        return [*down * 4, listing(1), rig.saying()]

    with caplog.at_level(logging.WARNING):
        async with running(script) as rig:
            await rig.listed()
            sleeps = rig.clock.sleeps
            # aiohttp itself repeats a GET whose connection broke, so there are fewer failures than
            # answers.
            assert 8 <= len(sleeps) <= 12
            assert all(0.01 <= delay_s <= 30 for delay_s in sleeps)
            assert max(sleeps) > 3
    assert len(caplog.records) == 1


async def test_a_watch_that_ends_at_once_is_no_hot_loop() -> None:
    def script(rig: Rig) -> list[Answer]:
        ends = [rig.saying(then="end")] * 5
        return [listing(1), *ends, rig.saying(event("ADDED", pod("a", 2)))]

    async with running(script) as rig:
        await rig.listed()
        assert names(await rig.changes()) == ["ADDED a"]
        assert len(rig.clock.sleeps) == 5


@pytest.mark.parametrize("spoke", [True, False], ids=["it spoke and broke", "it lasted, silent"])
async def test_after_a_watch_that_worked_the_next_failure_is_waited_for_shortly(
    spoke: bool,
) -> None:
    def script(rig: Rig) -> list[Answer]:
        broken = [failure(500, "InternalError")]
        lines = [event("ADDED", pod("a", 2))] if spoke else []
        works = rig.saying(*lines, then="reset" if spoke else "end")
        return [*broken * 8, listing(1), works, *broken, rig.saying()]

    async with running(script, pace=Pace(watch_s_short=0.0)) as rig:
        await rig.listed()
        await eventually(lambda: len(rig.clock.sleeps) >= 9)
        assert max(rig.clock.sleeps[:8]) > 1
        assert rig.clock.sleeps[8] <= 0.2


async def test_pages_are_put_together_and_an_expired_page_starts_again() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [
            listing(10, pod("a"), continue_="one"),
            failure(410, "Expired", "continue token expired"),
            listing(20, pod("b"), continue_="two"),
            listing(20, pod("c")),
            rig.saying(),
        ]

    async with running(script, page_limit=1) as rig:
        whole = await rig.listed()
        assert (names(whole), whole.resource_version) == (["b", "c"], 20)
        assert [query.get("continue") for query in rig.asked("list")] == [None, "one", None, "two"]


async def test_each_page_is_reduced_before_the_next_one_is_requested() -> None:
    requested: list[int] = []

    async def reduced(page: list[Any]) -> list[Any]:
        requested.append(len(rig.asked("list")))
        return [each for each in page if each.metadata.name != "b"]

    def script(rig: Rig) -> list[Answer]:
        pages = [listing(20, *pods("ab"), continue_="one"), listing(20, *pods("cd"))]
        return [*pages, rig.saying()]

    async with running(script, page_limit=2, reduced=reduced) as rig:
        assert names(await rig.listed()) == ["a", "c", "d"]
        assert requested == [1, 2]


async def test_a_version_that_is_no_number_is_never_handed_on() -> None:
    def script(rig: Rig) -> list[Answer]:
        return [listing("x"), listing(3), rig.saying()]

    async with running(script) as rig:
        assert (await rig.listed()).resource_version == 3


async def test_an_error_of_the_sink_ends_the_run_and_is_not_taken_for_ours() -> None:
    async def sink(_: Batch[Pod]) -> None:
        raise KubeError("the sink's own")

    async with scripted_apiserver(listing(1)) as server:
        access = Access(origin="test", server=server.url)
        async with KubeClient(Credentials(access)) as client:
            with pytest.raises(RuntimeError, match="the sink failed: the sink's own"):
                await ListWatch(client, PODS, Pod).run(sink)


async def test_a_watch_that_works_has_no_error() -> None:
    async with running(lambda rig: [listing(1), rig.saying()]) as rig:
        await rig.listed()
        await eventually(lambda: rig.watch.state == "watching")
        assert rig.watch.last_error is None


async def test_a_list_that_was_lost_is_asked_for_again_with_more_patience_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    request = KubeClient.request

    async def noted(client: KubeClient, *asked: Any, timeout_s: float, **options: Any) -> Any:
        waited.append(timeout_s)
        return await request(client, *asked, timeout_s=timeout_s, **options)

    def script(rig: Rig) -> list[Answer]:
        lost = rig.saying()
        return [lost, lost, lost, listing(10, *pods("ab"))]

    monkeypatch.setattr(KubeClient, "request", noted)
    pace = Pace(list_timeout_s=0.05, list_timeout_s_max=0.15)
    async with running(script, pace=pace) as rig:
        assert names(await rig.listed()) == ["a", "b"]
    assert waited == [0.05, 0.1, 0.15, 0.15]
