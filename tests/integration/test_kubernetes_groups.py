"""The condition of Kubernetes' own PodGroups on a real API server: its first success is kept, and
a group of another scheduler's pods has none of Tutti's.

The API's features are in tests/dialects.
"""

from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One that serves the API: behind gates of the pinned minor."""
    gates = (
        "GangScheduling",
        "GenericWorkload",
        "TopologyAwareWorkloadScheduling",
        "WorkloadAwarePreemption",
    )
    options = ControlPlaneOptions(
        controllers=WORKLOAD_CONTROLLERS,
        apiserver_args=(
            f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}",
            f"--runtime-config={VERSION}=true",
        ),
    )
    with ControlPlane(options) as running:
        running.install_crds(CRDS_DIR)
        yield running


async def make_group(stage: Stage, name: str, least: int) -> None:
    """A gang of at least so many pods."""
    manifest = {
        "apiVersion": VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }
    await stage.api.create(stage.group_path("", VERSION), manifest)


async def make_pods(stage: Stage, group: str, *indices: int, scheduler_name: str = "tutti") -> None:
    """Pods of a group, each with a node of its own."""
    named = {"schedulingGroup": {"podGroupName": group}}
    made = await stage.bare_pods(
        *(
            pod_manifest(
                f"{group}-{index}",
                requests={"cpu": "4"},
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
