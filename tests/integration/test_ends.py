"""The end of a gang on a real API server: what has ended holds and requests nothing when its pods
are cleaned up, also for the next planner, and a member that has succeeded is not lost.
"""

import asyncio
from typing import Final

import pytest

from shared.contracts import annotations
from tests.controlplane.client import Object
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

GROUPS: Final = 6
MINIMUM: Final = {"minResources": {"cpu": "2"}}
GRACE_S: Final = 2


async def is_in_phase(stage: Stage, name: str, phase: str) -> None:
    """Wait until the group is in this phase."""

    async def found() -> bool:
        status = (await stage.seen_group(name)).get("status", {})
        assert status.get("phase") == phase, status
        return True

    await eventually(found, because=f"{name} is {phase}")


async def finish(stage: Stage, pods: list[Object]) -> None:
    """The programs of these pods end well."""
    for pod in pods:
        stage.kubelet.finish(pod["metadata"]["uid"])


async def kill_planner(stage: Stage) -> None:
    """The active planner dies."""
    await stage.suite.kill(await stage.suite.active("gang-planner"))


async def test_gangs_whose_pods_are_cleaned_up_block_nothing(stage: Stage) -> None:
    """D1: as with a TTL, or `cleanPodPolicy` of Kubeflow's operators."""
    await stage.nodes(1, cpu_milli=8000)
    names = [f"old-{number}" for number in range(GROUPS)]
    for name in names:
        await stage.group(name, 2, spec=MINIMUM)
        pods = await stage.members(name, 2)
        await stage.bound(name, 2)
        await is_in_phase(stage, name, "Running")
        await finish(stage, pods)
        await is_in_phase(stage, name, "Completed")
        await stage.delete_pods([pod["metadata"]["name"] for pod in pods])
    await kill_planner(stage)
    await stage.group("new", 2, spec=MINIMUM)
    await stage.members("new", 2)
    await stage.bound("new", 2)
    for name in names:
        status = (await stage.seen_group(name))["status"]
        assert (status["phase"], status["succeeded"]) == ("Completed", 2)


async def test_a_job_whose_first_index_is_cleaned_up_runs_to_its_end(stage: Stage) -> None:
    """D9b."""
    await stage.nodes(1)
    notes = {annotations.DEGRADED_GRACE_SECONDS: str(GRACE_S)}
    await stage.group("g", 3, notes=notes)
    await stage.api.create(stage.path("jobs", version="batch/v1"), indexed_job("g"))
    await stage.bound("g", 3)
    await is_in_phase(stage, "g", "Running")
    pods = {pod["metadata"]["name"].rsplit("-", 2)[1]: pod for pod in await stage.pods("g")}
    first = pods.pop("0")
    await finish(stage, [first])
    name = first["metadata"]["name"]
    await until_succeeded(stage, 1)
    await stage.delete_pods([name])
    await stage.bound("g", 2)
    await kill_planner(stage)
    await stage.suite.pids()
    before = await stage.placed("g")
    # Longer than the grace: only time shows that nothing happens.
    await asyncio.sleep(3 * GRACE_S)
    assert await stage.placed("g") == before
    await is_in_phase(stage, "g", "Running")
    await finish(stage, list(pods.values()))
    await until_succeeded(stage, 3)
    await is_in_phase(stage, "g", "Completed")


async def test_the_last_index_of_a_job_runs_again_after_all_of_its_pods_are_gone(
    stage: Stage,
) -> None:
    """Two of three indexes have succeeded when their nodes are drained, and the minimum is two."""
    await stage.nodes(1)
    await stage.group("g", 2)
    await stage.api.create(stage.path("jobs", version="batch/v1"), indexed_job("g"))
    await stage.bound("g", 3)
    await is_in_phase(stage, "g", "Running")
    pods = {pod["metadata"]["name"].rsplit("-", 2)[1]: pod for pod in await stage.pods("g")}
    await finish(stage, [pods["0"], pods["1"]])
    await until_succeeded(stage, 2)
    await is_remembered(stage, "g", succeeded=2)
    for index in "012":
        name = pods[index]["metadata"]["name"]
        eviction = {"metadata": {"name": name}, "deleteOptions": {"gracePeriodSeconds": 0}}
        await stage.api.create(f"{stage.path('pods', name)}/eviction", eviction)
    await kill_planner(stage)

    async def made_again() -> Object:
        found = await stage.pods("g")
        assert [bool(pod["spec"].get("nodeName")) for pod in found] == [True]
        assert found[0]["metadata"]["uid"] != pods["2"]["metadata"]["uid"]
        return found[0]

    again = await eventually(made_again, timeout_s=60, because="the last index is bound again")
    await finish(stage, [again])
    await until_succeeded(stage, 3, failed=1)
    await is_in_phase(stage, "g", "Completed")


@pytest.mark.parametrize("by", ["a deadline", "a failed index"])
async def test_the_group_of_a_job_that_ended_without_enough_ended_pods_is_completed(
    stage: Stage, by: str
) -> None:
    """The Job deletes its running pods, or the node of the failed one is removed with it."""
    await stage.nodes(1)
    job = indexed_job("")
    job["metadata"]["annotations"] = {annotations.GANG: "all"}
    job["spec"]["template"]["metadata"] = {}
    if by == "a failed index":
        job["spec"]["backoffLimitPerIndex"] = 0
    await stage.api.create(stage.path("jobs", version="batch/v1"), job)
    await stage.bound("", 3)
    (group,) = (await stage.api.get(stage.group_path("")))["items"]
    name = group["metadata"]["name"]
    await is_in_phase(stage, name, "Running")
    if by == "a deadline":
        path = stage.path("jobs", "train", "batch/v1")
        await stage.api.patch(path, {"spec": {"activeDeadlineSeconds": 1}})
    else:
        failed, *others = await stage.pods()
        stage.kubelet.finish(failed["metadata"]["uid"], exit_code=1)

        async def counted() -> bool:
            status = (await stage.seen_group(name))["status"]
            assert status.get("failed") == 1, status
            return True

        await eventually(counted, because="its failure is seen")
        await stage.delete_pods([failed["metadata"]["name"]])
        await finish(stage, others)
    await is_in_phase(stage, name, "Completed")
    await stage.why("job/train", "job/train has ended")


async def is_remembered(stage: Stage, name: str, *, succeeded: int) -> None:
    """Wait until the group counts so many succeeded members, for planners that start later."""

    async def found() -> bool:
        status = (await stage.seen_group(name)).get("status", {})
        assert status.get("succeeded") == succeeded, status
        return True

    await eventually(found, because=f"{name} counts {succeeded} succeeded members")


async def until_succeeded(stage: Stage, count: int, *, failed: int = 0) -> None:
    """The Job counts so many indexes, and so many failed pods."""

    async def found() -> bool:
        job = await stage.api.get(stage.path("jobs", "train", "batch/v1"))
        assert job["status"].get("succeeded") == count, job["status"]
        assert job["status"].get("failed", 0) == failed
        return True

    await eventually(found, because=f"{count} indexes have succeeded")


def indexed_job(group: str) -> Object:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "parallelism": 3,
            "completions": 3,
            "completionMode": "Indexed",
            "template": {
                "metadata": {"annotations": {annotations.GROUP_NAME: group}},
                "spec": {
                    "schedulerName": "tutti",
                    "restartPolicy": "Never",
                    "containers": [container],
                },
            },
        },
    }
