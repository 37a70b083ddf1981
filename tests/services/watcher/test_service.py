"""The watcher as a process, between a real API server and a real NATS."""

import asyncio
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from shared.bus.connection import Bus
from shared.bus.setup import ensure_streams
from shared.contracts.cluster import NodeChanges, StreamOpened, Synced
from shared.model.objects import Node, Pod, PodGroup
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.nodes import bind_pod, create_nodes, create_pods, pod_manifest
from tests.services.watcher.running import Reader, WatcherProcess, running_watcher
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"


def group_manifest(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.usefixtures("watcher", "empty_cluster")
async def test_each_change_in_the_cluster_is_published_once(
    api: RawClient, namespace: str, reader: Reader
) -> None:
    await create_nodes(api, 1)
    await api.create(GROUPS.format(namespace), group_manifest("gang", minMember=2, queue="q"))
    member = pod_manifest(
        "w-0",
        scheduler_name="volcano",
        requests={"cpu": "500m"},
        annotations={"scheduling.k8s.io/group-name": "gang"},
    )
    foreign = pod_manifest("other", scheduler_name="nobody")
    created = await create_pods(api, namespace, [member, foreign])
    await bind_pod(api, created[0], "node-0")

    async def bound() -> bool:
        return any(isinstance(pod, Pod) and pod.node for pod in await reader.sent("pod", "w-0"))

    await eventually(bound, because="the bound pod is in CLUSTER")
    versions = [pod for pod in await reader.sent("pod", "w-0") if isinstance(pod, Pod)]
    assert (versions[0].group_name, versions[0].ours) == ("gang", True)
    assert versions[-1].node == "node-0"
    # Kinds have watches of their own: the group may be published after its pod.
    (group,) = await eventually(lambda: reader.sent("podgroup", "gang"))
    assert isinstance(group, PodGroup)
    assert (group.dialect, group.namespace, group.min_member, group.queue) == (
        "volcano",
        namespace,
        2,
        "q",
    )
    # A pending pod of another scheduler concerns no gang until it takes room.
    assert await reader.sent("pod", "other") == []


@pytest.mark.usefixtures("watcher", "empty_cluster")
async def test_a_heartbeat_of_a_node_is_not_published(api: RawClient, reader: Reader) -> None:
    await create_nodes(api, 1)

    async def published() -> int:
        return sum(isinstance(one, NodeChanges) for one in await reader.records())

    await eventually(published)
    before = await published()
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2031-01-01T00:00:00Z"}
    await api.patch("/api/v1/nodes/node-0/status", {"status": {"conditions": [beat]}})
    # Records are in order: the change after the heartbeat shows that it was left out.
    await api.patch("/api/v1/nodes/node-0", {"spec": {"unschedulable": True}})

    async def cordoned() -> bool:
        nodes = await reader.sent("node", "node-0")
        return any(isinstance(node, Node) and node.unschedulable for node in nodes)

    await eventually(cordoned)
    assert await published() == before + 1


@pytest.mark.usefixtures("empty_cluster")
async def test_a_watcher_killed_and_started_again_opens_an_epoch_that_holds_the_whole_cluster(
    tmp_path: Path,
    api: RawClient,
    namespace: str,
    nats_server: NatsServer,
    control_plane: ControlPlane,
    reader: Reader,
    watcher: WatcherProcess,
) -> None:
    await create_nodes(api, 3)
    members = [pod_manifest(f"w-{i}", scheduler_name="tutti") for i in range(30)]
    created = await create_pods(api, namespace, members)

    async def all_published() -> bool:
        objects, _ = await reader.snapshot()
        return sum(isinstance(one, Pod) and one.namespace == namespace for one in objects) == 30

    await eventually(all_published)
    await watcher.kill()
    # While no watcher runs: one pod goes, one is bound, one node goes.
    await api.delete(f"/api/v1/namespaces/{namespace}/pods/w-0", {"gracePeriodSeconds": 0})
    await bind_pod(api, created[1], "node-1")
    await api.delete("/api/v1/nodes/node-2")
    kubeconfig = control_plane.admin_kubeconfig
    async with running_watcher(tmp_path, nats_server.url, kubeconfig, "watcher-0"):
        synced = await reader.wait_epoch(2)
        objects, page = await reader.snapshot()
        assert page.epoch == synced.epoch > 1
        assert page.cluster_seq >= page.epoch
        listed = (await api.get("/api/v1/pods"))["items"]
        published = [one for one in objects if isinstance(one, Pod) and one.namespace == namespace]
        assert {one.uid: one.node for one in published} == {
            pod["metadata"]["uid"]: pod["spec"].get("nodeName", "")
            for pod in listed
            if pod["metadata"]["namespace"] == namespace
        }
        nodes = (await api.get("/api/v1/nodes"))["items"]
        assert {one.uid for one in objects if isinstance(one, Node)} == {
            node["metadata"]["uid"] for node in nodes
        }
    await assert_one_writer(reader)


@pytest.mark.usefixtures("empty_cluster")
async def test_of_two_watchers_one_writes_and_the_other_follows_when_it_dies(
    tmp_path: Path,
    api: RawClient,
    nats_server: NatsServer,
    control_plane: ControlPlane,
    reader: Reader,
    watcher: WatcherProcess,
) -> None:
    kubeconfig = control_plane.admin_kubeconfig
    async with running_watcher(tmp_path, nats_server.url, kubeconfig, "watcher-1"):

        async def both_ready() -> bool:
            answers = await reader.statuses()
            return len(answers) == 2 and all(answer.ready for answer in answers.values())

        await eventually(both_ready, because="the standby is ready, too")
        answers = await reader.statuses()
        assert (answers["watcher-0"].active, answers["watcher-1"].active) == (True, False)
        await watcher.kill()
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        synced = await reader.wait_epoch(2)
        assert synced.watcher == "watcher-1"
        # Readers call their view stale after five seconds.
        assert loop.time() - began_s < 5
        await create_nodes(api, 1)
        await eventually(lambda: reader.sent("node", "node-0"), because="the new one publishes")
    await assert_one_writer(reader)


async def test_a_watcher_that_stops_in_order_hands_over_at_once(
    tmp_path: Path,
    nats_server: NatsServer,
    control_plane: ControlPlane,
    reader: Reader,
    watcher: WatcherProcess,
) -> None:
    kubeconfig = control_plane.admin_kubeconfig
    async with running_watcher(tmp_path, nats_server.url, kubeconfig, "watcher-1") as standby:
        await eventually(lambda: "standing by" in standby.log(), because="there is a standby")
        watcher.signal(signal.SIGTERM)
        assert await watcher.wait() == 0
        await reader.wait_epoch(2, timeout_s=5)
        standby.signal(signal.SIGTERM)
        assert await standby.wait() == 0


async def test_a_watcher_that_overslept_its_lease_writes_nothing_and_steps_down(
    tmp_path: Path,
    nats_server: NatsServer,
    control_plane: ControlPlane,
    reader: Reader,
    watcher: WatcherProcess,
) -> None:
    """The lease runs out while the active watcher is stopped; it wakes up believing that it is
    the writer. Only the fence can prove otherwise, and must.
    """
    kubeconfig = control_plane.admin_kubeconfig
    async with running_watcher(tmp_path, nats_server.url, kubeconfig, "watcher-1"):
        watcher.signal(signal.SIGSTOP)
        synced = await reader.wait_epoch(2)
        assert synced.watcher == "watcher-1"
        watcher.signal(signal.SIGCONT)
        await watcher.wait_logged("superseded: ")
        await watcher.wait_logged("another watcher is active: standing by")
        assert watcher.process.returncode is None
    await assert_one_writer(reader)


@pytest.mark.usefixtures("watcher", "empty_cluster")
async def test_changes_during_an_outage_of_nats_are_published_when_it_is_back(
    api: RawClient, namespace: str, nats_server: NatsServer, reader: Reader
) -> None:
    await create_nodes(api, 1)
    await eventually(lambda: reader.sent("node", "node-0"))
    await nats_server.kill()
    created = await create_pods(api, namespace, [pod_manifest("made-meanwhile")])
    await bind_pod(api, created[0], "node-0")
    await nats_server.start()

    async def published() -> bool:
        versions = await reader.sent("pod", "made-meanwhile")
        return bool(versions) and isinstance(versions[-1], Pod) and bool(versions[-1].node)

    await eventually(published, timeout_s=20)
    assert len(await reader.epochs()) == 1
    await assert_one_writer(reader)


async def test_a_watcher_whose_log_was_recreated_begins_again_in_the_same_process(
    nats_server: NatsServer, watcher: WatcherProcess
) -> None:
    """Sequences of a lost log mean nothing in a new one: its next generation opens an epoch."""
    await nats_server.kill()
    await asyncio.to_thread(shutil.rmtree, nats_server.data_dir / "store")
    await nats_server.start()
    bus = await Bus.connect(nats_server.url, name="setup")
    await ensure_streams(bus)
    await bus.close()
    await watcher.wait_logged("superseded: ")

    async def opened_again() -> bool:
        return watcher.log().count(" is open with ") == 2

    await eventually(opened_again, timeout_s=20)
    assert watcher.process.returncode is None


@pytest.mark.usefixtures("watcher")
async def test_a_dialect_sleeps_while_its_kind_is_not_served_and_wakes_with_it(
    api: RawClient, namespace: str, control_plane: ControlPlane, reader: Reader
) -> None:
    """Bare pods belong to a group only while one can be made: each pod gets its changes."""
    await create_pods(api, namespace, [pod_manifest("bare", scheduler_name="volcano")])

    async def group_is(implied: bool) -> bool:
        versions = await reader.sent("pod", "bare")
        return (
            bool(versions)
            and isinstance(versions[-1], Pod)
            and (versions[-1].group_implied == implied)
        )

    async def awake() -> tuple[str, ...]:
        return [one for one in await reader.records() if isinstance(one, Synced)][-1].dialects

    await eventually(lambda: group_is(implied=True))
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.volcano.sh"
    try:
        await api.delete(crd)
        await eventually(lambda: group_is(implied=False), timeout_s=25)
    finally:
        await eventually_created(control_plane, api, namespace)
    await eventually(lambda: group_is(implied=True), timeout_s=25)
    await api.create(GROUPS.format(namespace), group_manifest("gang"))
    await eventually(lambda: reader.sent("podgroup", "gang"))
    assert "volcano" in await awake()


async def eventually_created(control_plane: ControlPlane, api: RawClient, namespace: str) -> None:
    """Bring the CRDs back; while the old one is being deleted, they cannot be created."""
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.volcano.sh"

    async def gone() -> bool:
        listed = await api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        return crd.rpartition("/")[2] not in {one["metadata"]["name"] for one in listed["items"]}

    await eventually(gone, timeout_s=20)
    await asyncio.to_thread(control_plane.install_crds, CRDS_DIR)


async def assert_one_writer(reader: Reader) -> None:
    """No record of an epoch comes after the next one has begun, and each epoch is its own seq."""
    newest = 0
    for seq, record in enumerate(await reader.records(), start=1):
        if isinstance(record, StreamOpened):
            continue
        assert record.epoch >= newest, f"record {seq} is of an epoch that was over"
        if record.epoch > newest:
            assert isinstance(record, Synced)
            assert record.epoch == seq
        newest = record.epoch
