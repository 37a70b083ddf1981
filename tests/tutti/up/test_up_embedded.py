"""`tutti up` on the embedded cluster: what needs a cluster of its own."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.nodes import pod_manifest
from tests.support.waiting import eventually
from tests.tutti.up.gangs import bound, make_gang, placed
from tests.tutti.up.running import TUTTI, suite, tutti
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.manifests.crds import default_names, manifests

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(90)]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "podgroups.scheduling.volcano.sh"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
#: Labels of a namespace that asks for gangs of all objects in it.
ASKS = {"tutti.dev/gang": "all"}


def shipped(name: str) -> dict[str, Any]:
    return next(each for each in manifests() if each["metadata"]["name"] == name)


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """Without any CRD of ours."""
    async with EmbeddedCluster(Settings(nodes=2)) as running:
        yield running


@pytest.fixture
def kubeconfig(cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    return cluster.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[RawClient]:
    async with RawClient(kubeconfig) as opened:
        yield opened


async def test_a_dialect_without_its_crd_sleeps_until_the_crd_appears(
    client: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path / "up") as running:
        await running.wait_ready()
        with pytest.raises(ApiError, match="404"):
            await make_gang(client, "default", "early", members=0)
        crd = shipped(GROUP)
        await client.create(CRDS, crd)
        await make_gang(client, "default", "train")
        await bound(client, "default", "train")
        assert not running.errors


async def test_a_namespace_asks_for_gangs_of_its_jobs(
    client: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    await client.create(CRDS, shipped(GROUP))
    await client.patch("/api/v1/namespaces/default", {"metadata": {"labels": ASKS}})
    spec = {"parallelism": 3, "template": {"spec": pod_manifest("p")["spec"]}}
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    async with suite(kubeconfig, tmp_path / "up", "--no-webhook") as running:
        await running.wait_ready()
        uids: dict[str, str] = {}
        for name, notes in (("train", {}), ("single", {"tutti.dev/gang": "none"})):
            metadata = {"name": name, "annotations": notes}
            job = await client.create(JOBS, {"metadata": metadata, "spec": spec})
            uids[name] = job["metadata"]["uid"]
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
            for n in range(2):
                pod = pod_manifest(f"{name}-{n}", owner={**owner, "uid": uids[name]})
                await client.create("/api/v1/namespaces/default/pods", pod)
        await bound(client, "default", "single", 2)

        async def sizes() -> dict[str, int]:
            found = (await client.get(groups))["items"]
            return {one["metadata"]["name"]: one["spec"]["minMember"] for one in found}

        async def are_made() -> bool:
            wanted = {f"podgroup-{uids['train']}": 3, f"podgroup-{uids['single']}": 1}
            return await sizes() == wanted

        await eventually(are_made)
        assert await placed(client, "default", "train") == [], "one of three pods is missing"


async def test_install_crds_makes_them_all_and_leaves_those_that_are_not_ours(
    client: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    theirs = shipped(GROUP)
    theirs["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    await client.create(CRDS, theirs)
    flags = ("--install-crds", "--no-webhook")
    async with suite(kubeconfig, tmp_path / "up", *flags) as running:
        await running.wait_ready()
        assert running.errors.strip() == (
            f"tutti: CRDs of another product are not changed: {GROUP}"
        )
        found = {each["metadata"]["name"]: each for each in (await client.get(CRDS))["items"]}
        assert set(found) == default_names()
        assert found[GROUP]["metadata"]["labels"] == theirs["metadata"]["labels"]
        queue = "queues.scheduling.volcano.sh"
        assert found[queue]["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tutti"
        await make_gang(client, "default", "train")
        await bound(client, "default", "train")


async def test_tutti_cluster_up_serves_our_crds_and_the_suite_runs_on_it(tmp_path: Path) -> None:
    """The two commands of a user without a cluster."""
    kubeconfig = tmp_path / "embedded.kubeconfig"
    process = await asyncio.create_subprocess_exec(
        *(
            str(TUTTI),
            "cluster",
            "up",
            f"--kubeconfig={kubeconfig}",
            "--nodes=2",
            "--node-label=gpu=a",
        ),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        assert line.startswith("tutti: embedded cluster at http://127.0.0.1:")
        async with (
            RawClient(kubeconfig) as client,
            suite(kubeconfig, tmp_path / "up") as running,
        ):
            await running.wait_ready()
            nodes = (await client.get("/api/v1/nodes"))["items"]
            assert [node["metadata"]["labels"]["gpu"] for node in nodes] == ["a", "a"]
            await make_gang(client, "default", "train")
            await bound(client, "default", "train")

            async def state() -> str:
                arguments = ("why", "pod/train-0", "-o", "json", f"--kubeconfig={kubeconfig}")
                _, text, _ = await tutti(*arguments)
                return str(json.loads(text)["state"])

            async def runs() -> bool:
                return await state() == "running"

            await eventually(runs)
    finally:
        process.terminate()
        assert await process.wait() == 0
