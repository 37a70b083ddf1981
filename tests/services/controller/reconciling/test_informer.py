"""The cache shows what is there, at once after our own writes, and never goes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
from msgspec import Meta

from services.controller.reconciling.informer import Informer, key_of
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.resources import Resource
from tests.support.faulty_cluster import FaultyCluster
from tests.support.waiting import eventually

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


class ConfigMap(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, Annotated[str, Meta(max_length=3)]] = {}


def config_map(name: str, owner: str = "", **data: str) -> dict[str, object]:
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner}] if owner else []
    return {"metadata": {"name": name, "ownerReferences": owners}, "data": data}


@asynccontextmanager
async def running(informer: Informer[ConfigMap]) -> AsyncIterator[list[tuple[str, str]]]:
    """The informer at work, and its handler's calls: the key's name, and what happened."""
    reported: list[tuple[str, str]] = []

    def on_change(old: ConfigMap | None, new: ConfigMap | None) -> None:
        thing = new if new is not None else old
        assert thing is not None
        what = "appeared" if old is None else "went" if new is None else "changed"
        reported.append((thing.metadata.name, what))

    informer.on_change(on_change)
    task = asyncio.create_task(informer.run(), name="informer")
    try:
        await informer.synced.wait()
        yield reported
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_objects_are_found_by_key_and_by_owner_and_handlers_hear_of_each_change(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    owner = await client.create(MAPS, config_map("o"), namespace="default")
    uid = msgspec.json.decode(owner.body, type=ConfigMap).metadata.uid
    await client.create(MAPS, config_map("a", owner=uid), namespace="default")
    informer = Informer(client, MAPS, ConfigMap)
    async with running(informer) as reported:
        assert [key_of(one) for one in informer.owned_by(uid, namespace="default")] == ["default/a"]
        assert informer.owned_by(uid, namespace="evil") == [], "an owner is in its namespace"
        assert informer.owned_by(uid, namespace="def") == []
        await client.patch(MAPS, "a", {"data": {"x": "1"}}, namespace="default")
        await eventually(lambda: ("a", "changed") in reported)
        found = informer.get("default/a")
        assert found is not None
        assert found.data == {"x": "1"}
        await client.delete(MAPS, "a", namespace="default")
        await eventually(lambda: reported[-1] == ("a", "went"))
        assert informer.owned_by(uid, namespace="default") == []
        assert [what for name, what in reported if name == "a"] == ["appeared", "changed", "went"]


async def test_objects_that_vanished_during_an_outage_are_reported_as_gone(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    await client.create(MAPS, config_map("a"), namespace="default")
    informer = Informer(client, MAPS, ConfigMap)
    async with running(informer) as reported:
        # Nothing can be resumed: the watch has to list again.
        cluster.store.expire_all()
        cluster.faults.drop_watches()
        await client.delete(MAPS, "a", namespace="default")
        await eventually(lambda: reported[-1] == ("a", "went"))


async def test_an_own_write_is_seen_at_once_and_a_late_answer_brings_nothing_back(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    informer = Informer(client, MAPS, ConfigMap)
    made = await client.create(MAPS, config_map("a"), namespace="default")
    informer.learn(made.body)
    assert informer.get("default/a") is not None
    async with running(informer):
        await client.delete(MAPS, "a", namespace="default")
        await eventually(lambda: informer.get("default/a") is None)
        informer.learn(made.body)
        assert informer.get("default/a") is None


async def test_an_object_made_again_under_its_name_is_one_that_went_and_one_that_appeared(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    await client.create(MAPS, config_map("a"), namespace="default")
    informer = Informer(client, MAPS, ConfigMap)
    async with running(informer) as reported:
        await client.delete(MAPS, "a", namespace="default")
        made = await client.create(MAPS, config_map("a", x="2"), namespace="default")
        informer.learn(made.body)
        await eventually(lambda: len(reported) == 3)
        assert reported == [("a", "appeared"), ("a", "went"), ("a", "appeared")]


async def test_a_cluster_that_was_restored_from_a_backup_is_shown_as_it_is_again(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    await client.create(MAPS, config_map("a", x="1"), namespace="default")
    store, key = cluster.store, ("", "configmaps")
    saved, old = store.revision, store.rows(key, "default")[0].obj
    informer = Informer(client, MAPS, ConfigMap)
    async with running(informer) as reported:
        await client.patch(MAPS, "a", {"data": {"x": "2"}}, namespace="default")
        await client.create(MAPS, config_map("b"), namespace="default")
        await eventually(lambda: reported[-1] == ("b", "appeared"))
        store.remove(key, store.rows(key, "default")[1].obj)
        store.revision = saved - 1
        store.put(key, old)
        store.expire_all()
        cluster.faults.drop_watches()
        await eventually(lambda: ("b", "went") in reported)
        found = informer.get("default/a")
        assert found is not None
        assert found.data == {"x": "1"}


async def test_an_object_that_cannot_be_read_any_more_is_as_good_as_gone(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    await client.create(MAPS, config_map("a", x="1"), namespace="default")
    informer = Informer(client, MAPS, ConfigMap)
    async with running(informer) as reported:
        await client.patch(MAPS, "a", {"data": {"x": "too long"}}, namespace="default")
        await eventually(lambda: reported[-1] == ("a", "went"))
        await client.patch(MAPS, "a", {"data": {"x": "2"}}, namespace="default")
        await eventually(lambda: reported[-1] == ("a", "appeared"))


async def test_a_kind_that_is_not_served_is_absent_and_counts_as_synced(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    nowhere = Resource("example.org", "v1", "things", "Thing")
    informer = Informer(client, nowhere, ConfigMap)
    async with running(informer):
        assert informer.absent
        assert list(informer.all()) == []
