"""Volcano's e2e/jobp: pods of others and their groups, claims of Jobs, what a group asks for."""

from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import SEEN_S, Cluster
from tests.volcano_e2e.manifests import NGINX, container, job, task
from tests.volcano_e2e.together import all_hold

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(150)]

GI: Final = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}


def controller(name: str, scheduler: str) -> Object:
    """A ReplicationController of one pod."""
    labels = {"app": name}
    spec = {"schedulerName": scheduler, "containers": [container(NGINX)]}
    template = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": labels, "template": template},
    }


async def runs(e2e: Cluster, start: str) -> Object:
    """Wait until a pod runs whose name begins so."""

    async def there() -> Object:
        pods = [pod for pod in await e2e.all_of("Pod") if pod["metadata"]["name"].startswith(start)]
        found = [pod for pod in pods if pod["status"].get("phase") == "Running"]
        assert found, [pod["status"] for pod in pods]
        return found[0]

    return await eventually(there, timeout_s=SEEN_S, because=f"{start} runs")


async def groups_of(e2e: Cluster, pod: Object) -> list[Object]:
    """The groups that the pod's owner has."""
    [owner] = pod["metadata"]["ownerReferences"]
    return [
        group
        for group in await e2e.all_of("PodGroup")
        if any(one["uid"] == owner["uid"] for one in group["metadata"].get("ownerReferences", ()))
    ]


async def a_controllers_pod_has_a_group(e2e: Cluster) -> None:
    await e2e.create(controller("rc-volcano", "volcano"))
    pod = await runs(e2e, "rc-volcano")
    [group] = await groups_of(e2e, pod)
    assert group["status"]["phase"] != "Pending", group["status"]


async def another_schedulers_pod_has_none(e2e: Cluster) -> None:
    await e2e.create(controller("rc-default", "default-scheduler"))
    assert not await groups_of(e2e, await runs(e2e, "rc-default"))


async def a_pod_without_a_group_runs(e2e: Cluster, name: str, scheduler: str) -> None:
    asked = container(NGINX, requests={"cpu": "1"})
    spec = {"schedulerName": scheduler, "containers": [asked]}
    metadata = {"name": name}
    await e2e.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    await runs(e2e, name)


async def a_pod_joins_the_group_that_it_names(e2e: Cluster, name: str, cpu: str) -> None:
    """It may be made while the group waits; a group that asks for more than there is continues
    waiting.
    """
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 1, "minResources": {"cpu": cpu}},
    }
    made = await e2e.create(group)
    assert made.get("status", {}).get("phase", "") in {"", "Pending"}
    spec = {"schedulerName": "volcano", "containers": [container(NGINX, requests={"cpu": "500m"})]}
    metadata: Any = {"name": name, "annotations": {"scheduling.k8s.io/group-name": name}}
    await e2e.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    if cpu == "1":
        await runs(e2e, name)


async def test_pods_of_others_have_groups_where_they_are_ours(e2e: Cluster) -> None:
    await all_hold(
        {
            "rc": a_controllers_pod_has_a_group(e2e),
            "rc of another": another_schedulers_pod_has_none(e2e),
            "pod": a_pod_without_a_group_runs(e2e, "pod-volcano", "volcano"),
            "pod of another": a_pod_without_a_group_runs(e2e, "pod-default", "default-scheduler"),
            "member": a_pod_joins_the_group_that_it_names(e2e, "running-pg", "1"),
            "member that waits": a_pod_joins_the_group_that_it_names(e2e, "pending-pg", "30"),
        }
    )


async def test_a_job_mounts_a_claim_that_is_there_and_makes_the_other(e2e: Cluster) -> None:
    volume = {
        "storageClassName": "standard",
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/data/pvtest", "type": "DirectoryOrCreate"},
        "accessModes": ["ReadWriteOnce"],
    }
    name = f"volume-{e2e.namespace}"
    await e2e.api.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})
    try:
        claim = GI | {"storageClassName": "standard", "volumeName": name}
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        await e2e.create(kind | {"metadata": {"name": "existing"}, "spec": claim})
        volumes = [
            {"mountPath": "/mountone", "volumeClaimName": "existing"},
            {"mountPath": "/mounttwo", "volumeClaim": GI},
        ]
        await e2e.create(job("claims", task("pvctask", 1, cpu="500m"), volumes=volumes))

        async def generated() -> bool:
            first, second = (await e2e.get("Job", "claims"))["spec"]["volumes"]
            assert first["volumeClaimName"] == "existing"
            return bool(second.get("volumeClaimName"))

        await eventually(generated, timeout_s=SEEN_S, because="the second claim has a name")
    finally:
        await e2e.api.delete(f"/api/v1/persistentvolumes/{name}")


async def test_a_jobs_group_asks_for_what_its_pods_ask_for(e2e: Cluster) -> None:
    asked = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    one = container(NGINX, resources={"requests": asked, "limits": asked})
    tasks = [task(f"task-{n}", 1, pod={"containers": [one]}) for n in (1, 2)]
    made = await e2e.create(job("asks", *tasks))
    await e2e.job_is(made, "Pending")

    async def has_group() -> Object:
        group = await e2e.get("PodGroup", e2e.group_of(made))
        found: Object = group["spec"]["minResources"]
        return found

    found = await eventually(has_group, timeout_s=SEEN_S, because="it has a group")
    twice = {"cpu": "2", "memory": "2000Mi", "nvidia.com/gpu": "2"}
    sums = {
        **twice,
        **{f"requests.{key}": value for key, value in twice.items()},
        **{f"limits.{key}": value for key, value in twice.items() if "/" not in key},
        **dict.fromkeys(("pods", "count/pods"), "2"),
    }
    assert {key: sums.get(key) for key in found} == found
    assert found.keys() >= twice.keys()
