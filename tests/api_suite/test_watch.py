"""Watches: order, beginnings, bookmarks, selectors and the end of history."""

import pytest

from tests.api_suite.client import Client, Events, Obj
from tests.api_suite.objects import binding, config_map, crd, define, pod, undefine


@pytest.mark.simulated
async def test_a_watch_goes_on_where_the_list_ended(api: Client, maps: str) -> None:
    await api.create(maps, config_map("before"))
    version = (await api.get(maps)).body["metadata"]["resourceVersion"]
    await api.create(maps, config_map("one"))
    async with api.watch(maps, resourceVersion=version) as events:
        assert await events.next_name() == ("ADDED", "one")
        await api.patch(f"{maps}/one", {"data": {"a": "1"}})
        kind, obj = await events.next()
        assert (kind, obj["data"]) == ("MODIFIED", {"a": "1"})
        assert (obj["kind"], obj["apiVersion"]) == ("ConfigMap", "v1")
        await api.call("DELETE", f"{maps}/one")
        kind, last = await events.next()
        assert (kind, last["data"]) == ("DELETED", {"a": "1"})
        assert int(last["metadata"]["resourceVersion"]) > int(obj["metadata"]["resourceVersion"])


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Client, maps: str) -> None:
    await api.create(maps, config_map("b"))
    await api.create(maps, config_map("a"))
    for query in ({}, {"resourceVersion": "0"}):
        async with api.watch(maps, **query) as events:
            names = sorted(await events.take(2))
            assert names[:2] == [("ADDED", "a"), ("ADDED", "b")]
    async with api.watch(maps) as events:
        await events.take(2)
        await api.create(maps, config_map("c"))
        assert await events.next_name() == ("ADDED", "c")


async def test_a_watch_ends_in_time_after_a_last_bookmark(api: Client, maps: str) -> None:
    made = await api.create(maps, config_map("one"))
    version = made["metadata"]["resourceVersion"]
    mark = await _last_bookmark(api, maps, version)
    assert int(mark["metadata"]["resourceVersion"]) >= int(version)
    assert "annotations" not in mark["metadata"]


async def _last_bookmark(api: Client, maps: str, version: str) -> Obj:
    """What a watch says before it ends. Kubernetes promises to try, and a busy one may miss it."""
    query = {"allowWatchBookmarks": "true", "timeoutSeconds": "4"}
    for _ in range(3):
        async with api.watch(maps, resourceVersion=version, **query) as events:
            try:
                kind, mark = await events.next()
            except EOFError:
                continue
            assert kind == "BOOKMARK"
            with pytest.raises(EOFError):
                await _only_bookmarks(events)
            return mark
    pytest.fail("three watches ended without a bookmark")


async def _only_bookmarks(events: Events) -> None:
    while True:
        assert (await events.next())[0] == "BOOKMARK"


async def test_a_version_before_history_is_gone(api: Client, ns: str) -> None:
    path = await define(api, crd("recents"), ns)
    async with api.watch(path, resourceVersion="1") as events:
        kind, status = await events.next()
        assert (kind, status["kind"], status["code"]) == ("ERROR", "Status", 410)
        assert status["reason"] == "Expired"
        with pytest.raises(EOFError):
            await events.next()
    await undefine(api, "recents")


async def test_labels_coming_and_going_look_like_creation_and_deletion(
    api: Client, maps: str
) -> None:
    version = (await api.get(maps)).body["metadata"]["resourceVersion"]
    await api.create(maps, config_map("one"))
    query = {"labelSelector": "team=red", "resourceVersion": version}
    async with api.watch(maps, **query) as events:
        for team in ("red", "blue", "red"):
            await api.patch(f"{maps}/one", {"metadata": {"labels": {"team": team}}})
        await api.call("DELETE", f"{maps}/one")
        seen = [await events.next() for _ in range(4)]
    assert [kind for kind, _ in seen] == ["ADDED", "DELETED", "ADDED", "DELETED"]
    # What leaves is shown as it was when it still belonged.
    assert seen[1][1]["metadata"]["labels"] == {"team": "red"}
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in seen]
    assert versions == sorted(set(versions))


async def test_a_watch_of_unbound_pods_sees_them_leave(api: Client, pods: str) -> None:
    version = (await api.get(pods)).body["metadata"]["resourceVersion"]
    query = {"fieldSelector": "spec.nodeName=", "resourceVersion": version}
    async with api.watch(pods, **query) as events:
        await api.create(pods, pod())
        assert await events.next_name() == ("ADDED", "one")
        await api.create(f"{pods}/one/binding", binding())
        assert await events.next_name() == ("DELETED", "one")


async def test_a_namespaces_watch_sees_no_other(api: Client, maps: str) -> None:
    version = (await api.get(maps)).body["metadata"]["resourceVersion"]
    async with api.watch(maps, resourceVersion=version) as events:
        other = await api.create("/api/v1/namespaces/default/configmaps", config_map("x"))
        await api.create(maps, config_map("one"))
        assert await events.next_name() == ("ADDED", "one")
    await api.call("DELETE", f"/api/v1/namespaces/default/configmaps/{other['metadata']['name']}")


@pytest.mark.simulated
async def test_two_watches_see_the_same(api: Client, maps: str) -> None:
    version = (await api.get(maps)).body["metadata"]["resourceVersion"]
    async with (
        api.watch(maps, resourceVersion=version) as one,
        api.watch(maps, resourceVersion=version) as two,
    ):
        for name in ("a", "b", "c"):
            await api.create(maps, config_map(name))
        assert await one.take(3) == await two.take(3)
