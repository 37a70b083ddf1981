"""Gangs of Kubernetes' own PodGroups on a real API server, in the version that it serves.

Pods and groups are written as their users write them, apart from the scheduler's name.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

SUITE_FLAGS: Final = (
    "--no-webhook",
    f"--scheduler-conf={Path(__file__).with_name('preempting.yaml')}",
)
#: Of the pinned minor.
VERSION: Final = "scheduling.k8s.io/v1alpha2"
SCHEDULED: Final = "PodGroupScheduled"
WHOLE: Final = {"cpu": "4"}


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One that serves the API: behind gates of the pinned minor."""
    gates = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption")
    options = ControlPlaneOptions(
        controllers=WORKLOAD_CONTROLLERS,
        apiserver_args=(
            f"--feature-gates={','.join(f'{gate}=true' for gate in (*gates, 'GangScheduling'))}",
            f"--runtime-config={VERSION}=true",
        ),
    )
    with ControlPlane(options) as running:
        running.install_crds(CRDS_DIR)
        yield running


async def make_group(
    stage: Stage, name: str, least: int | None, *, notes: Any = None, **spec: Any
) -> None:
    """A gang of at least so many pods; None: with the policy `basic`."""
    policy: Object = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    manifest = {
        "apiVersion": VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "annotations": notes or {}},
        "spec": {"schedulingPolicy": policy, **spec},
    }
    await stage.api.create(stage.group_path("", VERSION), manifest)


async def make_pods(
    stage: Stage,
    group: str,
    *indices: int,
    scheduler_name: str = "tutti",
    requests: Mapping[str, str] = WHOLE,
    **spec: Any,
) -> None:
    """Pods of a group."""
    named = {"schedulingGroup": {"podGroupName": group}, **spec}
    made = await stage.bare_pods(
        *(
            pod_manifest(
                f"{group}-{index}",
                requests=requests,
                scheduler_name=scheduler_name,
                labels={"group": group},
                spec=named,
            )
            for index in indices
        )
    )
    assert all("schedulingGroup" in pod["spec"] for pod in made), "the gate is off"


async def placed(stage: Stage, group: str, count: int) -> dict[str, str]:
    """Wait until so many pods of a group are on nodes: node by pod."""

    async def all_placed() -> dict[str, str]:
        found = {pod: node for pod, node in (await stage.placed()).items() if _of(pod) == group}
        assert len(found) == count, f"{len(found)} of {group} are bound"
        return found

    return await eventually(all_placed, timeout_s=SEEN_S, because=f"{group} is bound")


def _of(pod: str) -> str:
    return pod.rpartition("-")[0]


async def reports(
    stage: Stage, name: str, status: str, reason: str, words: str = "", *, kind: str = SCHEDULED
) -> Object:
    """Wait until a group has this condition, in these words."""

    async def reported() -> Object:
        found = await stage.seen_group(name, VERSION)
        conditions = {one["type"]: one for one in found.get("status", {}).get("conditions", ())}
        one: Object = conditions.get(kind, {})
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
    await placed(stage, "train", 3)
    found = await reports(stage, "train", "True", "Scheduled")
    text = await stage.why("pod/train-0", "train")
    assert "not read here" not in text
    for name in ("train-0", "train-1", "train-2"):
        await stage.delete(stage.path(name=name))
    await make_pods(stage, "train", 3)
    await stage.pods_say("", 1)
    assert await reports(stage, "train", "True", "Scheduled") == found


async def test_pods_of_a_missing_group_wait_until_it_exists(stage: Stage) -> None:
    await stage.nodes(2)
    await make_pods(stage, "late", 0, 1)
    (first, _) = await stage.pods_say("", 2)
    assert "podgroups.scheduling.k8s.io" in first["message"]
    assert "late does not exist" in first["message"]
    await make_group(stage, "late", 2)
    await placed(stage, "late", 2)


async def test_a_group_of_another_api_with_the_same_name_is_another_gang(stage: Stage) -> None:
    await stage.nodes(4)
    await make_group(stage, "same", 2)
    await stage.group("same", 2)
    await make_pods(stage, "same", 0)
    await stage.members("same", 1, prefix="volcanos")
    await stage.waits("same", "NotEnoughPods")
    await reports(stage, "same", "False", "Unschedulable")
    assert not await stage.placed()
    await make_pods(stage, "same", 1)
    await placed(stage, "same", 2)
    assert not await stage.placed("same"), "Volcano's gang still waits"
    await stage.members("same", 1, prefix="volcanos-last")
    await stage.bound("same", 2)


async def test_each_pod_of_a_basic_group_is_placed_by_itself(stage: Stage) -> None:
    await stage.nodes(1)
    await make_group(stage, "loose", None)
    await make_pods(stage, "loose", 0, 1)
    await placed(stage, "loose", 1)
    await reports(stage, "loose", "True", "Scheduled")


async def test_a_topology_key_keeps_the_gang_together(stage: Stage) -> None:
    await stage.nodes(1, prefix="a-", labels={"rack": "a"})
    await stage.nodes(2, prefix="b-", labels={"rack": "b"})
    await make_group(stage, "near", 2, schedulingConstraints={"topology": [{"key": "rack"}]})
    await make_pods(stage, "near", 0, 1)
    nodes = await placed(stage, "near", 2)
    assert {node[0] for node in nodes.values()} == {"b"}


async def test_pods_with_different_schedulers_are_an_error_of_the_group(stage: Stage) -> None:
    await make_group(stage, "mixed", 2)
    await make_pods(stage, "mixed", 0)
    await make_pods(stage, "mixed", 1, scheduler_name="volcano")
    await reports(stage, "mixed", "False", "SchedulerError", "different schedulers")
    await stage.nodes(2)
    await stage.delete(stage.path(name="mixed-1"))
    await make_pods(stage, "mixed", 2)
    await placed(stage, "mixed", 2)


@pytest.fixture
async def classes(api: RawClient) -> AsyncIterator[None]:
    """Priority classes `g-low` and `g-high`."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name, value in (("g-low", 10), ("g-high", 1000)):
        await api.create(path, {"metadata": {"name": name}, "value": value})
    yield
    for name in ("g-low", "g-high"):
        await api.delete(f"{path}/{name}", {})


@pytest.mark.usefixtures("classes")
async def test_a_gang_that_is_preempted_is_a_target_of_disruption(stage: Stage) -> None:
    await stage.nodes(2)
    await make_group(stage, "low", 2, priorityClassName="g-low", disruptionMode="PodGroup")
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 1}
    await make_pods(stage, "low", 0, 1, priorityClassName="g-low", **spec)
    await placed(stage, "low", 2)
    await reports(stage, "low", "True", "Scheduled")
    await make_group(stage, "high", 1, priorityClassName="g-high")
    await make_pods(stage, "high", 0, priorityClassName="g-high", **spec)
    await placed(stage, "high", 1)
    assert not {pod for pod in await stage.placed() if _of(pod) == "low"}, "all of it is evicted"
    await reports(stage, "low", "True", "PreemptionByScheduler", kind="DisruptionTarget")
    await reports(stage, "low", "True", "Scheduled")
