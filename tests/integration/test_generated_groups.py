"""Groups that Tutti makes for workloads, on a real API server with Kubernetes' own controllers.

They follow their workload, and pods without a declared minimum are no gang.
"""

from pathlib import Path
from typing import Any, Final

import pytest

from shared.contracts import annotations
from tests.controlplane.client import Object, RawClient
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

SUITE_FLAGS: Final = (
    "--no-webhook",
    f"--scheduler-conf={Path(__file__).with_name('preempting.yaml')}",
)
CLASSES: Final = {"generated-low": 1, "generated-middle": 50, "generated-high": 100}
QUEUES: Final = "/apis/scheduling.volcano.sh/v1beta1/queues"
PLURALS: Final = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "ReplicaSet": "replicasets",
}
#: Evictions and replaced pods, on a machine with other work.
SOON_S: Final = 60.0
#: What the controller does for each kind, test_workload_controller.py and test_upkeep.py
#: show: on a whole cluster one kind for each way in which Kubernetes makes pods again is enough.
LIKE_OTHERS: Final = {
    kind: pytest.param(kind, marks=pytest.mark.certify) for kind in ("DaemonSet", "ReplicaSet")
}


@pytest.fixture(autouse=True)
async def classes(api: RawClient) -> None:
    found = await api.get("/apis/scheduling.k8s.io/v1/priorityclasses")
    known = {one["metadata"]["name"] for one in found["items"]}
    for name, value in CLASSES.items():
        if name not in known:
            manifest = {"metadata": {"name": name}, "value": value}
            await api.create("/apis/scheduling.k8s.io/v1/priorityclasses", manifest)


def container(cpu: str) -> Object:
    requests = {"requests": {"cpu": cpu}}
    return {"name": "main", "image": "registry.example/none", "resources": requests}


def template(
    name: str, cpu: str, priority: str = "", notes: dict[str, str] | None = None
) -> Object:
    spec: Object = {
        "schedulerName": "tutti",
        "terminationGracePeriodSeconds": 1,
        "containers": [container(cpu)],
    }
    if priority:
        spec["priorityClassName"] = priority
    return {"metadata": {"labels": {"app": name}, "annotations": notes or {}}, "spec": spec}


async def workload(
    stage: Stage, kind: str, name: str, cpu: str, *, replicas: int = 1, **of_pods: Any
) -> Object:
    spec: Object = {
        "selector": {"matchLabels": {"app": name}},
        "template": template(name, cpu, **of_pods),
    }
    if kind != "DaemonSet":
        spec["replicas"] = replicas
    if kind == "StatefulSet":
        spec["serviceName"] = name
    collection = stage.path(PLURALS[kind], version="apps/v1")
    return await stage.api.create(collection, {"metadata": {"name": name}, "spec": spec})


async def change(stage: Stage, kind: str, name: str, **changed: Any) -> None:
    """Change fields of its template."""
    path = stage.path(PLURALS[kind], name, version="apps/v1")
    await stage.api.patch(path, {"spec": {"template": changed}})


async def replaced(stage: Stage, kind: str, name: str) -> None:
    """Its pods are deleted, so that its controller makes them again of the new template."""
    await stage.delete_pods([pod["metadata"]["name"] for pod in await pods_of(stage, name)])


async def pods_of(stage: Stage, name: str) -> list[Object]:
    return [pod for pod in await stage.pods() if pod["metadata"]["labels"].get("app") == name]


async def bound(stage: Stage, name: str, count: int) -> list[Object]:
    """Wait until so many of its pods, and no more, are on nodes."""

    async def placed() -> tuple[list[Object]]:
        found = [
            pod
            for pod in await pods_of(stage, name)
            if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        ]
        assert len(found) == count, f"{len(found)} of {name} are bound"
        return (found,)

    because = f"{count} of {name} are bound"
    return (await eventually(placed, timeout_s=SOON_S, because=because))[0]


async def group_of(stage: Stage, name: str) -> Object:
    """The group of a workload's pods."""
    groups: list[Object] = (await stage.api.get(stage.group_path("")))["items"]
    found = [one for one in groups if one["metadata"]["ownerReferences"][0]["name"] == name]
    assert len(found) == 1, groups
    return found[0]


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", LIKE_OTHERS["ReplicaSet"]])
async def test_a_workload_whose_template_was_too_large_runs_once_it_is_small(
    stage: Stage, kind: str
) -> None:
    """volcano#4516: the group kept the first requests."""
    await stage.nodes(1)
    await workload(stage, kind, "s", "10")

    async def has_group() -> Object:
        return await group_of(stage, "s")

    group = await eventually(has_group, timeout_s=SOON_S, because="its group exists")
    assert group["spec"]["minResources"]["cpu"] == "10"
    await change(stage, kind, "s", spec={"containers": [container("500m")]})
    await replaced(stage, kind, "s")
    await bound(stage, "s", 1)

    async def follows() -> bool:
        group = await group_of(stage, "s")
        assert group["spec"]["minResources"]["cpu"] == "500m", group["spec"]
        return True

    await eventually(follows, timeout_s=SOON_S, because="the group follows its template")


async def test_after_a_roll_to_a_smaller_template_nothing_is_reserved(stage: Stage) -> None:
    await stage.nodes(1)
    await workload(stage, "StatefulSet", "s", "3")
    await bound(stage, "s", 1)
    await change(stage, "StatefulSet", "s", spec={"containers": [container("1")]})

    async def rolled() -> bool:
        (pod,) = await bound(stage, "s", 1)
        assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
        return True

    await eventually(rolled, timeout_s=SOON_S, because="it is rolled")
    await stage.bare_pods(pod_manifest("other", requests={"cpu": "3"}, labels={"app": "other"}))
    await bound(stage, "other", 1)


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment", "DaemonSet"])
async def test_a_raised_priority_class_protects_the_pods_that_have_it(
    stage: Stage, kind: str
) -> None:
    """volcano#495."""
    await stage.nodes(1)
    await workload(stage, kind, "s", "3", priority="generated-low")
    await bound(stage, "s", 1)
    await change(stage, kind, "s", spec={"priorityClassName": "generated-high"})

    async def rolled() -> bool:
        (pod,) = await bound(stage, "s", 1)
        assert pod["spec"]["priority"] == CLASSES["generated-high"]
        return True

    await eventually(rolled, timeout_s=SOON_S, because="it is rolled")
    await workload(stage, "Deployment", "middle", "3", priority="generated-middle")

    async def waits() -> bool:
        pods = await pods_of(stage, "middle")
        assert pods
        pod = pods[0]
        conditions = {one["type"]: one for one in pod["status"].get("conditions", ())}
        assert conditions.get("PodScheduled", {}).get("status") == "False"
        return True

    await eventually(waits, timeout_s=SOON_S, because="the other one waits")
    await bound(stage, "s", 1)
    await bound(stage, "middle", 0)


@pytest.mark.parametrize("kind", ["StatefulSet", LIKE_OTHERS["DaemonSet"]])
async def test_a_workload_moves_to_the_queue_that_its_template_names(
    stage: Stage, kind: str
) -> None:
    """volcano#528."""
    await stage.nodes(1)
    queues = [f"{name}-{stage.namespace}" for name in ("one", "two")]
    for name in queues:
        manifest = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1},
        }
        await stage.api.create(QUEUES, manifest)
    await workload(stage, kind, "s", "1", notes={annotations.QUEUE_NAME: queues[0]})
    await bound(stage, "s", 1)
    group = await group_of(stage, "s")
    assert group["spec"]["queue"] == queues[0]
    await change(stage, kind, "s", metadata={"annotations": {annotations.QUEUE_NAME: queues[1]}})

    async def moved() -> bool:
        await bound(stage, "s", 1)
        assert (await group_of(stage, "s"))["spec"]["queue"] == queues[1]
        return True

    await eventually(moved, timeout_s=SOON_S, because="the group is in the second queue")
    await change(stage, kind, "s", metadata={"annotations": {annotations.QUEUE_NAME: None}})

    async def left() -> bool:
        await bound(stage, "s", 1)
        assert (await group_of(stage, "s"))["spec"]["queue"] == "default"
        return True

    await eventually(left, timeout_s=SOON_S, because="the group is in the default queue again")


async def test_pods_of_an_unknown_owner_do_not_wait_for_each_other(stage: Stage) -> None:
    """volcano#4970: an Argo Workflow."""
    await stage.nodes(1)
    busy = pod_manifest("busy", requests={"cpu": "2"}, labels={"app": "busy"})
    await stage.bare_pods(busy)
    await bound(stage, "busy", 1)
    owner = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": "w",
        "uid": "8a3c2f9e-0000-4000-8000-000000000001",
        "controller": True,
    }
    await stage.bare_pods(
        *(
            pod_manifest(f"w-{cpu}", requests={"cpu": cpu}, owner=owner, labels={"app": f"w{cpu}"})
            for cpu in ("3", "1")
        )
    )
    await bound(stage, "w1", 1)
    await bound(stage, "w3", 0)


async def test_each_pod_of_a_daemon_set_preempts_for_itself(stage: Stage) -> None:
    """yunikorn-core#1001."""
    await stage.nodes(2)
    await workload(stage, "Deployment", "low", "1", replicas=8, priority="generated-low")
    await bound(stage, "low", 8)
    await workload(stage, "DaemonSet", "agent", "1", priority="generated-high")
    found = await bound(stage, "agent", 2)
    assert len({pod["spec"]["nodeName"] for pod in found}) == 2
    await bound(stage, "low", 6)


@pytest.mark.parametrize("kind", ["Deployment", LIKE_OTHERS["ReplicaSet"]])
async def test_each_pod_of_a_deployment_preempts_for_itself(stage: Stage, kind: str) -> None:
    """volcano#3207."""
    await stage.nodes(1)
    await workload(stage, "Deployment", "low", "1", replicas=4, priority="generated-low")
    await bound(stage, "low", 4)
    await workload(stage, kind, "high", "1", replicas=3, priority="generated-high")
    await bound(stage, "high", 3)
    await bound(stage, "low", 1)


async def test_each_pod_of_a_job_preempts_for_itself(stage: Stage) -> None:
    await stage.nodes(1)
    await workload(stage, "Deployment", "low", "1", replicas=4, priority="generated-low")
    await bound(stage, "low", 4)
    made = template("high", "1", priority="generated-high")
    made["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": 3, "completions": 3, "template": made}
    jobs = stage.path("jobs", version="batch/v1")
    await stage.api.create(jobs, {"metadata": {"name": "high"}, "spec": spec})
    await bound(stage, "high", 3)


async def test_a_setting_on_a_job_works_as_on_its_group(stage: Stage) -> None:
    await stage.nodes(1)
    made = template("job", "1")
    made["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": 2, "completions": 2, "template": made}
    notes = {annotations.GANG: "all", annotations.UNDISTURBED: "true"}
    jobs = stage.path("jobs", version="batch/v1")
    await stage.api.create(jobs, {"metadata": {"name": "job", "annotations": notes}, "spec": spec})
    await bound(stage, "job", 2)

    async def marked() -> bool:
        for pod in await pods_of(stage, "job"):
            assert pod["metadata"]["annotations"].get(annotations.DO_NOT_DISRUPT) == "true"
        return True

    await eventually(marked, timeout_s=SOON_S, because="autoscalers keep its nodes")
