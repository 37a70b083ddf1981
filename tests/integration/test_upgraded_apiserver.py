"""An API server that is upgraded by a minor, with the same etcd, under gangs that run and that
wait: the older minor serves Kubernetes' PodGroups in a version that the newer one does not know.

The newer minor cannot read objects of that version from etcd, so the test deletes them before the
upgrade, and creates them again after it. Tutti runs all the time.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from tests.controlplane.binaries import ensure_binaries
from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import APISERVER, WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.minors import MINORS, ensure_minor
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.integration, pytest.mark.timeout(900)]

BEFORE: Final = "scheduling.k8s.io/v1alpha2"
AFTER: Final = "scheduling.k8s.io/v1beta1"
#: The first condition in each version.
CONDITIONS: Final = {BEFORE: "PodGroupScheduled", AFTER: "PodGroupInitiallyScheduled"}
ARGS_BEFORE: Final = (
    "--feature-gates=GenericWorkload=true,GangScheduling=true",
    f"--runtime-config={BEFORE}=true",
)
ARGS_AFTER: Final = (
    "--feature-gates=GenericWorkload=true",
    f"--runtime-config={AFTER}=true,scheduling.k8s.io/v1alpha3=true",
)
#: Of the newer API server; a quiet machine needs five seconds.
START_S: Final = 180.0
#: After the upgrade, watches begin again.
UPGRADED_S: Final = 120.0


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One of the pinned minor, with the API."""
    options = ControlPlaneOptions(
        controllers=WORKLOAD_CONTROLLERS, apiserver_args=ARGS_BEFORE, start_timeout_s=START_S
    )
    with ControlPlane(options) as running:
        running.install_crds(CRDS_DIR)
        yield running


async def make_group(stage: Stage, name: str, version: str) -> None:
    """A gang of two pods."""
    manifest = {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    await stage.api.create(stage.group_path("", version), manifest)


async def make_pods(stage: Stage, group: str) -> None:
    """Two pods of a group, each with a node of its own."""
    named = {"schedulingGroup": {"podGroupName": group}}
    made = await stage.bare_pods(
        *(
            pod_manifest(
                f"{group}-{index}", requests={"cpu": "4"}, scheduler_name="tutti", spec=named
            )
            for index in range(2)
        )
    )
    assert all("schedulingGroup" in pod["spec"] for pod in made), "the gate is off"


async def delete_group(stage: Stage, name: str, version: str) -> None:
    """Delete a group although pods name it."""
    path = stage.group_path(name, version)
    await stage.api.patch(path, {"metadata": {"finalizers": None}})
    await stage.delete(path)


async def placed(stage: Stage, *names: str) -> dict[str, str]:
    """Wait until these pods, and no others, are on nodes."""

    async def all_placed() -> dict[str, str]:
        found = await stage.placed()
        assert sorted(found) == sorted(names)
        return found

    return await eventually(all_placed, timeout_s=UPGRADED_S, because=f"{names} are bound")


async def reports(stage: Stage, name: str, version: str, status: str, reason: str) -> Object:
    """Wait until a group has the first condition of its version."""

    async def reported() -> Object:
        found = await stage.seen_group(name, version)
        conditions = {one["type"]: one for one in found.get("status", {}).get("conditions", ())}
        one: Object = conditions.get(CONDITIONS[version], {})
        assert (one.get("status"), one.get("reason")) == (status, reason), conditions
        return one

    return await eventually(reported, timeout_s=UPGRADED_S, because=f"{name} is {reason}")


async def test_gangs_survive_the_upgrade(stage: Stage) -> None:
    await stage.nodes(2)
    await make_group(stage, "runs", BEFORE)
    await make_pods(stage, "runs")
    first = await placed(stage, "runs-0", "runs-1")
    await make_group(stage, "waits", BEFORE)
    await make_pods(stage, "waits")
    await stage.gang("volcano", 2, requests={"cpu": "4"})
    await reports(stage, "runs", BEFORE, "True", "Scheduled")
    await reports(stage, "waits", BEFORE, "False", "Unschedulable")
    await stage.waits("volcano", "NotEnoughResources")
    for name in ("runs", "waits"):
        await delete_group(stage, name, BEFORE)
    newest = ensure_binaries({"KUBEBUILDER_ASSETS": str(ensure_minor(MINORS[-1]))})
    await asyncio.to_thread(stage.control_plane.replace_apiserver, newest, ARGS_AFTER)
    assert stage.control_plane.runs(APISERVER)
    for name in ("runs", "waits"):
        await make_group(stage, name, AFTER)
    await reports(stage, "runs", AFTER, "True", "Scheduled")
    await reports(stage, "waits", AFTER, "False", "Unschedulable")
    assert await placed(stage, "runs-0", "runs-1") == first
    await stage.nodes(4, prefix="more-")
    gangs = ("runs", "volcano", "waits")
    await placed(stage, *(f"{gang}-{index}" for gang in gangs for index in range(2)))
    for name in ("runs", "waits"):
        await reports(stage, name, AFTER, "True", "Scheduled")
    await stage.why("pod/waits-0", "waits")
