"""The cluster as one thing: real kubectl, load, limits, its own process."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.api_suite.client import STRATEGIC_PATCH, Client, connected
from tests.api_suite.objects import config_map, pod
from tests.controlplane.binaries import ensure_binaries
from tutti.cluster.embedded import EmbeddedCluster, Settings

PODS = "/api/v1/namespaces/default/pods"
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: one}}
spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {minMember: 3}
"""


class Kubectl:
    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._kubeconfig, self._home = kubeconfig, home

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            ensure_binaries().kubectl,
            f"--kubeconfig={self._kubeconfig}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(self._home), "PATH": ""},
        )
        out, error = await process.communicate(stdin.encode())
        assert process.returncode == 0, error.decode()
        return out.decode()


async def test_kubectl_works(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    kubectl = Kubectl(cluster.kubeconfig(tmp_path / "kubeconfig"), tmp_path)
    assert "pod/web created" in await kubectl("apply", "-f", "-", stdin=MANIFEST)
    again = await kubectl("apply", "-f", "-", stdin=MANIFEST.replace("app: one", "app: two"))
    assert again.splitlines() == [
        "pod/web configured",
        "podgroup.scheduling.volcano.sh/gang unchanged",
    ]
    table = (await kubectl("get", "pods", "--show-labels")).splitlines()
    assert table[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "LABELS"]
    assert table[1].split()[:4] == ["web", "0/1", "Pending", "0"]
    assert table[1].endswith("app=two")
    groups = (await kubectl("get", "pg", "-A", "-o", "wide")).splitlines()
    assert groups[1].split()[:2] == ["default", "gang"]
    assert "Name:         web" in await kubectl("describe", "pod", "web")
    assert "cordoned" in await kubectl("cordon", "node-1")
    assert "node-1   Ready,SchedulingDisabled" in await kubectl("get", "nodes")
    await kubectl("taint", "nodes", "node-2", "a=b:NoSchedule")
    await kubectl("taint", "nodes", "node-2", "a-")
    watch = asyncio.create_task(
        kubectl("get", "pods", "web", "--watch", "--output-watch-events", "--request-timeout=2")
    )
    await asyncio.sleep(0.5)  # kubectl says nothing when its watch stands
    assert "deleted" in await kubectl("delete", "pod", "web")
    assert [line.split()[0] for line in (await watch).splitlines()] == [
        "EVENT",
        "ADDED",
        "MODIFIED",
        "DELETED",
    ]


async def test_a_thousand_pods_and_ten_watches(api: Client, cluster: EmbeddedCluster) -> None:
    async with asyncio.TaskGroup() as group:
        watches = [group.create_task(_count(api, 1000)) for _ in range(10)]
        for first in range(0, 1000, 50):
            names = [f"p-{index}" for index in range(first, first + 50)]
            await asyncio.gather(*(api.create(PODS, pod(name)) for name in names))
    assert [watch.result() for watch in watches] == [1000] * 10
    assert len(await api.names(PODS)) == 1000


async def _count(api: Client, wanted: int) -> int:
    seen: set[str] = set()
    async with api.watch(PODS) as events:
        while len(seen) < wanted:
            seen.add((await events.next())[1]["metadata"]["name"])
    return len(seen)


async def test_a_reader_that_is_too_slow_gets_an_expired_error(tmp_path: Path) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    async with (
        EmbeddedCluster(Settings(nodes=0, history_max=10)) as cluster,
        connected(cluster.kubeconfig(tmp_path / "kubeconfig")) as api,
    ):
        first = await api.create(path, config_map("one"))
        for index in range(30):
            await api.patch(f"{path}/one", {"data": {"a": str(index)}})
        version = first["metadata"]["resourceVersion"]
        async with api.watch(path, resourceVersion=version) as events:
            assert (await events.next())[1]["code"] == 410


async def test_it_runs_alone_and_stops_on_sigterm(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("tutti"),
        "cluster",
        "up",
        f"--kubeconfig={kubeconfig}",
        "--nodes=2",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith("tutti: embedded cluster at http://127.0.0.1:")
    async with connected(kubeconfig) as api:
        assert await api.names("/api/v1/nodes") == ["node-1", "node-2"]
        async with api.watch("/api/v1/nodes"):
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_what_is_not_served_is_refused_not_ignored(api: Client) -> None:
    path = f"{PODS}/one"
    await api.create(PODS, pod())
    for patch in (
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"spec": {"containers": [{"$patch": "replace"}]}},
    ):
        refused = await api.patch(path, patch, STRATEGIC_PATCH)
        assert (refused.status, refused.reason) == (400, "BadRequest")
    assert (await api.get(PODS, watch="1", sendInitialEvents="true")).reason == "Invalid"
    for policy in ("Foreground", "Orphan"):
        refused = await api.call("DELETE", path, {"propagationPolicy": policy})
        assert "propagationPolicy: Unsupported value" in refused.message
    assert await api.names(PODS) == ["one"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("podgroups.spec.minMember",), "FIELD: minMember <integer>"),
        (("pg",), "VERSION:    v1beta1"),
        (("vcjob.spec.tasks", "--recursive"), "replicas\t<integer>"),
        (("queues.scheduling.volcano.sh.spec.weight",), "FIELD: weight <integer>"),
    ],
)
async def test_kubectl_explains_kinds_that_crds_define(
    cluster: EmbeddedCluster, tmp_path: Path, words: tuple[str, ...], shown: str
) -> None:
    kubectl = Kubectl(cluster.kubeconfig(tmp_path / "kubeconfig"), tmp_path)
    assert shown in await kubectl("explain", *words)


async def test_the_openapi_document_of_a_group_goes_with_its_crd(api: Client) -> None:
    path = "/openapi/v3/apis/scheduling.volcano.sh/v1beta1"
    assert (
        "/apis/scheduling.volcano.sh/v1beta1/queues/{name}" in (await api.get(path)).body["paths"]
    )
    for name in ("podgroups", "queues"):
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await api.call("DELETE", f"{crds}/{name}.scheduling.volcano.sh")
    assert (await api.get(path)).status == 404
    for missing in ("/openapi/v3/api/v1", "/openapi/v3/apis/none/v1", "/openapi/v3/apis/"):
        assert (await api.get(missing)).status == 404


async def test_the_openapi_documents_of_aggregated_groups_are_listed_and_passed_on(
    api: Client,
) -> None:
    """`kubectl explain` reads them."""
    own = (await api.get("/openapi/v3")).body["paths"]
    place = {"namespace": "default", "name": "echo", "port": 1}
    registration = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.echo.example"},
        "spec": {"group": "echo.example", "version": "v1", "service": place}
        | {"groupPriorityMinimum": 1, "versionPriority": 1},
    }
    await api.create("/apis/apiregistration.k8s.io/v1/apiservices", registration)
    listed = (await api.get("/openapi/v3")).body["paths"]
    assert listed.keys() - own.keys() == {"apis/echo.example/v1"}
    passed_on = await api.get(listed["apis/echo.example/v1"]["serverRelativeURL"])
    assert passed_on.status == 503
    assert "its server does not answer" in passed_on.body["message"]
