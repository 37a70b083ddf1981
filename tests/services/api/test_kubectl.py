"""The real kubectl reads gangs through a real API server, with each user's own rights."""

import asyncio
import base64
import json
import re
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from shared.bus.questions import serve
from shared.contracts import codec, subjects
from shared.contracts.identity import gang_trace_id
from shared.contracts.questions import EstimatesAnswer, EstimatesRequest, StartEstimate
from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import (
    bind_pod,
    create_namespace,
    create_nodes,
    create_pods,
    pod_manifest,
    remove_namespace,
)
from tests.services.api.scene import (
    GROUP_PATH,
    Scene,
    a_scene,
    api_flags,
    verdict,
    waiting,
)
from tests.support.free_ports import free_port
from tests.support.golden import Golden
from tests.support.service_process import a_service
from tests.support.waiting import eventually
from tutti.cli import main
from tutti.nats_server import NatsServer

API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.visibility.tutti.dev"

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
async def scene(
    control_plane: ControlPlane, api: RawClient, nats_server: NatsServer, tmp_path: Path
) -> AsyncIterator[Scene]:
    async with a_scene(control_plane, api, nats_server, tmp_path) as scene:
        yield scene


@pytest.fixture
async def teams(api: RawClient) -> AsyncIterator[tuple[str, str]]:
    """Two namespaces, in order."""
    names = sorted(f"team-{uuid.uuid4().hex[:8]}" for _ in range(2))
    for name in names:
        await create_namespace(api, name)
    yield names[0], names[1]
    for name in names:
        await remove_namespace(api, name)


async def test_kubectl_prints_tables_pages_and_objects(
    scene: Scene, teams: tuple[str, str], empty_cluster: None, golden: Golden
) -> None:
    first, second = teams
    await create_nodes(scene.api, 2)
    group = await scene.api.create(
        f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{first}/podgroups",
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
        | {"metadata": {"name": "train"}, "spec": {"minMember": 2}},
    )
    uid = group["metadata"]["uid"]
    marks = {"scheduling.k8s.io/group-name": "train"}
    manifests = [pod_manifest(f"train-{n}", annotations=marks) for n in range(2)]
    for pod in await create_pods(scene.api, first, manifests):
        await bind_pod(scene.api, pod, "node-1")
    fields = {"gang_id": uid, "uid": uid, "phase": "Running", "members": 2, "min_member": 2}
    trace = gang_trace_id(uid, 1)
    await scene.publish(
        verdict(first, "train", trace_id=trace, **fields),
        verdict(second, "large", why=waiting(f"{first}/train", f"{second}/other")),
    )
    await scene.sees(f"{first}/train", f"{second}/large")

    async def placed() -> bool:
        out = await scene.kubectl("get", "gangs", "-n", first, "-o", "wide")
        return "node-1" in out

    await eventually(placed, timeout_s=10, because="the watcher has seen the bindings")
    wide = (await scene.kubectl("get", "gangs", "-A", "-o", "wide")).splitlines()
    assert wide[0].split() == [
        *("NAMESPACE", "NAME", "PHASE", "RUNNING", "MINIMUM", "QUEUE", "REASON", "EXPECTED", "AGE"),
        *("GANG", "POSITION", "API", "NODES", "MESSAGE"),
    ]
    assert wide[2].split()[:7] == [second, "large", "Inqueue", "0/3", "3", "default", "QueueOrder"]
    assert wide[2].endswith("<none>   2 gangs are ahead")
    one = json.loads(await scene.kubectl("get", "gang", "train", "-n", first, "-o", "json"))
    assert one["metadata"]["uid"] == uid
    assert one["status"]["traceUrl"] == f"https://jaeger.example/trace/{trace}"
    assert one["status"]["placement"] == [{"node": "node-1", "members": 2}]
    assert one["status"]["roles"] == [{"name": "", "members": 2, "placed": 2, "running": 0}]
    pages = await scene.kubectl("get", "gangs", "-A", "--chunk-size=1", "-o", "name")
    assert pages.split() == ["gang.visibility.tutti.dev/train", "gang.visibility.tutti.dev/large"]
    golden(await scene.refusal("get", "gang", "none", "-n", first))
    selected = await scene.kubectl(
        "get", "gangs", "-A", "-o", "name", "--field-selector=status.phase=Running"
    )
    assert selected.split() == ["gang.visibility.tutti.dev/train"]


async def test_kubectl_and_tutti_why_show_when_a_gang_is_expected_to_start(
    scene: Scene, teams: tuple[str, str]
) -> None:
    first, _ = teams
    group = await scene.api.create(
        f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{first}/podgroups",
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
        | {"metadata": {"name": "large"}, "spec": {"minMember": 2}},
    )
    uid, now_ms = group["metadata"]["uid"], int(time.time() * 1000)
    estimate = StartEstimate(
        gang_id=uid,
        position=3,
        earliest_ms=now_ms + 15 * 60_000,
        latest_ms=now_ms + 60 * 60_000,
        basis="run limits",
    )

    async def answer(_: EstimatesRequest) -> EstimatesAnswer:
        return EstimatesAnswer(as_of_ms=now_ms, estimates=(estimate,))

    await serve(scene.bus, subjects.ASK_ESTIMATES, codec.decode_estimates_request, answer)
    await scene.publish(verdict(first, "large", gang_id=uid, uid=uid))
    await scene.sees(f"{first}/large")
    rows: list[str] = []

    async def expected() -> bool:
        rows[:] = (await scene.kubectl("get", "gangs", "-n", first, "-o", "wide")).splitlines()
        return re.search(r"1[34]m-5[89]m .* large +3 +volcano", rows[1]) is not None

    await eventually(expected, timeout_s=20, because="the answer is asked for again after a pause")
    kubeconfig = scene.control_plane.admin_kubeconfig
    arguments = ("-n", first, "--kubeconfig", str(kubeconfig))
    found = await asyncio.to_thread(
        CliRunner().invoke, main, ["why", "podgroup/large", *arguments], catch_exceptions=False
    )
    assert re.search(
        r"expected to start between .* UTC \(run limits\), 3rd in queue default, as of",
        found.output,
    ), found.output


async def test_a_user_sees_gangs_of_namespaces_whose_pods_the_user_may_list(
    scene: Scene, teams: tuple[str, str]
) -> None:
    first, second = teams
    why = waiting(f"{first}/secret", f"{second}/other")
    await scene.publish(
        verdict(first, "secret"), verdict(second, "mine", why=why), verdict(second, "other")
    )
    await scene.sees(f"{first}/secret", f"{second}/mine", f"{second}/other")
    user = await scene.user(f"user-{second}", second)
    await scene.sees(f"{second}/mine", f"{second}/other", user=user)
    mine = json.loads(
        await scene.kubectl("get", "gang", "mine", "-n", second, "-o", "json", user=user)
    )
    assert mine["status"]["pending"]["ahead"] == {"count": 2, "names": [f"{second}/other"]}
    all_names = json.loads(await scene.kubectl("get", "gang", "mine", "-n", second, "-o", "json"))
    assert all_names["status"]["pending"]["ahead"]["names"] == [
        f"{first}/secret",
        f"{second}/other",
    ]
    for arguments in (("get", "gangs"), ("get", "gang", "secret"), ("get", "gang", "none")):
        refused = await scene.refusal(*arguments, "-n", first, user=user)
        assert refused == (
            f"Error from server (Forbidden): user user-{second} cannot list pods "
            f"in the namespace {first}"
        )
    stranger = await scene.user(f"stranger-{first}")
    assert "No resources found" in await _all_output(scene, stranger)


async def test_kubectl_watches_gangs_until_they_are_gone(
    scene: Scene, teams: tuple[str, str]
) -> None:
    first, second = teams
    await scene.publish(verdict(first, "train"))
    await scene.sees(f"{first}/train")
    user = await scene.user(f"user-{first}", first)
    async with _watching(scene, user, "get", "gangs", "-A", "-w", "--output-watch-events") as lines:
        await eventually(lambda: len(lines()) >= 2, because="kubectl has listed")
        await scene.publish(
            verdict(second, "hidden"),
            verdict(first, "train", phase="Running", running=3, pending=0),
            verdict(first, "next"),
        )
        await eventually(lambda: "next" in " ".join(lines()), because="it was added")
        await scene.publish(verdict(first, "train", phase="Gone"))
        await eventually(lambda: "DELETED" in " ".join(lines()), because="it is gone")
        seen = [" ".join(line.split()[:5]) for line in lines()[1:]]
    assert seen == [
        f"ADDED {first} train Inqueue 0/3",
        f"ADDED {first} next Inqueue 0/3",
        f"MODIFIED {first} train Running 3/3",
        f"DELETED {first} train Running 3/3",
    ] or seen == [
        f"ADDED {first} train Inqueue 0/3",
        f"MODIFIED {first} train Running 3/3",
        f"ADDED {first} next Inqueue 0/3",
        f"DELETED {first} train Running 3/3",
    ]


async def test_direct_requests_need_a_token_and_no_client_is_believed_about_its_user(
    scene: Scene, teams: tuple[str, str]
) -> None:
    first, _ = teams
    await scene.publish(verdict(first, "train"))
    await scene.sees(f"{first}/train")
    path = f"/api/v1/namespaces/{first}/serviceaccounts"
    await scene.api.create(path, {"metadata": {"name": "reader"}})
    token = (await scene.api.create(f"{path}/reader/token", {"spec": {}}))["status"]["token"]
    url = f"https://127.0.0.1:{scene.port}{GROUP_PATH}/gangs"
    masters = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    bearer = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        for headers in ({}, masters, {"Authorization": "Bearer wrong"}):
            async with session.get(url, headers=headers) as response:
                assert response.status == 401
                assert (await response.json())["kind"] == "Status"
        async with session.get(url, headers=bearer | masters) as response:
            assert response.status == 200, await response.text()
            assert (await response.json())["items"] == []
            etag = response.headers["ETag"]
        async with session.get(url, headers=bearer | {"If-None-Match": etag}) as response:
            assert (response.status, await response.read()) == (304, b"")
        async with session.get(f"{url}?labelSelector=a%3Db", headers=bearer) as response:
            assert response.status == 400
            assert "labels" in (await response.json())["message"]


async def test_replicas_share_the_registration_and_each_removes_its_own_part(
    scene: Scene, nats_server: NatsServer, tmp_path: Path
) -> None:
    async def members() -> list[str]:
        found = (await scene.api.get(API_SERVICE))["metadata"]["annotations"]
        return sorted(json.loads(found["visibility.tutti.dev/members"]))

    (first,) = await members()
    registered = await scene.api.get(API_SERVICE)
    (owner,) = registered["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ClusterRole", "tutti-api")
    flags = await api_flags(scene.control_plane, free_port(), tmp_path / "second")
    # The Service leads to the first one's port.
    flags = (*flags, f"--service-port={scene.port}", "--ordinal=1")
    async with a_service("api", scene.bus, nats_server.url, tmp_path / "second.log", *flags):

        async def both() -> bool:
            return len(await members()) == 2

        await eventually(both, timeout_s=30, because="the second replica has registered")
        shared = await scene.api.get(API_SERVICE)
        bundle = base64.b64decode(shared["spec"]["caBundle"])
        assert bundle.count(b"BEGIN CERTIFICATE") == 2
    assert await members() == [first]


async def test_without_nats_gangs_are_unavailable_with_the_reason_and_discovery_is_answered(
    scene: Scene, nats_server: NatsServer, teams: tuple[str, str]
) -> None:
    first, _ = teams
    await scene.publish(verdict(first, "train"))
    await scene.sees(f"{first}/train")
    await nats_server.kill()
    try:

        async def refused() -> bool:
            try:
                await scene.api.get(f"{GROUP_PATH}/gangs")
            except ApiError as error:
                return error.status == 503 and "no connection to NATS" in str(error)
            return False

        await eventually(refused, timeout_s=30, because="NATS is gone")
        resources = await scene.api.get(GROUP_PATH)
        assert "gangs" in {one["name"] for one in resources["resources"]}
    finally:
        await nats_server.start()


async def _all_output(scene: Scene, user: Path) -> str:
    """Standard output and error of a list of all namespaces."""
    plane = scene.control_plane
    process = await asyncio.create_subprocess_exec(
        *(str(plane.binaries.kubectl), f"--kubeconfig={user}", "get", "gangs", "-A"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return out.decode()


@asynccontextmanager
async def _watching(
    scene: Scene, user: Path, *arguments: str
) -> AsyncIterator[Callable[[], list[str]]]:
    """The lines that kubectl has printed so far, as a function."""
    process = await asyncio.create_subprocess_exec(
        *(str(scene.control_plane.binaries.kubectl), f"--kubeconfig={user}", *arguments),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    seen: list[str] = []

    async def read(stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            seen.append(line.decode())

    reading = asyncio.create_task(read(process.stdout))
    try:
        yield lambda: seen
    finally:
        process.kill()
        await process.wait()
        await reading
