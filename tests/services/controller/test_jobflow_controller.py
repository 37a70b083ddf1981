"""The JobFlow controller on both API servers; Jobs get their phases from the test."""

import asyncio
import contextlib
from functools import partial

import pytest

from services.controller.jobflow_controller import JobFlowReconciler
from shared.kube.client import KubeClient
from shared.kube.errors import NotFound
from shared.kube.resources import JOBFLOWS, JOBS_VOLCANO, JOBTEMPLATES, Resource
from tests.services.controller.job_stage import Stage, job_controller
from tests.services.controller.playing import (
    Object,
    becomes,
    enter,
    events,
    make,
    names_of,
    read,
    running,
)
from tests.support.waiting import eventually


def template(name: str) -> Object:
    pod = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"queue": "default", "tasks": [{"name": "w", "replicas": 1, "template": pod}]}
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_flow_goes_from_step_to_step_to_its_end(either: KubeClient, place: str) -> None:
    for name in ("one", "two"):
        await make(either, JOBTEMPLATES, template(name), place)
    steps = [{"name": "one"}, {"name": "two", "dependsOn": {"targets": ["one"]}}]
    spec = {"flows": steps, "jobRetainPolicy": "delete"}

    async def jobs() -> list[str]:
        return await names_of(either, JOBS_VOLCANO, place)

    async def phase() -> object:
        found = await read(either, JOBFLOWS, "f", place)
        return found and found.get("status", {}).get("state", {}).get("phase")

    async def made() -> object:
        found = await read(either, JOBTEMPLATES, "two", place)
        return found and found.get("status", {}).get("jobDependsOnList", [])

    async with running(either, JobFlowReconciler) as runtime:
        await make(either, JOBFLOWS, {"metadata": {"name": "f"}, "spec": spec}, place)
        await becomes(jobs, ["f-one"])
        await enter(either, place, "f-one", "Pending")
        await becomes(phase, "Pending")
        await enter(either, place, "f-one", "Pending", "Running")
        await becomes(phase, "Running")
        await enter(either, place, "f-one", "Pending", "Running", "Completed")
        await becomes(jobs, ["f-one", "f-two"])
        await becomes(made, ["f-two"])
        await enter(either, place, "f-two", "Pending", "Running", "Completed")
        await becomes(phase, "Succeed")
        await becomes(jobs, [])
        await runtime.events.flush()

    flow = await read(either, JOBFLOWS, "f", place)
    assert flow is not None
    assert flow["status"]["completedJobs"] == ["f-one", "f-two"]
    assert [
        [entry["state"] for entry in job["runningHistories"]]
        for job in flow["status"]["jobStatusList"]
    ] == [["Pending", "Running", "Completed"]] * 2
    assert await events(either, place, "f") == [
        ("Normal", "Created", "create a job named f-one!"),
        ("Normal", "Created", "create a job named f-two!"),
    ]


async def test_authors_of_flows_and_templates_may_update_them_right_after_their_creation(
    either: KubeClient, place: str
) -> None:
    async def update(resource: Resource, made: Object) -> None:
        """Update the object as it was created, as a program does that kept the answer."""
        made["metadata"]["labels"] = {"changed": "yes"}
        await either.replace(resource, made["metadata"]["name"], made, namespace=place)

    async def phase() -> object:
        found = await read(either, JOBFLOWS, "f4", place)
        return found and found.get("status", {}).get("state", {}).get("phase")

    async def listed() -> object:
        found = await read(either, JOBTEMPLATES, "t4", place)
        return found and found.get("status", {}).get("jobDependsOnList")

    async with running(either, JobFlowReconciler), running(either, job_controller):
        for number in range(5):
            made = await make(either, JOBTEMPLATES, template(f"t{number}"), place)
            spec = {"flows": [{"name": f"t{number}"}]}
            flow = await make(
                either, JOBFLOWS, {"metadata": {"name": f"f{number}"}, "spec": spec}, place
            )
            job = Stage(either, f"f{number}-t{number}", place)
            await eventually(partial(read, either, JOBS_VOLCANO, job.name, place))
            await becomes(job.phase, "Pending")
            # Time for a write that the Job's phase would cause.
            await asyncio.sleep(0.1)
            await update(JOBFLOWS, flow)
            await update(JOBTEMPLATES, made)
        await becomes(phase, "Pending")
        await becomes(listed, ["f4-t4"])


async def test_a_step_that_finishes_at_once_is_in_the_flows_status_at_once(
    either: KubeClient, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Job may be deleted at once, too, and the step must not run again."""
    monkeypatch.setattr("services.controller.jobflow_controller._FIRST_STATUS_S", 600.0)
    for name in ("one", "two"):
        await make(either, JOBTEMPLATES, template(name), place)
    steps = [{"name": "one"}, {"name": "two", "dependsOn": {"targets": ["one"]}}]

    async def jobs() -> list[str]:
        return await names_of(either, JOBS_VOLCANO, place)

    async def completed() -> object:
        found = await read(either, JOBFLOWS, "f", place)
        return found and found.get("status", {}).get("completedJobs")

    async with running(either, JobFlowReconciler):
        await make(either, JOBFLOWS, {"metadata": {"name": "f"}, "spec": {"flows": steps}}, place)
        await becomes(jobs, ["f-one"])
        await enter(either, place, "f-one", "Pending", "Running", "Completed")
        await becomes(completed, ["f-one"])
        await either.delete(JOBS_VOLCANO, "f-one", namespace=place)
        await becomes(jobs, ["f-two"])


async def test_a_step_without_template_is_reported_and_made_when_the_template_comes(
    either: KubeClient, place: str
) -> None:
    async def owner() -> object:
        job = await read(either, JOBS_VOLCANO, "f-late", place)
        return job and [one["name"] for one in job["metadata"]["ownerReferences"]]

    async def reported() -> object:
        return await events(either, place, "f")

    spec = {"flows": [{"name": "late"}]}
    async with running(either, JobFlowReconciler):
        await make(either, JOBFLOWS, {"metadata": {"name": "f"}, "spec": spec}, place)
        await becomes(reported, [("Warning", "FailedCreate", "no JobTemplate is named late")])
        await make(either, JOBTEMPLATES, template("late"), place)
        await becomes(owner, ["f"])


async def test_a_job_of_another_namespace_that_names_the_flow_is_no_step_of_it(
    either: KubeClient, place: str
) -> None:
    """With the flow's UID and the step's name, it would be what the flow waits for. Where a garbage
    collector runs, it is deleted soon.
    """

    async def jobs() -> list[str]:
        return await names_of(either, JOBS_VOLCANO, place)

    await make(either, JOBTEMPLATES, template("one"), place)
    flow = await make(
        either,
        JOBFLOWS,
        {"metadata": {"name": "f"}, "spec": {"flows": [{"name": "one"}]}},
        place,
    )
    owner = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "controller": True}
    owner |= {key: flow["metadata"][key] for key in ("name", "uid")}
    forged = {"name": "f-one", "ownerReferences": [owner]}
    job = {"apiVersion": JOBS_VOLCANO.api_version, "kind": "Job", "metadata": forged}
    await either.create(JOBS_VOLCANO, {**job, "spec": template("one")["spec"]}, namespace="default")
    async with running(either, JobFlowReconciler):
        await becomes(jobs, ["f-one"])
    with contextlib.suppress(NotFound):
        await either.delete(JOBS_VOLCANO, "f-one", namespace="default")


async def test_a_step_whose_name_is_taken_is_made_when_the_other_job_goes(
    either: KubeClient, place: str
) -> None:
    async def owner() -> object:
        job = await read(either, JOBS_VOLCANO, "f-one", place)
        return job and [one["name"] for one in job["metadata"].get("ownerReferences", [])]

    async def reported() -> object:
        return await events(either, place, "f")

    await make(either, JOBTEMPLATES, template("one"), place)
    other = {"metadata": {"name": "f-one"}, "spec": template("one")["spec"]}
    await make(either, JOBS_VOLCANO, other, place)
    async with running(either, JobFlowReconciler):
        flow = {"metadata": {"name": "f"}, "spec": {"flows": [{"name": "one"}]}}
        await make(either, JOBFLOWS, flow, place)
        await becomes(reported, [("Warning", "FailedCreate", "another job is named f-one")])
        await either.delete(JOBS_VOLCANO, "f-one", namespace=place)
        await becomes(owner, ["f"])
