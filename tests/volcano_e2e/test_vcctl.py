"""Volcano's e2e/vcctl: what the command prints, and that it does what it says."""

from typing import Final

import pytest

from tests.controlplane.client import Object
from tests.volcano_e2e.cluster import Cluster
from tests.volcano_e2e.manifests import job, task
from tests.volcano_e2e.together import all_hold

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(150)]

TAINT: Final = {"key": "closed", "value": "for-tests", "effect": "NoSchedule"}
#: Widths of the columns behind the name, which is as wide as the longest and three more.
WIDTHS: Final = (15, 12, 12, 12, 6, 10, 10, 12, 10, 12, 10)
TITLES: Final = (
    *("Creation", "Phase", "JobType", "Replicas", "Min", "Pending"),
    *("Running", "Succeeded", "Failed", "Unknown", "RetryCount"),
)


def row(name: str, width: int, *cells: object) -> str:
    """A line of the table: every cell padded, the last one too."""
    padded = (f"{cell!s:<{wide}}" for cell, wide in zip(cells, WIDTHS, strict=True))
    return f"{name:<{width}}{''.join(padded)}\n"


def listed(found: Object) -> str:
    """What a list of this one Job looks like."""
    name, status = found["metadata"]["name"], found["status"]
    replicas = sum(one["replicas"] for one in found["spec"]["tasks"])
    counts = ("pending", "running", "succeeded", "failed", "unknown", "retryCount")
    width = max(len(name), len("Name")) + 3
    return row("Name", width, *TITLES) + row(
        *(name, width, found["metadata"]["creationTimestamp"][:10]),
        *(status["state"]["phase"], "Batch", replicas, status["minAvailable"]),
        *(status.get(key, 0) for key in counts),
    )


async def test_the_list_is_volcanos_to_the_last_space(e2e: Cluster) -> None:
    made = await e2e.create(job("test-job", task("all", await e2e.free("1"), cpu="1")))
    await e2e.job_runs(made)
    await e2e.job_is(made, "Running")
    typed = await e2e.vcctl("job", "list", "--namespace", e2e.namespace)
    assert typed == listed(await e2e.get("Job", "test-job"))


async def suspends_and_resumes(e2e: Cluster) -> None:
    made = await e2e.create(job("running", task("long-live-task", 1)))
    await e2e.job_runs(made)
    await e2e.job_is(made, "Running")
    about = ("--name", "running", "--namespace", e2e.namespace)
    await e2e.vcctl("job", "suspend", *about)
    await e2e.job_is(made, "Aborted")
    await e2e.is_gone("Pod", "running-long-live-task-0")
    await e2e.vcctl("job", "resume", *about)
    await e2e.job_runs(made)
    await e2e.job_is(made, "Running")


async def suspends_what_waits(e2e: Cluster) -> None:
    """A pod as large as the whole cluster; it is gone as soon as its Job says Aborted."""
    large = task("long-live-task", 1, cpu="16")
    made = await e2e.create(job("pending", large))
    await e2e.pods_are(made, 1, "Pending")
    await e2e.job_is(made, "Pending")
    await e2e.vcctl("job", "suspend", "--name", "pending", "--namespace", e2e.namespace)
    await e2e.job_is(made, "Aborted")
    assert await e2e.find("Pod", "pending-long-live-task-0") is None


async def test_jobs_are_suspended_and_resumed(e2e: Cluster) -> None:
    await all_hold({"running": suspends_and_resumes(e2e), "pending": suspends_what_waits(e2e)})


@pytest.mark.certify
async def test_a_job_made_while_every_node_was_tainted_can_be_deleted(e2e: Cluster) -> None:
    size = await e2e.free("1")
    await e2e.taint(TAINT)
    made = await e2e.create(job("test-del-job", task("all", size, cpu="1"), minAvailable=size // 2))
    await e2e.pods_are(made, size // 2, "Pending")
    await e2e.taint()
    await e2e.job_runs(made)
    await e2e.job_is(made, "Running")
    await e2e.vcctl("job", "delete", "--name", "test-del-job", "--namespace", e2e.namespace)
    assert await e2e.find("Job", "test-del-job") is None
