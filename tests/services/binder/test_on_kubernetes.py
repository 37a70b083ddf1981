"""The binder's requests and what a real kube-apiserver answers to them."""

from pathlib import Path

import msgspec
import pytest

from services.binder.api import KubePods
from services.binder.core.answers import Answer, PodView
from shared.contracts import annotations
from shared.contracts.decisions import Binding, GangDecision
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import bind_pod, create_nodes, create_pods, pod_manifest
from tests.services.binder.core.samples import make_decision
from tests.services.binder.harness import a_binder, a_desk
from tests.support.rbac import as_account
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

NOWHERE = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: a, user: {}}]
"""


def over(client: KubeClient) -> KubePods:
    return KubePods(client, timeout_s=5.0, on_health=lambda _: None)


def decision_for(pods: list[Object], *, preflight: bool = False) -> GangDecision:
    """Bind each pod to the node `node-0`."""
    bindings = tuple(
        Binding(
            uid=pod["metadata"]["uid"],
            namespace=pod["metadata"]["namespace"],
            name=pod["metadata"]["name"],
            node="node-0",
        )
        for pod in pods
    )
    return msgspec.structs.replace(
        make_decision(0, preflight=preflight), bindings=bindings, quorum=len(bindings)
    )


async def make_pods(
    api: RawClient, namespace: str, count: int, spec: Object | None = None
) -> list[Object]:
    manifests = [pod_manifest(f"w-{index}", spec=spec) for index in range(count)]
    return await create_pods(api, namespace, manifests)


async def node_of(api: RawClient, pod: Object) -> str:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    return str((await api.get(path))["spec"].get("nodeName", ""))


@pytest.fixture
async def nodes(api: RawClient, empty_cluster: None) -> None:
    await create_nodes(api, 2)


async def client_of(control_plane: ControlPlane) -> KubeClient:
    """Not entered yet: with the binder's own rights."""
    return KubeClient(await load(str(await as_account(control_plane.admin_kubeconfig, "binder"))))


async def test_a_gang_is_bound_whole_and_its_pods_say_by_which_decision(
    nats_server: NatsServer,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    nodes: None,
) -> None:
    pods = await make_pods(api, namespace, 8)
    async with (
        a_desk(nats_server.url) as desk,
        KubeClient(
            await load(str(await as_account(control_plane.admin_kubeconfig, "binder")))
        ) as client,
        a_binder(nats_server.url, over(client)),
    ):
        seq = await desk.decide(decision_for(pods, preflight=True))
        outcome = await eventually(lambda: desk.outcome(seq))
        assert outcome is not None
        assert (outcome.bound, outcome.members, outcome.reason) == (8, (), "")
        assert outcome.received_ms <= outcome.preflight_ms <= outcome.first_bound_ms
    for pod in pods:
        found = await api.get(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}")
        assert found["spec"]["nodeName"] == "node-0"
        notes = found["metadata"]["annotations"]
        assert notes[annotations.DECISION].endswith(f"/{seq}")
        assert notes[annotations.TRACE_ID] == "0" * 32


async def test_each_member_gets_the_api_servers_answer(
    nats_server: NatsServer,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    nodes: None,
) -> None:
    ours, elsewhere, already, recreated, deleted = await make_pods(api, namespace, 5)
    await bind_pod(api, elsewhere, "node-1")
    await bind_pod(api, already, "node-0")
    recreated["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    path = f"/api/v1/namespaces/{namespace}/pods/{deleted['metadata']['name']}"
    await api.delete(path, {"gracePeriodSeconds": 0})
    async with (
        a_desk(nats_server.url) as desk,
        KubeClient(
            await load(str(await as_account(control_plane.admin_kubeconfig, "binder")))
        ) as client,
        a_binder(nats_server.url, over(client)),
    ):
        seq = await desk.decide(decision_for([ours, elsewhere, already, recreated, deleted]))
        outcome = await eventually(lambda: desk.outcome(seq))
    assert outcome is not None
    assert outcome.bound == 2
    assert [(member.uid, member.result) for member in outcome.members] == [
        (elsewhere["metadata"]["uid"], "conflict"),
        (recreated["metadata"]["uid"], "conflict"),
        (deleted["metadata"]["uid"], "gone"),
    ]
    assert await node_of(api, recreated) == ""


async def test_nothing_is_bound_when_the_preflight_of_one_member_fails(
    nats_server: NatsServer,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    nodes: None,
) -> None:
    pods = await make_pods(api, namespace, 3)
    pods[1]["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    async with (
        a_desk(nats_server.url) as desk,
        KubeClient(
            await load(str(await as_account(control_plane.admin_kubeconfig, "binder")))
        ) as client,
        a_binder(nats_server.url, over(client)),
    ):
        seq = await desk.decide(decision_for(pods, preflight=True))
        outcome = await eventually(lambda: desk.outcome(seq))
    assert outcome is not None
    assert (outcome.reason, outcome.bound) == ("PreflightFailed", 0)
    assert [member.result for member in outcome.members] == ["skipped", "conflict", "skipped"]
    assert [await node_of(api, pod) for pod in pods] == ["", "", ""]


async def test_a_gated_pod_reads_as_gated(
    control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    (pod,) = await make_pods(api, namespace, 1, spec={"schedulingGates": [{"name": "a.b/c"}]})
    binding = decision_for([pod]).bindings[0]
    async with KubeClient(
        await load(str(await as_account(control_plane.admin_kubeconfig, "binder")))
    ) as client:
        pods = over(client)
        refused = await pods.bind(binding, {}, dry_run=False)
        assert isinstance(refused, Answer)
        assert refused.status == 409
        assert await pods.read(binding) == PodView(binding.uid, gated=True)
        gone = msgspec.structs.replace(binding, name="nobody")
        assert await pods.read(gone) is None


async def test_an_api_server_that_is_away_is_no_answer_and_shows(tmp_path: Path) -> None:
    health: list[str] = []
    kubeconfig = tmp_path / "nowhere"
    # The port of the discard service: no process listens.
    kubeconfig.write_text(NOWHERE)
    async with KubeClient(await load(str(kubeconfig))) as client:
        pods = KubePods(client, timeout_s=1.0, on_health=health.append)
        binding = make_decision(1).bindings[0]
        answers = [await pods.bind(binding, {}, dry_run=False) for _ in range(2)]
        assert health == [], "one or two lost connections prove nothing"
        answers.append(await pods.bind(binding, {}, dry_run=False))
    assert [(answer.status, answer.reason) for answer in answers] == [(0, "ConnectionLost")] * 3
    assert len(health) == 1
    assert "binding" in health[0]
