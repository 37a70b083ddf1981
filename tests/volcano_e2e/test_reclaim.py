"""Volcano's e2e/schedulingaction, reclaim.go and guarantee.go: what queues take back, what not."""

import pytest

from tests.controlplane.client import ApiError, Object
from tests.controlplane.nodes import pod_manifest
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import SEEN_S, Cluster
from tests.volcano_e2e.manifests import queue
from tests.volcano_e2e.scheduling import (
    HIGH,
    LOW,
    alike,
    conf,
    never_runs,
    phases,
    priorities,
    queues,
    running,
)

#: The first case waits for the control plane, too.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


async def cluster_of(bare: Cluster, nodes: int, cpus: int = 1, quota: str = "proportion") -> None:
    """So many nodes, the configuration, and the priority classes."""
    await bare.nodes(nodes, cpu_milli=cpus * 1000)
    await bare.configure(conf(quota=quota))
    await priorities(bare)


async def one_each(cluster: Cluster, *names: str, priority: str = "") -> list[Object]:
    """A Job of one pod in each of these queues, which runs."""
    made: list[Object] = []
    for index, name in enumerate(names, start=1):
        one = alike(f"reclaim-j{index}", 1, at=name, priority=priority)
        made.append(await cluster.create(one))
        await cluster.pods_run(made[-1], 1)
    return made


async def counted(cluster: Cluster, at: str, **wanted: int) -> None:
    """Wait until so many groups of a queue are in these phases."""

    async def there() -> bool:
        found = await phases(cluster, at)
        assert all(found.get(phase, 0) == count for phase, count in wanted.items()), found
        return True

    await eventually(there, timeout_s=SEEN_S, because=f"groups of {at}: {wanted}")


@pytest.mark.certify
async def test_a_new_queue_takes_nothing_back_where_there_is_room(bare: Cluster) -> None:
    await cluster_of(bare, 4)
    await queues(bare, reclaim_q2=0)
    await one_each(bare, "default", "reclaim-q2")
    await queues(bare, reclaim_q3=0)
    made = await bare.create(alike("reclaim-j3", 1, at="reclaim-q3"))
    await bare.pods_run(made, 1)
    for name in ("default", "reclaim-q2", "reclaim-q3"):
        await counted(bare, name, Running=1)


@pytest.mark.certify
@pytest.mark.parametrize(("theirs", "mine"), [("", ""), (HIGH, LOW)])
async def test_a_job_in_a_queue_that_is_missing_is_refused(
    bare: Cluster, theirs: str, mine: str
) -> None:
    await cluster_of(bare, 3)
    await queues(bare, reclaim_q2=0)
    await one_each(bare, "default", "reclaim-q2", priority=theirs)
    with pytest.raises(ApiError, match="queue"):
        await bare.create(alike("reclaim-j3", 1, at="reclaim-q3", priority=mine))
    for name in ("default", "reclaim-q2"):
        await counted(bare, name, Running=1)


@pytest.mark.certify
async def test_a_queue_with_its_share_takes_nothing_back(bare: Cluster) -> None:
    await cluster_of(bare, 3)
    await queues(bare, reclaim_q2=0, reclaim_q3=0)
    made = await one_each(bare, "default", "reclaim-q2", "reclaim-q3")
    late = await bare.create(alike("reclaim-j4", 1, at="reclaim-q3"))
    await never_runs(bare, late)
    assert [await running(bare, one) for one in made] == [1, 1, 1]
    await counted(bare, "reclaim-q3", Running=1, Inqueue=1)


@pytest.mark.certify
async def test_what_fits_no_node_takes_nothing_back_and_is_in_the_queue(bare: Cluster) -> None:
    await cluster_of(bare, 3)
    await queues(bare, reclaim_q2=0, reclaim_q3=0)
    made = await one_each(bare, "default", "reclaim-q2")
    late = await bare.create(alike("reclaim-j4", 1, cpu="4", at="reclaim-q3"))
    await never_runs(bare, late)
    assert [await running(bare, one) for one in made] == [1, 1]
    await counted(bare, "reclaim-q3", Inqueue=1)


@pytest.mark.certify
async def test_queues_that_are_not_reclaimable_run_on_beside_a_new_one(bare: Cluster) -> None:
    await cluster_of(bare, 3)
    await queues(bare, reclaim_q2=0)
    await one_each(bare, "default", "reclaim-q2")
    await queues(bare, reclaim_q3=0)
    for name in ("default", "reclaim-q2"):
        await bare.patch("Queue", name, {"spec": {"reclaimable": False}})
    try:
        made = await bare.create(alike("reclaim-j3", 1, at="reclaim-q3"))
        await bare.pods_run(made, 1)
        for name in ("default", "reclaim-q2", "reclaim-q3"):
            await counted(bare, name, Running=1)
    finally:
        await bare.patch("Queue", "default", {"spec": {"reclaimable": True}})


async def four_nodes_as_there(bare: Cluster) -> None:
    """What their tests run on: of four nodes pods of another scheduler leave one CPU each, and
    there is a control plane's node that no Job's pod may enter.
    """
    await cluster_of(bare, 4, 4)
    control = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    await bare.nodes(1, "control-", cpu_milli=8000, taints=[control])
    for at in range(4):
        there = {"nodeName": f"worker-{at}", "terminationGracePeriodSeconds": 0}
        placeholder = pod_manifest(
            f"placeholder-{at}",
            requests={"cpu": "3"},
            scheduler_name="default-scheduler",
            spec=there,
        )
        await bare.create(placeholder)


async def test_two_new_queues_take_their_shares_of_two_that_hold_more(bare: Cluster) -> None:
    await four_nodes_as_there(bare)
    await queues(bare, reclaim_q2=0, reclaim_q3=0, reclaim_q4=0)
    for name, at in (("reclaim-j1", "default"), ("reclaim-j2", "reclaim-q2")):
        made = await bare.create(alike(name, 2, least=1, at=at, priority=LOW))
        await bare.job_runs(made)
    for name, at in (("reclaim-j3", "reclaim-q3"), ("reclaim-j4", "reclaim-q4")):
        made = await bare.create(alike(name, 1, at=at, priority=HIGH))
        await bare.pods_run(made, 1)
    for name in ("default", "reclaim-q2", "reclaim-q3", "reclaim-q4"):
        await counted(bare, name, Running=1)


async def test_capacity_takes_back_what_queues_declare_to_deserve(bare: Cluster) -> None:
    await cluster_of(bare, 4, 2, "capacity")
    await queues(bare, reclaim_q1=1, reclaim_q2=1, reclaim_q3=2, reclaim_q4=4)
    for name, at in (("reclaim-j1", "reclaim-q1"), ("reclaim-j2", "reclaim-q2")):
        made = await bare.create(alike(name, 4, least=1, at=at, priority=LOW))
        await bare.pods_run(made, 4)
    coming = (("j3", "2", "q3"), ("j4", "2", "q4"), ("j5", "1", "q4"), ("j6", "1", "q4"))
    for name, cpu, at in coming:
        job = alike(f"reclaim-{name}", 1, cpu=cpu, at=f"reclaim-{at}", priority=HIGH)
        await bare.pods_run(await bare.create(job), 1)
    await counted(bare, "reclaim-q3", Running=1)
    await counted(bare, "reclaim-q4", Running=3)


@pytest.mark.certify
async def test_a_tree_of_queues_lends_inside_itself(bare: Cluster) -> None:
    await cluster_of(bare, 4, 2)
    await bare.configure(
        'actions: "enqueue, allocate, backfill, reclaim, preempt"\n'
        "tiers: [{plugins: [{name: capacity, enableHierarchy: true, enableJobOrder: true,"
        " enableReclaimable: true, enableQueueOrder: true}]}]\n"
    )
    for name, parent, cpus in (
        ("q1", "root", 4),
        ("q2", "root", 4),
        ("q11", "q1", 2),
        ("q12", "q1", 2),
    ):
        above = parent if parent == "root" else f"reclaim-{parent}"
        await bare.queue(queue(f"reclaim-{name}", parent=above, deserved={"cpu": str(cpus)}))
    for name, cpu, at in (
        ("j1", "2", "q2"),
        ("j2", "2", "q11"),
        ("j3", "1", "q12"),
        ("j4", "1", "q11"),
    ):
        job = alike(f"reclaim-{name}", 1, cpu=cpu, at=f"reclaim-{at}", priority=LOW)
        await bare.job_runs(await bare.create(job))
    await counted(bare, "reclaim-q12", Running=1)
    await counted(bare, "reclaim-q11", Running=2)


@pytest.mark.certify
@pytest.mark.parametrize(("kept", "asked"), [("2", "500m"), ("1", "1500m")])
async def test_what_one_queue_is_guaranteed_no_other_gets(
    bare: Cluster, kept: str, asked: str
) -> None:
    await cluster_of(bare, 1, 2)
    guarantee = {"resource": {"cpu": kept}}
    await bare.queue(queue("queue1", guarantee=guarantee, deserved={"cpu": kept}))
    await queues(bare, queue2=0)
    made = await bare.create(alike("queue2-job", 1, cpu=asked, at="queue2"))
    await never_runs(bare, made)
