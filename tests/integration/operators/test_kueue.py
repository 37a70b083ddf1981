"""Kueue on a real cluster: it admits Jobs and plain pod groups by quota, and Tutti binds them."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from typing_extensions import override

from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import GPU, MANAGED_BY
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.kueue import running_kueue
from tests.integration.operators.examples import NAME, Example, example_of
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.remains import nothing_remains
from tests.integration.operators.scenarios import EARLIER, MEMBERS, Scenarios
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

VERSION: Final = "kueue.x-k8s.io/v1beta1"
WORKLOADS: Final = ("workloads", VERSION)
RACK: Final = "example.com/rack"
#: Of the answer for what the page's LocalQueue has not admitted.
NOT_ADMITTED: Final = "Kueue's LocalQueue team has not admitted it"
#: Kinds of the objects that the tests make for Kueue, in the order of their deletion.
CLUSTER_WIDE: Final = ("clusterqueues", "resourceflavors", "topologies", "workloadpriorityclasses")
CLUSTER_QUEUE: Final = f"/apis/{VERSION}/clusterqueues/gpus"
JOBS: Final = ManagedKind(
    word="job", plural="jobs", version="batch/v1", name_label="batch.kubernetes.io/job-name"
)
POD_GROUPS: Final = ManagedKind(
    word="gang", plural="pods", version="v1", name_label="kueue.x-k8s.io/pod-group-name"
)


@pytest.fixture(scope="module", autouse=True)
def kinds(kueue_operator: BuiltOperator, control_plane: ControlPlane) -> None:
    """The garbage collector looks for new kinds twice a minute: they are served early."""
    control_plane.install_crds(kueue_operator.crds)


class KueueSets(ManagedSets):
    """Jobs or pod groups that Kueue admits."""

    async def offer(self, gpus: int) -> None:
        """Let the page's ClusterQueue offer this number of GPUs."""
        quota = [{"name": "cpu", "nominalQuota": "8"}, {"name": GPU, "nominalQuota": str(gpus)}]
        group = {
            "coveredResources": ["cpu", GPU],
            "flavors": [{"name": "any", "resources": quota}],
        }
        await self.stage.api.patch(CLUSTER_QUEUE, {"spec": {"resourceGroups": [group]}})

    async def activate(self, name: str, *, active: bool) -> None:
        """Stop or resume the workload of a Job."""
        path = self.stage.path("workloads", version=VERSION)
        (workload,) = [
            each["metadata"]["name"]
            for each in (await self.stage.api.get(path))["items"]
            if each["metadata"]["ownerReferences"][0]["name"] == name
        ]
        await self.stage.api.patch(f"{path}/{workload}", {"spec": {"active": active}})

    async def use_up_quota(self, scenarios: Scenarios, *, nodes: int) -> None:
        """`earlier` runs, and has all of the quota, on so many nodes with one GPU each."""
        await self.stage.nodes(nodes, extended={GPU: 1})
        await self.offer(MEMBERS)
        await scenarios.create(EARLIER)
        await self.wait_bound(EARLIER, MEMBERS)

    async def preempt(self, scenarios: Scenarios) -> None:
        """`train` is urgent: Kueue takes the quota from `earlier`, of which nothing stays bound."""
        await self.use_up_quota(scenarios, nodes=MEMBERS)
        await self.create_urgent(scenarios.example)
        await self.wait_bound(NAME, MEMBERS)
        assert not await self.placed(EARLIER)

    async def create_urgent(self, example: Example) -> None:
        """Create the page's workload with a priority above that of workloads without one."""
        await self._create_for_cluster("WorkloadPriorityClass", "urgent", {"value": 1000})
        for manifest in example.objects(NAME):
            manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "urgent"
            await self.create(manifest)

    async def arrange_racks(self) -> None:
        """Let the nodes of the page's flavor be in racks."""
        levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
        await self._create_for_cluster("Topology", "racks", {"spec": {"levels": levels}})
        flavor = {"spec": {"nodeLabels": MANAGED_BY, "topologyName": "racks"}}
        await self.stage.api.patch(f"/apis/{VERSION}/resourceflavors/any", flavor)

    async def _create_for_cluster(self, kind: str, name: str, fields: Object) -> None:
        manifest = {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, **fields}
        await self.stage.created(manifest)


class PodGroups(KueueSets):
    """Plain pods with the label of a group: the group has no object but Kueue's Workload."""

    @override
    async def delete(self, name: str, propagation: str = "Background") -> None:
        """Delete the Workload. Pods that a user deletes stay, ended, for their replacements."""
        await self.stage.delete(self.stage.path("workloads", name, VERSION))


@pytest.fixture
def at_work(
    kueue_operator: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> tuple[AbstractAsyncContextManager[object], ...]:
    """Kueue, and then the page's queues."""
    operator = running_kueue(kueue_operator, control_plane, stage.api, tmp_path)
    return operator, page_queues(stage)


@asynccontextmanager
async def page_queues(stage: Stage) -> AsyncIterator[None]:
    """Create them, and wait at the end until Kueue has let them go."""
    objects = example_of("kueue", "queue.yaml").objects(NAME)
    await stage.created({"apiVersion": "v1", "kind": "List", "items": objects})
    yield
    of_cluster = [f"/apis/{VERSION}/{plural}" for plural in CLUSTER_WIDE]
    for path in (stage.path("localqueues", version=VERSION), *of_cluster):
        await stage.api.delete(path)
        await eventually(partial(_is_empty, stage, path), because=f"{path} is empty")


async def _is_empty(stage: Stage, path: str) -> bool:
    return not (await stage.api.get(path))["items"]


@pytest.fixture
async def jobs(
    stage: Stage, at_work: tuple[AbstractAsyncContextManager[object], ...]
) -> AsyncIterator[KueueSets]:
    """Batch Jobs behind Kueue."""
    found = KueueSets(stage, JOBS)
    async with found.operated(*at_work):
        yield found


@pytest.fixture
async def groups(
    stage: Stage, at_work: tuple[AbstractAsyncContextManager[object], ...]
) -> AsyncIterator[PodGroups]:
    """Plain pod groups behind Kueue."""
    found = PodGroups(stage, POD_GROUPS)
    async with found.operated(*at_work):
        yield found
        await stage.api.delete(stage.path("workloads", version=VERSION))


def scenarios_of(sets: ManagedSets) -> Scenarios:
    file = "pods.yaml" if sets.kind is POD_GROUPS else "train.yaml"
    return Scenarios(sets, example_of("kueue", file), collections=[WORKLOADS])


async def test_of_two_admitted_jobs_on_four_gpus_the_second_waits_whole_until_the_first_is_deleted(
    jobs: KueueSets,
) -> None:
    scenarios = scenarios_of(jobs)
    await scenarios.one_runs_and_one_waits()
    await scenarios.the_other_runs_then(jobs.delete)


async def test_of_two_admitted_pod_groups_the_second_waits_whole_until_the_first_is_deleted(
    groups: PodGroups,
) -> None:
    scenarios = scenarios_of(groups)
    await scenarios.one_runs_and_one_waits()
    await scenarios.the_other_runs_then(groups.delete)


async def test_an_admitted_jobs_pod_that_dies_gets_its_place_back_although_another_job_waits(
    jobs: KueueSets,
) -> None:
    scenarios = scenarios_of(jobs)
    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(recreated=1)


async def test_a_pod_that_replaces_a_dead_one_of_its_group_gets_the_place_although_another_waits(
    groups: PodGroups,
) -> None:
    """No controller makes plain pods again: the user does. Kueue removes the gate at once."""

    async def fail() -> str:
        uid = await groups.fail_one(EARLIER)
        # Kueue deletes a replacement that is there before the dead pod has ended.
        await groups.wait_running(EARLIER, MEMBERS - 1)
        replacement = example_of("kueue", "pods.yaml").objects(EARLIER)[0]
        replacement["metadata"]["name"] = f"{EARLIER}-again"
        await groups.create(replacement)
        return uid

    scenarios = scenarios_of(groups)
    await scenarios.one_runs_and_one_waits()
    await scenarios.a_dead_worker_is_replaced_in_its_place(fail, recreated=1)


async def test_a_job_whose_workload_is_stopped_makes_way_and_waits_whole_when_it_is_resumed(
    jobs: KueueSets,
) -> None:
    """`kueuectl stop workload` sets the field: Kueue takes the quota and suspends the Job."""
    scenarios = scenarios_of(jobs)
    await scenarios.one_runs_and_one_waits()
    await jobs.activate(EARLIER, active=False)
    await jobs.wait_bound(NAME, MEMBERS)
    assert not await jobs.placed(EARLIER)
    await jobs.stage.why(f"job/{EARLIER}", NOT_ADMITTED)
    await jobs.activate(EARLIER, active=True)
    await jobs.wait_pods(EARLIER, MEMBERS)
    await jobs.stage.why(f"job/{EARLIER}", f"job/{EARLIER} waits: ", GPU)
    assert await jobs.placed(NAME) == MEMBERS
    await jobs.delete(NAME)
    await jobs.wait_bound(EARLIER, MEMBERS)


async def test_a_job_without_quota_waits_for_kueue_although_the_nodes_are_free(
    jobs: KueueSets,
) -> None:
    await jobs.use_up_quota(scenarios_of(jobs), nodes=2 * MEMBERS)
    await scenarios_of(jobs).create(NAME)
    await jobs.stage.why(f"job/{NAME}", f"Job {NAME} is suspended: ", NOT_ADMITTED)
    assert not await jobs.pods(NAME)
    await jobs.delete(EARLIER)
    await jobs.wait_bound(NAME, MEMBERS)


async def test_a_pod_group_without_quota_waits_for_kueue_although_the_nodes_are_free(
    groups: PodGroups,
) -> None:
    await groups.use_up_quota(scenarios_of(groups), nodes=2 * MEMBERS)
    await scenarios_of(groups).create(NAME)
    await groups.stage.why(f"gang/{NAME}", f"gang/{NAME} waits: ", NOT_ADMITTED)
    assert not await groups.placed(NAME)
    await groups.delete(EARLIER)
    await groups.wait_bound(NAME, MEMBERS)


async def test_a_job_that_kueue_preempts_leaves_nothing_bound(jobs: KueueSets) -> None:
    await jobs.preempt(scenarios_of(jobs))
    await jobs.stage.why(f"job/{EARLIER}", NOT_ADMITTED)
    await jobs.delete(NAME)
    await jobs.wait_bound(EARLIER, MEMBERS)


async def test_a_pod_group_that_kueue_preempts_leaves_nothing_bound(groups: PodGroups) -> None:
    """Kueue deletes its pods, and its user would create them again."""
    await groups.preempt(scenarios_of(groups))


async def test_a_job_is_bound_whole_to_the_rack_that_kueue_chose(jobs: KueueSets) -> None:
    """Kueue's topology-aware scheduling gates the pods of an admitted Job, and ungates each with
    its node selector.
    """
    stage = jobs.stage
    for rack in ("a", "b"):
        await stage.nodes(MEMBERS, f"{rack}-", extended={GPU: 1}, labels={RACK: rack})
    await jobs.arrange_racks()
    manifest = example_of("kueue").objects(NAME)[0]
    manifest["spec"]["template"]["metadata"] = {
        "annotations": {"kueue.x-k8s.io/podset-required-topology": RACK}
    }
    await jobs.create(manifest)
    await jobs.wait_bound(NAME, MEMBERS)
    racks = {node.partition("-")[0] for node in (await jobs.places(NAME)).values()}
    assert len(racks) == 1, racks
    await jobs.delete(NAME)
    await nothing_remains(stage, WORKLOADS)
