"""The condition of Kubernetes' own PodGroups on a real API server: its first success is kept, and
a group of another scheduler's pods has none of Tutti's. Pods share the devices of their group's
claim.

The API's features are in tests/dialects.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

#: Of the pinned minor.
VERSION: Final = "scheduling.k8s.io/v1alpha2"
SCHEDULED: Final = "PodGroupScheduled"
DRA: Final = "/apis/resource.k8s.io/v1"
DRIVER: Final = "gpu.example.com"


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One that serves the API: behind gates of the pinned minor."""
    gates = (
        "DRAWorkloadResourceClaims",
        "GangScheduling",
        "GenericWorkload",
        "TopologyAwareWorkloadScheduling",
        "WorkloadAwarePreemption",
    )
    opened = f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"
    options = ControlPlaneOptions(
        controllers=WORKLOAD_CONTROLLERS,
        apiserver_args=(opened, f"--runtime-config={VERSION}=true"),
        # Its claims' controller creates the claims of groups.
        controller_manager_args=(opened,),
    )
    with ControlPlane(options) as running:
        running.install_crds(CRDS_DIR)
        yield running


async def make_group(stage: Stage, name: str, least: int, **spec: object) -> None:
    """A gang of at least so many pods."""
    manifest = {
        "apiVersion": VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}, **spec},
    }
    made = await stage.api.create(stage.group_path("", VERSION), manifest)
    assert made["spec"].keys() >= spec.keys(), "the gate is off"


async def make_pods(
    stage: Stage,
    group: str,
    *indices: int,
    scheduler_name: str = "tutti",
    cpu: str = "4",
    spec: Mapping[str, object] | None = None,
) -> None:
    """Pods of a group, by default each with a node of its own."""
    named = {"schedulingGroup": {"podGroupName": group}, **(spec or {})}
    made = await stage.bare_pods(
        *(
            pod_manifest(
                f"{group}-{index}",
                requests={"cpu": cpu},
                scheduler_name=scheduler_name,
                spec=named,
            )
            for index in indices
        )
    )
    assert all("schedulingGroup" in pod["spec"] for pod in made), "the gate is off"


async def placed(stage: Stage, count: int) -> None:
    """Wait until so many pods are on nodes."""

    async def all_placed() -> bool:
        found = await stage.placed()
        assert len(found) == count, f"{len(found)} are bound"
        return True

    await eventually(all_placed, timeout_s=SEEN_S, because=f"{count} pods are bound")


async def reports(stage: Stage, name: str, status: str, reason: str, words: str = "") -> Object:
    """Wait until a group has the condition, in these words."""

    async def reported() -> Object:
        found = await stage.seen_group(name, VERSION)
        conditions = {one["type"]: one for one in found.get("status", {}).get("conditions", ())}
        one: Object = conditions.get(SCHEDULED, {})
        assert (one.get("status"), one.get("reason")) == (status, reason), conditions
        assert words in one["message"], one
        return one

    return await eventually(reported, timeout_s=SEEN_S, because=f"{name} is {reason}")


async def test_a_gang_waits_for_its_minimum_and_its_first_success_is_kept(stage: Stage) -> None:
    await stage.nodes(3)
    await make_group(stage, "train", 3)
    await make_pods(stage, "train", 0, 1)
    await reports(stage, "train", "False", "Unschedulable", "2 of 3 members exist")
    assert not await stage.placed()
    await make_pods(stage, "train", 2)
    await placed(stage, 3)
    found = await reports(stage, "train", "True", "Scheduled")
    text = await stage.why("pod/train-0", "train")
    assert "not read here" not in text
    for name in ("train-0", "train-1", "train-2"):
        await stage.delete(stage.path(name=name))
    await make_pods(stage, "train", 3)
    await stage.pods_say("", 1)
    assert await reports(stage, "train", "True", "Scheduled") == found


async def test_the_group_of_kube_schedulers_pods_is_left_alone(stage: Stage) -> None:
    await make_group(stage, "theirs", 2)
    await make_pods(stage, "theirs", 0, 1, scheduler_name="default-scheduler")
    # Verdicts are debounced: one that begins after the other's is seen says that both are due.
    for name in ("first", "second"):
        await make_group(stage, name, 2)
        await make_pods(stage, name, 0)
        await reports(stage, name, "False", "Unschedulable", "1 of 2 members exist")
    found = await stage.seen_group("theirs", VERSION)
    assert not found.get("status", {}).get("conditions"), found
    assert not found["metadata"].get("annotations"), found


async def make_devices(stage: Stage, *nodes: str) -> None:
    """One device on each of these nodes, and a template of a claim for one."""
    name = stage.namespace
    only = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    device_class: Object = {"metadata": {"name": name}, "spec": {"selectors": [only]}}
    await stage.api.create(f"{DRA}/deviceclasses", device_class)
    for node in nodes:
        spec = {
            "driver": DRIVER,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node,
            "devices": [{"name": "gpu"}],
        }
        manifest: Object = {"metadata": {"name": f"{name}-{node}"}, "spec": spec}
        await stage.api.create(f"{DRA}/resourceslices", manifest)
    request = {"name": "gpu", "exactly": {"deviceClassName": name}}
    template = {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await stage.api.create(f"{DRA}/namespaces/{name}/resourceclaimtemplates", template)


async def test_the_pods_of_a_group_share_the_devices_of_its_claim(stage: Stage) -> None:
    """The claim belongs to the group, and is reserved for the pods that use it. So its devices are
    free, and may be others on another node, once no pod of the group is left.
    """
    await stage.nodes(2)
    await make_devices(stage, "node-0", "node-1")
    entries = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    await make_group(stage, "shared", 2, **entries)
    await make_pods(stage, "shared", 0, 1, cpu="1", spec=entries)
    await placed(stage, 2)
    (node,) = set((await stage.placed()).values())

    async def only_claim() -> Object:
        path = f"{DRA}/namespaces/{stage.namespace}/resourceclaims"
        (claim,) = (await stage.api.get(path))["items"]
        found: Object = claim
        return found

    claim = await only_claim()
    owner = await stage.seen_group("shared", VERSION)
    assert claim["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    users = sorted(one["name"] for one in claim["status"]["reservedFor"])
    assert users == ["shared-0", "shared-1"]
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert result["pool"] == node

    for name in users:
        await stage.delete(stage.path(name=name))

    async def deallocated() -> bool:
        status = (await only_claim()).get("status", {})
        assert not status.get("allocation"), status
        return True

    await eventually(deallocated, timeout_s=SEEN_S, because="no pod uses the claim")
    await stage.api.delete(f"/api/v1/nodes/{node}")
    await make_pods(stage, "shared", 2, 3, cpu="1", spec=entries)
    await placed(stage, 2)
    assert set((await stage.placed()).values()) == {"node-0", "node-1"} - {node}
    again = await only_claim()
    assert again["metadata"]["uid"] == claim["metadata"]["uid"]
    assert sorted(one["name"] for one in again["status"]["reservedFor"]) == ["shared-2", "shared-3"]
