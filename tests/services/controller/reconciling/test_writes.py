"""Repeating a write does no harm and is no error; Events are written once for the same words."""

import asyncio

import msgspec
import pytest

from services.controller.reconciling.events import About, Recorder
from services.controller.reconciling.writes import Outcome, Writes
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, Invalid
from shared.kube.resources import CORE_EVENTS, Resource
from tutti.cluster.embedded import EmbeddedCluster
from tutti.cluster.faults import FaultRule

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


class Thing(msgspec.Struct, frozen=True):
    metadata: Metadata


class Event(msgspec.Struct, frozen=True):
    metadata: Metadata
    reason: str
    message: str
    count: int


async def test_each_way_a_write_can_be_late_has_its_outcome(
    cluster: EmbeddedCluster, client: KubeClient
) -> None:
    writes = Writes(client, per_s=1000)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    made = await writes.create(MAPS, manifest, namespace="default")
    assert made.done
    first = msgspec.json.decode(made.body, type=Thing).metadata
    assert (await writes.create(MAPS, manifest, namespace="default")).outcome is Outcome.EXISTS
    patched = await writes.patch(
        MAPS, "a", {"data": {"x": "1"}}, uid=first.uid, namespace="default"
    )
    assert patched.done
    stale = await writes.patch(
        MAPS,
        "a",
        {"data": {"x": "2"}},
        uid=first.uid,
        resource_version=first.resource_version,
        namespace="default",
    )
    assert stale.outcome is Outcome.STALE
    other = await writes.patch(MAPS, "a", {"data": {"x": "2"}}, uid="other", namespace="default")
    assert other.outcome is Outcome.STALE
    refused = await writes.delete(MAPS, "a", uid="other", namespace="default")
    assert refused.outcome is Outcome.STALE
    assert (await writes.delete(MAPS, "a", uid=first.uid, namespace="default")).done
    gone = await writes.delete(MAPS, "a", uid=first.uid, namespace="default")
    assert gone.outcome is Outcome.GONE


async def test_a_create_that_met_a_quotas_change_has_not_found_its_object_there(
    cluster: EmbeddedCluster, client: KubeClient
) -> None:
    writes = Writes(client, per_s=1000)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    cluster.faults.rules = [FaultRule(verb="create", resource="configmaps", status=409, times=1)]
    with pytest.raises(Conflict):
        await writes.create(MAPS, manifest, namespace="default")
    assert (await writes.create(MAPS, manifest, namespace="default")).done


async def test_a_wrong_object_is_an_error(cluster: EmbeddedCluster, client: KubeClient) -> None:
    writes = Writes(client, per_s=1000)
    with pytest.raises(Invalid):
        await writes.create(MAPS, {"metadata": {"name": "Not A Name"}}, namespace="default")


async def test_the_same_words_are_one_event_whichever_process_repeats_them(
    cluster: EmbeddedCluster, client: KubeClient
) -> None:
    about = About(MAPS, "default", "a", "u-1")
    for _life in range(2):
        recorder = Recorder(Writes(client, per_s=1000))
        task = asyncio.create_task(recorder.run(), name="recorder")
        recorder.record(about, "Normal", "Said", "the same words")
        recorder.record(about, "Normal", "Said", "the same words")
        await recorder.flush()
        task.cancel()
        await asyncio.wait([task])
    page = await client.list(CORE_EVENTS, Event, namespace="default")
    assert [(one.reason, one.count) for one in page.items if isinstance(one, Event)] == [
        ("Said", 2)
    ]
