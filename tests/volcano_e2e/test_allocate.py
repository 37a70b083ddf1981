"""Volcano's e2e/schedulingaction, allocate.go, enqueue.go, predicates.go: placement on nodes."""

import pytest

from tests.controlplane.client import Object
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import SEEN_S, Cluster
from tests.volcano_e2e.manifests import NGINX, container, queue
from tests.volcano_e2e.scheduling import alike, conf, never_runs, queues, ungate

#: The first case waits for the control plane, too.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
GATED = {"schedulingGates": [{"name": "example.com/g1"}]}
TAINT = {"key": "test-taint-key", "value": "test-taint-val", "effect": "NoSchedule"}
HOST = "kubernetes.io/hostname"


def beside(kind: str, labels: dict[str, str]) -> Object:
    """A required term about pods of these labels on the same node."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def on_one_node(found: list[Object]) -> bool:
    """Whether these pods are all on the same node."""
    return len({pod["spec"]["nodeName"] for pod in found}) == 1


@pytest.mark.certify
@pytest.mark.parametrize("actions", ["enqueue, allocate, backfill", "allocate, backfill"])
async def test_what_fits_runs_with_the_action_enqueue_and_without(
    bare: Cluster, actions: str
) -> None:
    await bare.nodes(2, cpu_milli=2000)
    await bare.configure(conf(actions))
    for name, cpu in (("low", "500m"), ("high", "1")):
        await bare.job_runs(await bare.create(alike(name, 1, cpu=cpu)))


@pytest.mark.certify
async def test_what_does_not_fit_waits_with_its_pods_made(bare: Cluster) -> None:
    await bare.nodes(1, cpu_milli=2000)
    await bare.configure(conf())
    for name, cpu in (("middle", "1"), ("low", "500m")):
        await bare.job_runs(await bare.create(alike(name, 1, cpu=cpu)))
    high = await bare.create(alike("high", 1, cpu="3"))
    await bare.pods_are(high, 1, "Pending")
    await never_runs(bare, high)


@pytest.mark.certify
async def test_a_pod_that_must_not_be_beside_another_waits(bare: Cluster) -> None:
    await bare.nodes(1, cpu_milli=2000)
    labels = {"job": "for-test-predicate"}
    first = await bare.create(alike("j1", 1, cpu="500m", of_task={"labels": labels}))
    await bare.job_runs(first)
    pod = {"affinity": beside("podAntiAffinity", labels)}
    second = await bare.create(alike("j2", 1, cpu="500m", of_task={"labels": labels, "pod": pod}))
    await bare.pods_are(second, 1, "Pending")
    await never_runs(bare, second)


async def test_gates_keep_a_job_waiting_and_it_runs_without_them(bare: Cluster) -> None:
    await bare.nodes(4, cpu_milli=2000)
    await queues(bare, q1=0)
    made = await bare.create(alike("j1-q1", 2, cpu="2", at="q1", of_task={"pod": GATED}))
    await bare.unschedulable(made)
    await ungate(bare, *await bare.pods_of(made))
    await bare.job_is(made, "Running")


@pytest.mark.certify
async def test_gates_keep_a_deployment_waiting_and_it_runs_without_them(bare: Cluster) -> None:
    await bare.nodes(4, cpu_milli=2000)
    labels = {"app": "gated"}
    spec = {
        "schedulerName": "volcano",
        "containers": [container(NGINX, requests={"cpu": "2"})],
        **GATED,
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "dep-gated"},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    await bare.create(deployment)

    async def phase_is(phase: str) -> list[Object]:
        group = next(iter(await bare.all_of("PodGroup")), {})
        assert group.get("status", {}).get("phase") == phase, group
        pods = await bare.all_of("Pod")
        assert len(pods) == 4
        return pods

    waiting = await eventually(
        lambda: phase_is("Inqueue"), timeout_s=SEEN_S, because="its group is in the queue"
    )
    await ungate(bare, *waiting)
    await eventually(lambda: phase_is("Running"), timeout_s=SEEN_S, because="its group runs")


@pytest.mark.certify
async def test_parts_of_a_job_without_topology_run(bare: Cluster) -> None:
    await bare.nodes(2, cpu_milli=2000)
    parts = {"totalPartitions": 2, "partitionSize": 1, "minPartitions": 2}
    job = alike("job-subgroups-no-topology", 2, cpu="500m", of_task={"partitionPolicy": parts})
    await bare.job_runs(await bare.create(job))


@pytest.mark.certify
async def test_gated_pods_take_no_room_from_others(bare: Cluster) -> None:
    await bare.nodes(1)
    await bare.configure(conf())
    gated = await bare.create(alike("j-gated", 4, of_task={"pod": GATED}))
    others = [await bare.create(alike(name, 2)) for name in ("job1", "job2")]
    await bare.pods_are(gated, 4, "Pending")
    for one in others:
        await bare.job_runs(one)


@pytest.mark.certify
async def test_a_pod_without_node_keeps_its_queues_room_until_it_is_gone(bare: Cluster) -> None:
    await bare.nodes(2, cpu_milli=2000)
    await bare.configure(conf(quota="capacity"))
    await bare.queue(queue("capacity-test-queue", capability={"cpu": "500m"}))
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "test-podgroup"},
        "spec": {
            "minMember": 1,
            "queue": "capacity-test-queue",
            "minResources": {"cpu": "500m"},
        },
    }
    await bare.create(group)

    async def pod(name: str, **spec: object) -> Object:
        notes = {
            "scheduling.k8s.io/group-name": "test-podgroup",
            "scheduling.volcano.sh/queue-allocation-gate": "true",
            "scheduling.volcano.sh/queue-name": "capacity-test-queue",
        }
        return await bare.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "annotations": notes},
                "spec": {
                    "schedulerName": "volcano",
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container(NGINX, requests={"cpu": "500m"})],
                    **spec,
                },
            }
        )

    async def runs(name: str) -> bool:
        found = await bare.get("Pod", name)
        assert found["status"].get("phase") == "Running", found["status"]
        return True

    await pod("pod-1")
    await eventually(lambda: runs("pod-1"), timeout_s=SEEN_S, because="pod-1 runs")
    await bare.delete("Pod", "pod-1")
    await pod("pod-2", nodeSelector={"kubernetes.io/fake-node": "fake"})
    await pod("pod-3")
    await bare.delete("Pod", "pod-2")
    await eventually(lambda: runs("pod-3"), timeout_s=SEEN_S, because="pod-3 runs")


@pytest.mark.certify
async def test_a_host_port_is_taken_once_on_each_node(bare: Cluster) -> None:
    await bare.nodes(2)
    ports = [{"containerPort": 28080, "hostPort": 28080}]
    made = await bare.create(alike("hp-spec", 4, least=2, of_task={"ports": ports}))
    await bare.pods_run(made, 2)
    await bare.pods_are(made, 2, "Pending")


@pytest.mark.certify
async def test_a_node_named_by_its_field_takes_the_whole_job(bare: Cluster) -> None:
    names = await bare.nodes(2)
    match = {"key": "metadata.name", "operator": "In", "values": [names[1]]}
    required = {"nodeSelectorTerms": [{"matchFields": [match]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    job = alike("na-job", 4, least=1, of_task={"pod": {"affinity": affinity}})
    found = await bare.pods_run(await bare.create(job), 4)
    assert {pod["spec"]["nodeName"] for pod in found} == {names[1]}


@pytest.mark.certify
@pytest.mark.parametrize(("kind", "together"), [("podAffinity", True), ("podAntiAffinity", False)])
async def test_members_that_want_each_other_near_or_far_are_so(
    bare: Cluster, kind: str, *, together: bool
) -> None:
    await bare.nodes(2)
    labels = {"foo": "bar"}
    pod = {"affinity": beside(kind, labels)}
    job = alike("pa-job", 2, cpu="500m", of_task={"labels": labels, "pod": pod})
    found = await bare.pods_run(await bare.create(job), 2)
    assert on_one_node(found) is together


async def test_taints_keep_pods_off_that_do_not_tolerate_them(bare: Cluster) -> None:
    await bare.nodes(2)
    await bare.taint(TAINT)
    toleration = {**TAINT, "operator": "Equal"}
    tolerates = {"pod": {"tolerations": [toleration]}}
    await bare.job_runs(await bare.create(alike("tt-job", 1, of_task=tolerates)))
    other = await bare.create(alike("tt-job-no-toleration", 1))
    await bare.pods_are(other, 1, "Pending")
    await never_runs(bare, other)
    await bare.taint()
    await bare.pods_run(other, 1)
