"""Namespaces that opt in, beside kube-scheduler on the same nodes: pods of gangs that name its name
are placed by Tutti as a whole, all other pods by kube-scheduler.
"""

from collections.abc import Mapping
from typing import Final

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

SUITE_FLAGS: Final = ()
GROUP: Final = "scheduling.k8s.io/group-name"


async def scheduler_of(stage: Stage, name: str, notes: Mapping[str, str]) -> str:
    """The scheduler name that a pod would be stored with, if it were created now."""
    pod = pod_manifest(name, scheduler_name="default-scheduler", annotations=notes)
    tried = await stage.api.request("POST", stage.path(), pod, params={"dryRun": "All"})
    return str(tried["spec"]["schedulerName"])


@pytest.fixture
async def opted_in(stage: Stage) -> Stage:
    """The stage, whose namespace has opted in."""
    await label(stage.api, stage.namespace)

    async def is_taken() -> bool:
        return await scheduler_of(stage, "probe", {GROUP: "any"}) == "tutti"

    await eventually(is_taken, timeout_s=20, because="the API server has read the label")
    return stage


async def label(api: RawClient, namespace: str, **more: str) -> None:
    """Let a namespace opt in, with further labels `tutti.dev/KEY`."""
    labels = {f"tutti.dev/{key}": value for key, value in {"schedule": "true", **more}.items()}
    await api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})


async def test_a_gang_that_names_the_default_scheduler_is_bound_whole(opted_in: Stage) -> None:
    stage = opted_in
    await stage.nodes(1, cpu_milli=2000)
    made = await stage.gang("train", 3, scheduler_name="default-scheduler")
    assert {pod["spec"]["schedulerName"] for pod in made} == {"tutti"}
    await stage.waits("train", "NotEnoughResources", "2 of 3 pods fit")
    assert not await stage.placed("train"), "kube-scheduler would have bound two of them"
    await stage.nodes(1, prefix="more-", cpu_milli=2000)
    await stage.bound("train", 3)


async def test_pods_without_a_gang_stay_with_their_scheduler(opted_in: Stage) -> None:
    stage = opted_in
    await stage.nodes(1, cpu_milli=2000)
    (made,) = await stage.bare_pods(pod_manifest("plain", scheduler_name="default-scheduler"))
    assert made["spec"]["schedulerName"] == "default-scheduler"

    async def is_bound() -> bool:
        return "plain" in await stage.placed()

    await eventually(is_bound, timeout_s=20, because="kube-scheduler binds it")
    assert await scheduler_of(stage, "other", {GROUP: "train"}) == "tutti"
    foreign = pod_manifest("foreign", scheduler_name="elsewhere", annotations={GROUP: "train"})
    (made,) = await stage.bare_pods(foreign)
    assert made["spec"]["schedulerName"] == "elsewhere"


async def test_a_namespace_asks_for_gangs_of_all_jobs_that_declare_none(opted_in: Stage) -> None:
    """The pods, which the Job controller creates, name kube-scheduler. Those that declare a gang
    keep it, and those of a Job that declines are no gang.
    """
    stage = opted_in
    await label(stage.api, stage.namespace, gang="all")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "p", "uid": "p", "controller": True}
    probe = pod_manifest("probe", scheduler_name="default-scheduler", owner=owner)

    async def is_taken() -> bool:
        tried = await stage.api.request("POST", stage.path(), probe, params={"dryRun": "All"})
        return str(tried["spec"]["schedulerName"]) == "tutti"

    await eventually(is_taken, timeout_s=20, because="the API server has read the label")
    await stage.nodes(1, cpu_milli=1000)
    train = await group_of_job(stage, "train")
    await stage.waits(train, "NotEnoughResources", "1 of 2 pods fit")
    assert not await stage.placed(), "kube-scheduler would have bound one"
    await stage.group("own", 1)
    await group_of_job(stage, "own", joins={GROUP: "own"})
    await stage.bound("own", 1)
    single = await group_of_job(stage, "single", notes={"tutti.dev/gang": "none"})
    await stage.nodes(5, prefix="more-", cpu_milli=1000)
    for gang in (train, single, "own"):
        await stage.bound(gang, 2)
    found = (await stage.api.get(stage.group_path("")))["items"]
    sizes = {one["metadata"]["name"]: one["spec"]["minMember"] for one in found}
    assert sizes == {train: 2, single: 1, "own": 1}


async def group_of_job(
    stage: Stage, name: str, *, notes: Object | None = None, joins: Object | None = None
) -> str:
    """Create a Job of two pods; returns the name of the group that Tutti makes for it.

    Args:
        stage: Where it is created.
        name: Its name.
        notes: Its annotations.
        joins: Annotations of its pods.
    """
    pod = pod_manifest("p", scheduler_name="default-scheduler", requests={"cpu": "1"})
    template = {
        "metadata": {"annotations": joins or {}},
        "spec": {**pod["spec"], "restartPolicy": "Never"},
    }
    job = {
        "metadata": {"name": name, "annotations": notes or {}},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }
    made = await stage.api.create(f"/apis/batch/v1/namespaces/{stage.namespace}/jobs", job)
    return f"podgroup-{made['metadata']['uid']}"


async def test_without_the_label_and_in_kube_system_nothing_is_taken(stage: Stage) -> None:
    assert await scheduler_of(stage, "pod", {GROUP: "g"}) == "default-scheduler"
    await label(stage.api, "kube-system")
    try:
        pod = pod_manifest("p", scheduler_name="default-scheduler", annotations={GROUP: "g"})
        path = "/api/v1/namespaces/kube-system/pods"
        tried = await stage.api.request("POST", path, pod, params={"dryRun": "All"})
        assert tried["spec"]["schedulerName"] == "default-scheduler"
    finally:
        labels = {"tutti.dev/schedule": None}
        await stage.api.patch("/api/v1/namespaces/kube-system", {"metadata": {"labels": labels}})
