"""Repeating a write does no harm and is no error; Events are written once for the same words."""

import asyncio

import msgspec
import pytest

from services.controller.core.events import ControllerEvent
from services.controller.reconciling.events import Recorder
from services.controller.reconciling.writes import Outcome, Writes
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, Invalid
from shared.kube.resources import CORE_EVENTS, Resource
from tests.support.faulty_cluster import FaultRule, FaultyCluster

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


class Thing(msgspec.Struct, frozen=True):
    metadata: Metadata


class Event(msgspec.Struct, frozen=True):
    metadata: Metadata
    reason: str
    message: str
    count: int


async def test_each_way_a_write_can_be_late_has_its_outcome(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    writes = Writes(client, per_s=1000)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    made = await writes.create(MAPS, manifest, namespace="default")
    assert made.done
    first = msgspec.json.decode(made.body, type=Thing).metadata
    assert (await writes.create(MAPS, manifest, namespace="default")).outcome is Outcome.EXISTS
    assert (await writes.patch(MAPS, first, {"data": {"x": "1"}})).done
    another = msgspec.structs.replace(first, uid="other")
    assert (await writes.patch(MAPS, another, {"data": {"x": "2"}})).outcome is Outcome.STALE
    assert (await writes.delete(MAPS, another)).outcome is Outcome.STALE
    assert (await writes.delete(MAPS, first)).done
    assert (await writes.delete(MAPS, first)).outcome is Outcome.GONE


async def test_a_create_that_met_a_quotas_change_has_not_found_its_object_there(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    writes = Writes(client, per_s=1000)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    cluster.faults.rules = [FaultRule(verb="create", resource="configmaps", status=409, times=1)]
    with pytest.raises(Conflict):
        await writes.create(MAPS, manifest, namespace="default")
    assert (await writes.create(MAPS, manifest, namespace="default")).done


async def test_a_wrong_object_is_an_error(cluster: FaultyCluster, client: KubeClient) -> None:
    writes = Writes(client, per_s=1000)
    with pytest.raises(Invalid):
        await writes.create(MAPS, {"metadata": {"name": "Not A Name"}}, namespace="default")


async def test_the_same_words_are_one_event_whichever_process_repeats_them(
    cluster: FaultyCluster, client: KubeClient
) -> None:
    about = Metadata(namespace="default", name="a", uid="u-1")
    event = ControllerEvent("Normal", "Said", "the same words")
    for _life in range(2):
        recorder = Recorder(Writes(client, per_s=1000))
        task = asyncio.create_task(recorder.run(), name="recorder")
        recorder.record(MAPS, about, event)
        recorder.record(MAPS, about, event)
        await recorder.flush()
        task.cancel()
        await asyncio.wait([task])
    page = await client.list(CORE_EVENTS, Event, namespace="default")
    assert [(one.reason, one.count) for one in page.items if isinstance(one, Event)] == [
        ("Said", 2)
    ]
