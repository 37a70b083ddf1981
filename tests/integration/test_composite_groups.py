"""Trees of CompositePodGroups on the real API server that serves them: that of the newest minor."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.controlplane.binaries import ensure_binaries
from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.minors import MINORS, ensure_minor
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.integration, pytest.mark.timeout(600)]

GROUPS: Final = "scheduling.k8s.io/v1beta1"
COMPOSITES: Final = "scheduling.k8s.io/v1alpha3"
GATES: Final = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
ARGS: Final = (
    f"--feature-gates={','.join(f'{gate}=true' for gate in GATES)}",
    f"--runtime-config={GROUPS}=true,{COMPOSITES}=true",
)
#: Its caches know none of the API's new kinds; a quiet machine needs five seconds.
START_S: Final = 180.0
CONDITIONS: Final = {
    "podgroups": (GROUPS, "PodGroupInitiallyScheduled"),
    "compositepodgroups": (COMPOSITES, "CompositePodGroupInitiallyScheduled"),
}


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One of the newest minor, with the API."""
    options = ControlPlaneOptions(
        controllers=WORKLOAD_CONTROLLERS, apiserver_args=ARGS, start_timeout_s=START_S
    )
    binaries = ensure_binaries({"KUBEBUILDER_ASSETS": str(ensure_minor(MINORS[-1]))})
    with ControlPlane(options, binaries=binaries) as running:
        running.install_crds(CRDS_DIR)
        yield running


async def composite(stage: Stage, name: str, least: int, parent: str = "") -> None:
    """A group of groups, of which so many start together."""
    spec: dict[str, Any] = {
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "schedulingPolicy": {"gang": {"minGroupCount": least}},
    }
    if parent:
        spec["parentCompositePodGroupName"] = parent
    manifest = {
        "apiVersion": COMPOSITES,
        "kind": "CompositePodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }
    await stage.api.create(stage.path("compositepodgroups", version=COMPOSITES), manifest)


async def group(stage: Stage, name: str, least: int, parent: str, *, pods: int) -> None:
    """A PodGroup in a tree, and its pods; each takes a node."""
    spec = {
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "parentCompositePodGroupName": parent,
        "schedulingPolicy": {"gang": {"minCount": least}},
    }
    manifest = {
        "apiVersion": GROUPS,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }
    made = await stage.api.create(stage.group_path("", GROUPS), manifest)
    assert "parentCompositePodGroupName" in made["spec"], "the gate is off"
    named = {"schedulingGroup": {"podGroupName": name}}
    await stage.bare_pods(
        *(
            pod_manifest(
                f"{name}-{index}", requests={"cpu": "4"}, scheduler_name="tutti", spec=named
            )
            for index in range(pods)
        )
    )


async def placed(stage: Stage, *names: str) -> None:
    """Wait until these pods, and no others, are on nodes."""

    async def all_placed() -> bool:
        assert sorted(await stage.placed()) == sorted(names)
        return True

    await eventually(all_placed, timeout_s=SEEN_S, because=f"{names} are bound")


async def reports(
    stage: Stage, kind: str, name: str, status: str, reason: str, words: str = ""
) -> Object:
    """Wait until an object has the condition of its kind, in these words."""
    version, wanted = CONDITIONS[kind]

    async def reported() -> Object:
        found = await stage.api.get(stage.path(kind, name, version))
        conditions = {one["type"]: one for one in found.get("status", {}).get("conditions", ())}
        one: Object = conditions.get(wanted, {})
        assert (one.get("status"), one.get("reason")) == (status, reason), conditions
        assert words in one["message"], one
        return one

    return await eventually(reported, timeout_s=SEEN_S, because=f"{name} is {reason}")


async def test_a_tree_waits_whole_starts_whole_and_each_object_says_so(stage: Stage) -> None:
    await stage.nodes(3)
    await composite(stage, "all", 2)
    await composite(stage, "inner", 1, parent="all")
    await group(stage, "leader", 1, "all", pods=1)
    await group(stage, "workers", 3, "inner", pods=3)
    objects = (
        ("compositepodgroups", "all"),
        ("compositepodgroups", "inner"),
        ("podgroups", "leader"),
        ("podgroups", "workers"),
    )
    for kind, name in objects:
        await reports(stage, kind, name, "False", "Unschedulable", "more cpu needed")
    assert not await stage.placed()
    await stage.why("pod/leader-0", "more cpu needed")
    await stage.nodes(1, prefix="more-")
    await placed(stage, "leader-0", *(f"workers-{index}" for index in range(3)))
    for kind, name in objects:
        await reports(stage, kind, name, "True", "Scheduled")


async def test_groups_beyond_the_needed_ones_follow_as_a_whole(stage: Stage) -> None:
    await stage.nodes(3)
    await composite(stage, "all", 1)
    await group(stage, "one", 2, "all", pods=2)
    await group(stage, "two", 2, "all", pods=2)

    async def one_placed() -> str:
        found = [name.rpartition("-")[0] for name in await stage.placed()]
        assert len(found) == 2, found
        assert len(set(found)) == 1, found
        return found[0]

    first = await eventually(one_placed, timeout_s=SEEN_S, because="one group is bound")
    second = "two" if first == "one" else "one"
    await reports(stage, "podgroups", first, "True", "Scheduled")
    await reports(stage, "podgroups", second, "False", "Unschedulable")
    await reports(stage, "compositepodgroups", "all", "True", "Scheduled")
    await stage.nodes(1, prefix="more-")
    await reports(stage, "podgroups", second, "True", "Scheduled")


async def test_a_missing_parent_and_a_cycle_are_named_on_every_object(stage: Stage) -> None:
    await stage.nodes(1)
    await group(stage, "leaf", 1, "a", pods=1)
    await reports(stage, "podgroups", "leaf", "False", "Unschedulable", "a does not exist")
    await composite(stage, "a", 1, parent="b")
    await reports(stage, "podgroups", "leaf", "False", "Unschedulable", "b does not exist")
    await composite(stage, "b", 1, parent="a")
    for name in ("a", "b"):
        await reports(stage, "compositepodgroups", name, "False", "Invalid", "a → b → a")
    await reports(stage, "podgroups", "leaf", "False", "SchedulerError", "a → b → a")
    assert not await stage.placed()
