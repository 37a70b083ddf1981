"""Volcano's e2e/schedulingbase: gangs, best effort, packing, deadlines, fair shares, and the groups
of workloads.
"""

from datetime import UTC, datetime

import pytest

from tests.controlplane.client import ApiError, Object
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import SEEN_S, Cluster
from tests.volcano_e2e.manifests import BUSYBOX, NGINX, container, job, task
from tests.volcano_e2e.scheduling import alike, conf, never_runs, queues, running

#: The first case waits for the control plane, too.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
#: As many pods of one CPU as the cluster holds.
ALL = 4


@pytest.fixture
async def small(bare: Cluster) -> Cluster:
    """Two nodes that hold two pods of one CPU each."""
    await bare.nodes(2, cpu_milli=2000)
    await bare.configure(conf())
    return bare


def workload(kind: str, name: str, replicas: int, cpu: str = "") -> Object:
    """A ReplicaSet, StatefulSet or Deployment of pods of ours."""
    labels = {"app": name}
    requests = {"cpu": cpu} if cpu else {}
    pod: Object = {"schedulerName": "volcano", "containers": [container(NGINX, requests=requests)]}
    pod["terminationGracePeriodSeconds"] = 1
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **({"serviceName": name} if kind == "StatefulSet" else {}),
        },
    }


def batch_job(name: str, parallel: int, line: str = "") -> Object:
    """A Job of Kubernetes whose pods are ours."""
    made = container(BUSYBOX, line) if line else container(NGINX)
    pod = {"restartPolicy": "Never", "schedulerName": "volcano", "containers": [made]}
    spec = {"parallelism": parallel, "completions": parallel, "backoffLimit": 0}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {**spec, "template": {"spec": pod}},
    }


async def only_group(cluster: Cluster, phase: str) -> Object:
    """Wait until the namespace's one group is in a phase."""

    async def there() -> Object:
        groups = await cluster.all_of("PodGroup")
        found = [one.get("status", {}).get("phase") for one in groups]
        assert found == [phase], found
        return groups[0]

    return await eventually(there, timeout_s=SEEN_S, because=f"the one group is {phase}")


@pytest.mark.certify
async def test_jobs_share_the_cluster_as_their_minima_allow(small: Cluster) -> None:
    """Their pods end at once, so that the remaining jobs have their turns."""
    ends = {"image": BUSYBOX}
    jobs = [alike(f"mqj-{index}", ALL, least=2, of_task=ends) for index in range(3)]
    made = [await small.create(one) for one in jobs]
    for one in made:
        await small.job_runs(one)


async def test_a_gang_waits_whole_and_starts_when_there_is_room(small: Cluster) -> None:
    others = await small.create(workload("ReplicaSet", "rs-1", 3, "1"))
    await small.pods_run(others, 3)
    gang = await small.create(alike("gang-qj", 3))
    await small.job_is(gang, "Pending")
    await small.unschedulable(gang)
    await small.delete("ReplicaSet", "rs-1")
    await small.job_runs(gang)


@pytest.mark.certify
async def test_a_second_gang_waits_for_a_full_cluster_and_evicts_no_pod(small: Cluster) -> None:
    first = await small.create(alike("st-qj-1", ALL))
    await small.job_runs(first)
    since = datetime.now(UTC)
    second = await small.create(alike("st-qj-2", ALL))
    await small.job_is(second, "Pending")
    await small.unschedulable(second)
    assert await running(small, first) == ALL
    evictions = [one for one in await small.all_of("Event") if one["reason"] == "Evict"]
    assert not evictions, since


@pytest.mark.certify
@pytest.mark.parametrize(("sized", "free"), [((2, 2), (2, 2)), ((2, ALL), (2, 2))])
async def test_members_that_ask_for_nothing_count_in_their_gang(
    small: Cluster, sized: tuple[int, int], free: tuple[int, int]
) -> None:
    """Of each task: its minimum and its replicas."""
    tasks = (
        task("sized", sized[1], cpu="1", minAvailable=sized[0]),
        task("free", free[1], minAvailable=free[0]),
    )
    await small.job_runs(await small.create(job("both", *tasks, minAvailable=sized[0] + free[0])))


@pytest.mark.certify
async def test_a_node_in_use_is_filled_first(bare: Cluster) -> None:
    await bare.nodes(3)
    await bare.configure(conf())
    base = await bare.create(alike("binpack-base-1", 1))
    (first,) = await bare.pods_run(base, 1)
    more = await bare.create(alike("binpack-test-1", 3))
    found = await bare.pods_run(more, 3)
    assert {pod["spec"]["nodeName"] for pod in found} == {first["spec"]["nodeName"]}


@pytest.mark.certify
async def test_a_job_of_kubernetes_runs_and_a_wrong_one_is_refused(small: Cluster) -> None:
    wrong = batch_job("job1", 2)
    del wrong["spec"]["template"]["spec"]["restartPolicy"]
    with pytest.raises(ApiError):
        await small.create(wrong)
    made = await small.create(batch_job("job1", 2))
    await small.pods_run(made, 2)


@pytest.mark.certify
@pytest.mark.parametrize("line", ["sleep 1", "sleep 1; exit 1"])
async def test_the_group_of_a_finished_job_of_kubernetes_is_completed(
    small: Cluster, line: str
) -> None:
    await small.create(batch_job("job1", 2, line))
    await only_group(small, "Completed")


@pytest.mark.certify
async def test_a_deployment_has_one_group_when_its_requests_change(small: Cluster) -> None:
    await small.create(workload("Deployment", "d-1", 1, "1"))
    await only_group(small, "Running")
    changed = workload("Deployment", "d-1", 1, "500m")["spec"]["template"]["spec"]["containers"]
    await small.replace("Deployment", "d-1", "/spec/template/spec/containers", changed)

    async def replaced() -> bool:
        asked = [one["spec"]["containers"][0]["resources"] for one in await small.all_of("Pod")]
        return [one["requests"]["cpu"] for one in asked] == ["500m"]

    await eventually(replaced, timeout_s=SEEN_S, because="the new pod alone is there")
    await only_group(small, "Running")


@pytest.mark.certify
@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
async def test_a_workloads_group_follows_quick_changes_of_its_size(
    small: Cluster, kind: str
) -> None:
    made = await small.create(workload(kind, "pg-workqueue", 1))
    name = f"podgroup-{made['metadata']['uid']}"

    async def reconciled() -> bool:
        group = await small.get("PodGroup", name)
        (owner,) = group["metadata"]["ownerReferences"]
        assert owner["uid"] == made["metadata"]["uid"]
        alive = [
            one for one in await small.all_of("Pod") if "deletionTimestamp" not in one["metadata"]
        ]
        notes = [one["metadata"].get("annotations", {}) for one in alive]
        return [one.get("scheduling.k8s.io/group-name") for one in notes] == [name]

    await eventually(reconciled, timeout_s=SEEN_S, because="the pod is in its group")
    for _ in range(3):
        await small.patch(kind, "pg-workqueue", {"spec": {"replicas": 0}})
        await small.patch(kind, "pg-workqueue", {"spec": {"replicas": 1}})
        await eventually(reconciled, timeout_s=SEEN_S, because="the pod is in its group")
    await small.patch(kind, "pg-workqueue", {"spec": {"replicas": 0}})
    await small.is_gone("PodGroup", name)


@pytest.mark.certify
async def test_a_job_larger_than_the_cluster_gets_its_pods_made(small: Cluster) -> None:
    notes = {"sla-waiting-time": "3s"}
    made = await small.create(
        {
            **(over := alike("j1-overlarge", 2 * ALL)),
            "metadata": {**over["metadata"], "annotations": notes},
        }
    )
    await small.pods_are(made, 2 * ALL, "Pending")


async def test_of_two_waiting_jobs_the_one_with_the_earlier_deadline_goes_first(
    small: Cluster,
) -> None:
    """In Volcano's case both wait behind a job that the cluster can never hold; here no gang waits
    for such a job, so it is one that runs.
    """
    first = await small.create(alike("j1", ALL))
    await small.job_runs(first)
    late: list[Object] = []
    for name, deadline in (("j2-slow-sla", "1h"), ("j3-fast-sla", "30m")):
        one = alike(name, ALL)
        one["metadata"]["annotations"] = {"sla-waiting-time": deadline}
        late.append(await small.create(one))
    await small.pods_are(late[1], ALL, "Pending")
    await small.delete("Job", "j1")
    await small.job_runs(late[1])
    await never_runs(small, late[0])


@pytest.mark.certify
async def test_queues_of_equal_weight_get_equal_parts_of_what_becomes_free(small: Cluster) -> None:
    await queues(small, q1=0, q2=0)
    occupied = await small.create(alike("occupied", ALL))
    await small.job_runs(occupied)
    made = {
        at: [
            await small.create(alike(f"fair-{at}-{index}", 2, cpu="500m", at=at))
            for index in range(4)
        ]
        for at in ("q1", "q2")
    }
    await small.delete("Job", "occupied")

    async def shared() -> bool:
        found = {at: sum([await running(small, one) for one in jobs]) for at, jobs in made.items()}
        assert found == {"q1": ALL, "q2": ALL}, found
        return True

    await eventually(shared, timeout_s=SEEN_S, because="both queues have half")
