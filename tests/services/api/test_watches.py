"""Watches: from which version they begin, what they send, and when they end."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from typing import Any

import msgspec
import pytest

from services.api.core import gang_book
from services.api.core.cluster_state import ClusterState
from services.api.core.gang_book import GangBook
from services.api.core.requests import FieldSelector, ReadOptions, Target
from services.api.core.start_estimates import StartEstimates, no_estimates
from services.api.core.versions import Version
from services.api.core.watch_events import WatchEvents
from services.api.errors import RequestFailed
from services.api.watches import GangWatch, Watching
from shared.contracts.verdicts import Verdict
from shared.contracts.visibility_resources import GANGS
from tests.services.api.scene import FIRST_SEEN_MS, verdict, waiting

_ALL = Target(resource=GANGS, namespace="", name="")


class Watched:
    """A book, and one watch of it by a user who may see some namespaces."""

    def __init__(
        self,
        book: GangBook,
        options: ReadOptions,
        target: Target = _ALL,
        *,
        sees_all: bool = True,
        estimates: Callable[[], Awaitable[StartEstimates]] = no_estimates,
    ) -> None:
        self.book = book
        self.watching = Watching(lambda: self.book)
        self.visible: Container[str] = {"a", "b"}
        #: Called once, while rights are checked.
        self.during_check: Callable[[], object] = int
        self.watch = GangWatch(
            lambda: self.book, target, options, sees_all=sees_all, estimates=estimates
        )
        self.watching.open(self.watch)
        made = WatchEvents(options, lambda: FIRST_SEEN_MS + 90_000)
        self._lines = self.watch.events(made, self._sees, self.watching.take_turn)

    async def _sees(self, _namespaces: set[str]) -> Container[str]:
        change, self.during_check = self.during_check, int
        change()
        return self.visible

    def publish(self, seq: int, one: Verdict) -> None:
        self.watching.changed(self.book.put_verdict(seq, one))

    async def events(self) -> list[tuple[str, dict[str, Any]]]:
        """The next write's events."""
        found = [json.loads(line) for line in (await anext(self._lines)).splitlines()]
        return [(one["type"], one["object"]) for one in found]

    async def names(self) -> list[str]:
        """The same, as `TYPE name phase`."""
        return [
            f"{kind} {one['metadata']['name']} {one['status']['phase']}"
            for kind, one in await self.events()
        ]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._lines


def a_book(*names: str) -> GangBook:
    book = GangBook(ClusterState())
    for seq, name in enumerate(names, start=1):
        book.put_verdict(seq, verdict("a", name))
    return book


async def test_a_watch_without_a_version_begins_with_all_gangs_and_collects_changes() -> None:
    watched = Watched(a_book("x", "y"), ReadOptions())
    assert await watched.names() == ["ADDED x Inqueue", "ADDED y Inqueue"]
    watched.publish(3, verdict("a", "x", phase="Starting"))
    watched.publish(4, verdict("c", "hidden"))
    watched.publish(5, verdict("a", "x", phase="Running"))
    watched.publish(6, verdict("b", "z"))
    assert await watched.names() == ["MODIFIED x Running", "ADDED z Inqueue"]
    watched.publish(7, verdict("b", "z", phase="Gone"))
    assert await watched.names() == ["DELETED z Inqueue"]


async def test_a_watch_of_a_namespace_has_no_gangs_of_others_that_its_user_may_see() -> None:
    target = msgspec.structs.replace(_ALL, namespace="a")
    watched = Watched(a_book("x"), ReadOptions(), target)
    assert await watched.names() == ["ADDED x Inqueue"]
    watched.publish(2, verdict("b", "z"))
    watched.publish(3, verdict("a", "y"))
    assert await watched.names() == ["ADDED y Inqueue"]


async def test_a_gang_that_is_deleted_names_no_gangs_that_the_user_may_not_see() -> None:
    watched = Watched(a_book(), ReadOptions(), sees_all=False)
    watched.publish(1, verdict("a", "x", why=waiting("a/own", "c/secret")))
    watched.publish(2, verdict("a", "y"))
    await watched.events()
    watched.publish(3, verdict("a", "x", phase="Gone"))
    ((kind, gang),) = await watched.events()
    assert kind == "DELETED"
    assert gang["status"]["pending"]["ahead"] == {"count": 2, "names": ["a/own"]}


async def test_a_watch_from_a_version_sends_what_has_changed_and_gone_since() -> None:
    book = a_book("x", "y", "z")
    version = book.version
    book.put_verdict(4, verdict("a", "y", phase="Gone"))
    book.put_verdict(5, verdict("a", "z", phase="Running"))
    watched = Watched(book, ReadOptions(version=version))
    assert await watched.names() == ["DELETED y Inqueue", "MODIFIED z Running"]


async def test_a_gang_that_was_created_again_is_deleted_first() -> None:
    watched = Watched(a_book("x"), ReadOptions())
    await watched.events()
    watched.publish(2, verdict("a", "x", phase="Gone"))
    watched.publish(3, verdict("a", "x", gang_id="again", uid="again"))
    found = await watched.events()
    assert [(kind, one["metadata"]["uid"]) for kind, one in found] == [
        ("DELETED", "a-x"),
        ("ADDED", "again"),
    ]


async def test_initial_events_end_with_a_bookmark_that_says_so() -> None:
    watched = Watched(a_book("x"), ReadOptions(send_initial=True, version=Version(1, 0)))
    assert await watched.names() == ["ADDED x Inqueue"]
    ((kind, bookmark),) = await watched.events()
    assert kind == "BOOKMARK"
    assert bookmark["metadata"] == {
        "resourceVersion": watched.book.version.text(),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


async def test_a_gang_that_ceases_to_match_the_selector_is_gone_for_the_watch() -> None:
    options = ReadOptions(selector=FieldSelector(phase="Inqueue"))
    watched = Watched(a_book("x"), options)
    assert await watched.names() == ["ADDED x Inqueue"]
    watched.publish(2, verdict("a", "x", phase="Running"))
    watched.publish(3, verdict("a", "y"))
    assert await watched.names() == ["DELETED x Running", "ADDED y Inqueue"]
    watched.publish(4, verdict("a", "x"))
    assert await watched.names() == ["ADDED x Inqueue"]


async def test_a_watch_from_a_version_with_a_selector_misses_no_gang_that_matched_then() -> None:
    """What matched at that version is not known any more; a needless deletion does no harm."""
    book = a_book("gone", "kept", "moved", "other")
    version = book.version
    book.put_verdict(5, verdict("a", "gone", phase="Gone"))
    book.put_verdict(6, verdict("a", "moved", phase="Running"))
    book.put_verdict(7, verdict("a", "new"))
    selector = FieldSelector(phase="Inqueue")
    watched = Watched(book, ReadOptions(version=version, selector=selector))
    assert await watched.names() == [
        "DELETED gone Inqueue",
        "DELETED moved Running",
        "ADDED new Inqueue",
    ]
    watched.publish(8, verdict("a", "kept", phase="Running"))
    assert await watched.names() == ["DELETED kept Running"]


async def test_changes_while_rights_are_checked_are_sent_as_what_they_are() -> None:
    watched = Watched(a_book("x", "y"), ReadOptions())
    await watched.events()

    def change() -> None:
        watched.publish(4, verdict("a", "y", phase="Gone"))
        watched.publish(5, verdict("b", "z"))
        watched.publish(6, verdict("c", "hidden"))

    watched.publish(3, verdict("a", "x", attempt=1))
    watched.during_check = change
    assert await watched.names() == ["MODIFIED x Inqueue", "DELETED y Inqueue", "ADDED z Inqueue"]


async def test_a_bookmark_has_the_version_of_the_events_before_it() -> None:
    """A client that begins again at it must not miss what changed while the events were sent."""
    watched = Watched(a_book("x"), ReadOptions(send_initial=True))
    version = watched.book.version.text()
    assert await watched.names() == ["ADDED x Inqueue"]
    watched.publish(2, verdict("a", "x", phase="Running"))
    ((kind, bookmark),) = await watched.events()
    assert (kind, bookmark["metadata"]["resourceVersion"]) == ("BOOKMARK", version)
    assert await watched.names() == ["MODIFIED x Running"]


async def test_a_watch_that_ends_while_rights_are_checked_does_not_wait_for_another_change() -> (
    None
):
    watched = Watched(a_book("x"), ReadOptions())
    watched.during_check = lambda: watched.watching.end(None)
    async with asyncio.timeout(5):
        assert await watched.names() == ["ADDED x Inqueue"]
        assert [lines async for lines in watched] == []


async def test_many_events_are_several_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.api.watches._WRITE_BYTES", 1_000)
    watched = Watched(a_book(*(f"g{n}" for n in range(10))), ReadOptions())
    found: list[str] = []
    while len(found) < 10:
        written = await watched.names()
        assert len(written) < 10
        found += written
    assert found == [f"ADDED g{n} Inqueue" for n in range(10)]


async def test_changes_between_two_writes_are_sent_once_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.api.watches._WRITE_EVENTS", 2)
    watched = Watched(a_book("g0", "g1", "g2", "g3", "g4", "g5"), ReadOptions(send_initial=True))
    version = watched.book.version.text()
    assert await watched.names() == ["ADDED g0 Inqueue", "ADDED g1 Inqueue"]
    watched.publish(7, verdict("a", "g0", phase="Running"))
    watched.publish(8, verdict("a", "g2", phase="Running"))
    watched.publish(9, verdict("a", "g3", phase="Gone"))
    watched.publish(10, verdict("a", "g6"))
    found = await watched.names()
    found += await watched.names()
    # g2 is sent as it is by then, and not again; g3 was never sent.
    assert found == ["ADDED g2 Running", "ADDED g4 Inqueue", "ADDED g5 Inqueue"]
    ((kind, bookmark),) = await watched.events()
    assert (kind, bookmark["metadata"]["resourceVersion"]) == ("BOOKMARK", version)
    assert await watched.names() == ["MODIFIED g0 Running", "ADDED g6 Inqueue"]
    watched.publish(11, verdict("a", "g2", phase="Starting"))
    assert await watched.names() == ["MODIFIED g2 Starting"]


async def test_a_watch_that_ends_between_two_writes_sends_no_more_gangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.api.watches._WRITE_EVENTS", 1)
    watched = Watched(a_book("x", "y", "z"), ReadOptions())
    assert await watched.names() == ["ADDED x Inqueue"]
    watched.watching.end(RequestFailed(410, "list again"))
    kinds = [kind for kind, _ in await watched.events()]
    assert kinds == ["ERROR"]


async def test_tables_have_their_columns_once() -> None:
    watched = Watched(a_book("x"), ReadOptions(answer="table"))
    ((_, first),) = await watched.events()
    watched.publish(2, verdict("a", "y"))
    ((_, second),) = await watched.events()
    assert [one["name"] for one in first["columnDefinitions"]][:2] == ["Name", "Phase"]
    assert second["columnDefinitions"] == []
    assert second["rows"][0]["cells"][:8] == ["y", "Inqueue", "0/3", 3, "default", "", "", "90s"]


async def test_a_watch_from_before_the_known_deletions_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gang_book, "DELETIONS_MAX", 1)
    book = a_book("x", "y", "z")
    version = book.version
    book.put_verdict(4, verdict("a", "x", phase="Gone"))
    book.put_verdict(5, verdict("a", "y", phase="Gone"))
    with pytest.raises(RequestFailed, match="too old: list again") as refused:
        Watched(book, ReadOptions(version=version))
    assert refused.value.status == 410


async def test_what_a_watch_has_not_sent_is_bounded_by_the_number_of_gangs() -> None:
    watched = Watched(a_book("x", "y"), ReadOptions())
    await watched.events()
    for seq in range(3, 1_000, 2):
        watched.publish(seq, verdict("a", "x", attempt=seq))
        watched.publish(seq + 1, verdict("a", "y", attempt=seq))
    assert [kind for kind, _ in await watched.events()] == ["MODIFIED", "MODIFIED"]


async def test_a_version_that_is_not_reached_in_time_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.api.watches.VERSION_WAIT_S", 0.01)
    watching = Watching(lambda: a_book("x"))
    await watching.reach(Version(1, 0))
    with pytest.raises(RequestFailed, match="is not known: list again") as refused:
        await watching.reach(Version(2, 0))
    assert refused.value.status == 410


async def test_all_watches_end_with_the_error_of_a_lost_stream() -> None:
    watched = Watched(a_book("x"), ReadOptions())
    await watched.events()
    watched.watching.end(RequestFailed(410, "list again"))
    assert [(kind, one["code"]) for kind, one in await watched.events()] == [("ERROR", 410)]
    assert [lines async for lines in watched] == []


async def test_each_watch_takes_its_turn_in_a_pass_of_the_event_loop_of_its_own() -> None:
    """A change that concerns all watches must not delay the answers to other requests."""
    watching = Watching(lambda: a_book("x"))
    turns: list[int] = []
    passes = 0

    async def take(number: int) -> None:
        await watching.take_turn()
        turns.append(number)

    taking = [asyncio.create_task(take(number)) for number in range(20)]
    while len(turns) < 20:
        passes += 1
        before = len(turns)
        await asyncio.sleep(0)
        assert len(turns) - before <= 1
        assert passes < 100
    assert turns == list(range(20)), "first come, first served"
    await asyncio.gather(*taking)


async def test_a_watch_that_leaves_while_it_waits_for_its_turn_holds_up_no_other_one() -> None:
    watching = Watching(lambda: a_book("x"))
    first, second, third = (asyncio.create_task(watching.take_turn()) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    async with asyncio.timeout(5):
        await third
