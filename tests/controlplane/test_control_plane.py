"""The real control plane itself: what the rest of the suite takes for granted."""

import asyncio
import base64
import json
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
import yaml
from aiohttp import ClientError, web

from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.cluster import ControlPlane, KubectlError
from tests.controlplane.components import APISERVER, ETCD, WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.nodes import (
    GPU,
    NodeShape,
    bind_pod,
    create_nodes,
    create_pods,
    node_manifest,
    pod_manifest,
)
from tests.controlplane.processes import ComponentError
from tests.controlplane.workspace import PREFIX, Workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.integration


def test_kubectl_creates_a_node_and_a_pod_and_reads_the_binding(
    control_plane: ControlPlane, namespace: str, empty_cluster: None
) -> None:
    node = node_manifest("by-hand", NodeShape(extended={GPU: 1}))
    pod = pod_manifest("solo", requests={"cpu": "1", GPU: "1"})
    pod["metadata"]["namespace"] = namespace
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "solo"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "by-hand"},
    }
    control_plane.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all([node, pod]))
    path = f"/api/v1/namespaces/{namespace}/pods/solo/binding"
    control_plane.kubectl("create", f"--raw={path}", "-f", "-", stdin=json.dumps(binding))

    bound = control_plane.kubectl(
        "get", "pod", "solo", f"--namespace={namespace}", "--output=jsonpath={.spec.nodeName}"
    )
    ready = control_plane.kubectl("get", "node", "by-hand")

    assert bound == "by-hand"
    assert " Ready " in ready


async def test_a_binding_for_another_uid_is_refused_and_the_pod_stays_unbound(
    api: RawClient, namespace: str, empty_cluster: None
) -> None:
    [node] = await create_nodes(api, 1)
    [pod] = await create_pods(api, namespace, [pod_manifest("solo")])
    stale = {"metadata": {**pod["metadata"], "uid": "00000000-0000-0000-0000-000000000000"}}

    with pytest.raises(ApiError, match="Precondition failed") as refused:
        await bind_pod(api, stale, node)
    seen = await api.get(f"/api/v1/namespaces/{namespace}/pods/solo")

    assert refused.value.status == 409
    assert "nodeName" not in seen["spec"]


async def test_a_watch_sees_a_pod_bound(
    api: RawClient, namespace: str, empty_cluster: None
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    [node] = await create_nodes(api, 1)
    [pod] = await create_pods(api, namespace, [pod_manifest("solo")])
    await bind_pod(api, pod, node)

    version = pod["metadata"]["resourceVersion"]
    async with asyncio.timeout(10):
        events = api.watch(path, resourceVersion=version)
        kind, seen = await anext(events)
        await events.aclose()

    assert kind == "MODIFIED"
    assert seen["spec"]["nodeName"] == node


async def test_nodes_are_ready_and_offer_what_was_asked(
    api: RawClient, empty_cluster: None
) -> None:
    shape = NodeShape(cpu_milli=2500, extended={GPU: 8}, labels={"rack": "r1"})
    await create_nodes(api, 3, shape)

    listed = await api.get("/api/v1/nodes", labelSelector="rack=r1")

    assert len(listed["items"]) == 3
    for node in listed["items"]:
        assert node["status"]["allocatable"]["cpu"] == "2500m"
        assert node["status"]["allocatable"][GPU] == "8"
        assert "taints" not in node["spec"]


async def test_a_user_without_rights_may_neither_bind_nor_list(
    control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    [pod] = await create_pods(api, namespace, [pod_manifest("solo")])
    nobody = await asyncio.to_thread(control_plane.kubeconfig_for, "nobody", ["strangers"])

    async with RawClient(nobody) as client:
        with pytest.raises(ApiError, match='User "nobody" cannot create resource "pods/binding"'):
            await bind_pod(client, pod, "anywhere")
        with pytest.raises(ApiError, match="cannot list resource"):
            await client.get("/api/v1/pods")


async def test_a_service_accounts_token_carries_the_rights_that_it_was_given(
    control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    kubectl, inside = control_plane.kubectl, f"--namespace={namespace}"
    await asyncio.to_thread(kubectl, "create", "serviceaccount", "reader", inside)
    account = f"--serviceaccount={namespace}:reader"
    role = ["create", "role", "read", "--verb=list", "--resource=pods", inside]
    await asyncio.to_thread(kubectl, *role)
    binding = ["create", "rolebinding", "read", "--role=read", account, inside]
    await asyncio.to_thread(kubectl, *binding)
    kubeconfig = await asyncio.to_thread(
        control_plane.kubeconfig_for_service_account, namespace, "reader"
    )

    async with RawClient(kubeconfig) as client:
        listed = await client.get(f"/api/v1/namespaces/{namespace}/pods")
        with pytest.raises(ApiError, match="cannot list resource"):
            await client.get("/api/v1/nodes")

    assert listed["items"] == []


def test_a_kubectl_error_carries_the_servers_words(control_plane: ControlPlane) -> None:
    with pytest.raises(KubectlError, match='pods "absent" not found'):
        control_plane.kubectl("get", "pod", "absent")


def test_a_component_that_refuses_its_flags_is_reported_with_its_log_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    options = ControlPlaneOptions(etcd_args=["--no-such-flag"], parent_dir=tmp_path)
    control_plane = ControlPlane(options)

    with pytest.raises(ComponentError, match="flag provided but not defined: -no-such-flag"):
        control_plane.start()

    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
    with pytest.raises(ComponentError, match="not running"):
        _ = control_plane.dir


async def test_killed_and_restarted_parts_keep_their_data_and_their_address() -> None:
    with ControlPlane() as own:
        async with RawClient(own.admin_kubeconfig) as api:
            await create_nodes(api, 1)
            await asyncio.to_thread(own.kill, APISERVER)
            with pytest.raises(ClientError):
                await api.get("/api/v1/nodes/node-0")
            await asyncio.to_thread(own.kill, ETCD)
            await asyncio.to_thread(own.restart, ETCD)
            await asyncio.to_thread(own.restart, APISERVER)
            kept = await api.get("/api/v1/nodes/node-0")

            await asyncio.to_thread(own.pause, APISERVER)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await api.get("/api/v1/nodes")
            await asyncio.to_thread(own.resume, APISERVER)
            await api.get("/api/v1/nodes")

    assert kept["metadata"]["name"] == "node-0"


async def test_controllers_and_the_default_scheduler_run_on_request() -> None:
    options = ControlPlaneOptions(controllers=WORKLOAD_CONTROLLERS, scheduler=True)
    with ControlPlane(options) as own:
        async with RawClient(own.admin_kubeconfig) as api:
            await create_nodes(api, 1)
            create = ["create", "deployment", "web", "--image=none", "--replicas=2"]
            await asyncio.to_thread(own.kubectl, *create)

            async def placed_on() -> list[str]:
                listed = await api.get("/api/v1/namespaces/default/pods")
                found = [pod["spec"].get("nodeName", "") for pod in listed["items"]]
                return found if len(found) == 2 and all(found) else []

            assert await eventually(placed_on) == ["node-0", "node-0"]


def started_by_another_process(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """Run ``tests.controlplane up`` and return it and the kubeconfig that it printed."""
    command = [sys.executable, "-m", "tests.controlplane", "up", f"--dir={folder}"]
    starter = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    kubeconfig = Path(starter.stdout.readline().strip())
    return starter, kubeconfig


async def test_nothing_outlives_a_starter_that_was_killed(tmp_path: Path) -> None:
    starter, kubeconfig = await asyncio.to_thread(started_by_another_process, tmp_path)
    with starter:
        servers = psutil.Process(starter.pid).children(recursive=True)
        async with RawClient(kubeconfig) as api:
            assert await api.text("/readyz") == "ok"
        starter.kill()

    _, alive = await asyncio.to_thread(psutil.wait_procs, servers, 10)

    assert sorted(server.pid for server in servers)
    assert alive == []


def test_a_killed_starters_folder_is_swept_by_the_next_one(tmp_path: Path) -> None:
    abandoned = tmp_path / f"{PREFIX}abandoned"
    abandoned.mkdir()
    (abandoned / "left.log").touch()
    living = Workspace(tmp_path)

    next_one = Workspace(tmp_path)

    assert not abandoned.exists()
    assert living.path.is_dir()
    for workspace in (living, next_one):
        workspace.close()
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


async def test_sigterm_stops_everything_and_removes_the_folder(tmp_path: Path) -> None:
    starter, kubeconfig = await asyncio.to_thread(started_by_another_process, tmp_path)
    with starter:
        servers = psutil.Process(starter.pid).children(recursive=True)
        assert kubeconfig.is_file()
        starter.terminate()
        status = await asyncio.to_thread(starter.wait, 20)

    assert status == 0
    assert len(servers) == 2
    assert not any(server.is_running() for server in servers)
    assert not kubeconfig.parent.exists()


async def test_an_admission_webhook_on_loopback_is_asked(
    control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        review = await request.json()
        answer = {"uid": review["request"]["uid"], "allowed": False}
        answer["status"] = {"message": "not while the test runs"}
        return web.json_response({**review, "response": answer})

    pair = control_plane.authority.server(["127.0.0.1"])
    with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
        pem.write(pair.certificate_pem + pair.key_pem)
        pem.flush()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(pem.name)
    application = web.Application()
    application.router.add_post("/validate", refuse)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    name = f"refuse.{namespace}.test"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {
        "name": name,
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/validate",
            "caBundle": base64.b64encode(control_plane.authority.certificate_pem).decode(),
        },
        "rules": [{**rule, "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "admissionReviewVersions": ["v1"],
    }
    await api.create(path, {"metadata": {"name": name}, "webhooks": [webhook]})

    async def refusal() -> str:
        """Webhooks are known to the API server a moment after they were registered."""
        try:
            body = {"metadata": {"generateName": "any-"}}
            await api.create(f"/api/v1/namespaces/{namespace}/configmaps", body)
        except ApiError as error:
            return str(error)
        return ""

    try:
        message = await eventually(refusal, because="the webhook refuses config maps here")
    finally:
        await api.delete(f"{path}/{name}")
        await runner.cleanup()

    assert "denied the request: not while the test runs" in message
