"""Upgrade from a former version of Tutti, and rollback, over the same streams in NATS.

Nothing is released yet, so the former version is a commit: the one on which issue 15 was certified.
"""

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape, create_nodes
from tests.support.waiting import eventually
from tests.tutti.up.gangs import bound, make_gang, placed
from tests.tutti.up.running import suite

pytestmark = [
    pytest.mark.certify,
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

ROOT: Final = Path(__file__).parents[3]
FORMER: Final = "8ade8fce33a8"


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """The source tree of the former version."""
    packed = subprocess.run(
        ("git", "archive", FORMER, "services", "shared", "tutti", "deploy"),
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=60,
    )
    if packed.returncode:
        pytest.skip(f"this clone does not have commit {FORMER}: {packed.stderr.decode().strip()}")
    folder = tmp_path / "former"
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


async def nodes_of(api: RawClient, namespace: str, gang: str) -> dict[str, tuple[str, str]]:
    """Pod -> its UID and node, of the pods of a gang."""
    pods = (await api.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"].get("nodeName", ""))
        for pod in pods
        if pod["metadata"]["name"].startswith(f"{gang}-")
    }


async def waits(api: RawClient, namespace: str, gang: str) -> None:
    """Wait until the PodGroup of a gang says that capacity is short."""
    path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/{gang}"

    async def explained() -> bool:
        conditions = (await api.get(path)).get("status", {}).get("conditions", [])
        return any(one.get("reason") == "NotEnoughResources" for one in conditions)

    await eventually(explained, timeout_s=20.0, because=f"{gang} has a reason")


async def free(api: RawClient, namespace: str, gang: str) -> None:
    for name in await placed(api, namespace, gang):
        await api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", {"gracePeriodSeconds": 0})


async def test_gangs_keep_their_nodes_and_their_turn_over_an_upgrade_and_a_rollback(
    api: RawClient,
    namespace: str,
    empty_cluster: None,
    control_plane: ControlPlane,
    former: Path,
    tmp_path: Path,
) -> None:
    kubeconfig = control_plane.admin_kubeconfig
    await create_nodes(api, 1, NodeShape(cpu_milli=4_000))
    folder = tmp_path / "suite"

    async with suite(kubeconfig, folder, source=former) as running:
        await running.wait_ready()
        await make_gang(api, namespace, "first")
        await bound(api, namespace, "first")
        before = await nodes_of(api, namespace, "first")
        await make_gang(api, namespace, "second")
        await waits(api, namespace, "second")

    async with suite(kubeconfig, folder) as running:
        await running.wait_ready()
        await waits(api, namespace, "second")
        assert await placed(api, namespace, "second") == []
        assert await nodes_of(api, namespace, "first") == before
        await free(api, namespace, "first")
        await bound(api, namespace, "second")
        before = await nodes_of(api, namespace, "second")
        await make_gang(api, namespace, "third")
        await waits(api, namespace, "third")

    async with suite(kubeconfig, folder, source=former) as running:
        await running.wait_ready()
        assert await placed(api, namespace, "third") == []
        assert await nodes_of(api, namespace, "second") == before
        await free(api, namespace, "second")
        await bound(api, namespace, "third")
