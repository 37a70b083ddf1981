"""Volcano's e2e/jobseq, job_error_handling.go: what policies make of pods that fail or vanish."""

from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.volcano_e2e.cluster import Cluster
from tests.volcano_e2e.manifests import job, policy, task

pytestmark = pytest.mark.integration
#: It does its work for a while, and then a command is missing.
FAILS: Final[Any] = {"line": "sleep 10s && xxx", "restart": "Never"}


def failing(name: str, *policies: Object, of_task: Object | None = None) -> Object:
    """Two pods that stay, and two that fail after a while."""
    own: Any = {"policies": [of_task]} if of_task else {}
    tasks = (task("success", 2), task("fail", 2, **FAILS, **own))
    return job(name, *tasks, policies=list(policies))


@pytest.mark.parametrize(
    ("action", "phases"),
    [
        ("RestartJob", ["Restarting"]),
        ("TerminateJob", ["Terminating", "Terminated"]),
        ("AbortJob", ["Aborting", "Aborted"]),
    ],
)
async def test_a_failed_pod_has_its_jobs_policy_carried_out(
    e2e: Cluster, action: str, phases: list[str]
) -> None:
    made = await e2e.create(failing("failing", policy(action, "PodFailed")))
    await e2e.job_passes(made, "Pending", "Running", *phases)
