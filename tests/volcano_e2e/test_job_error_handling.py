"""Volcano's e2e/jobseq, job_error_handling.go: what policies make of pods that fail or vanish."""

from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.volcano_e2e.cluster import Cluster
from tests.volcano_e2e.manifests import BUSYBOX, job, policy, task
from tests.volcano_e2e.together import all_hold

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(150)]

#: It works until the case ends it. Volcano's own do their work for ten seconds, and hope that all
#: pods run by then.
WORKS: Final[Any] = {"line": "sleep 60m", "restart": "Never"}
#: What follows an action, as a watch shows it.
AFTER: Final = {
    "RestartJob": ("Restarting", "Pending", "Running"),
    "TerminateJob": ("Terminating", "Terminated"),
    "AbortJob": ("Aborting", "Aborted"),
}
TAINT: Final = {"key": "closed", "value": "for-tests", "effect": "NoSchedule"}


def failing(name: str, *policies: Object, of_task: Object | None = None) -> Object:
    """Two pods that stay, and two that fail."""
    own: Any = {"policies": [of_task]} if of_task else {}
    tasks = (task("success", 2), task("fail", 2, **WORKS, **own))
    return job(name, *tasks, policies=list(policies))


def losing(name: str, *policies: Object, of_task: Object | None = None) -> Object:
    """Four pods that stay until one of the task `delete` is deleted."""
    own: Any = {"policies": [of_task]} if of_task else {}
    return job(name, task("success", 2), task("delete", 2, **own), policies=list(policies))


async def fails_and(e2e: Cluster, made: Object, *phases: str, exit_code: int = 127) -> None:
    """Its pods fail once it runs."""
    created = await e2e.create(made)
    await e2e.job_passes(created, "Pending", "Running")
    names = [pod["metadata"]["name"] for pod in await e2e.pods_of(created)]
    await e2e.finish(*(name for name in names if "-fail-" in name), exit_code=exit_code)
    await e2e.job_passes(created, *phases)


async def loses_and(e2e: Cluster, made: Object, *phases: str) -> None:
    """Delete a pod as a user would."""
    created = await e2e.create(made)
    await e2e.job_passes(created, "Pending", "Running")
    await e2e.delete("Pod", f"{made['metadata']['name']}-delete-0")
    await e2e.job_passes(created, *phases)


async def test_policies_follow_failed_and_lost_pods(e2e: Cluster) -> None:
    """Of Jobs and of tasks; a task's own goes before its Job's."""
    restart, terminate, abort = (
        policy(action, "PodFailed") for action in ("RestartJob", "TerminateJob", "AbortJob")
    )
    both = policy("TerminateJob", "PodEvicted", "PodFailed", "PodEvicted")
    cases = {
        "failed-restart": fails_and(e2e, failing("failed-restart", restart), "Restarting"),
        "failed-terminate": fails_and(
            e2e, failing("failed-terminate", terminate), *AFTER["TerminateJob"]
        ),
        "failed-abort": fails_and(e2e, failing("failed-abort", abort), *AFTER["AbortJob"]),
        "task-failed-restart": fails_and(
            e2e, failing("task-failed-restart", of_task=restart), "Restarting"
        ),
        "task-before-job": fails_and(
            e2e, failing("task-before-job", abort, of_task=restart), "Restarting"
        ),
        "any-restart": loses_and(
            e2e, losing("any-restart", policy("RestartJob", "*")), *AFTER["RestartJob"]
        ),
        "evicted-or-failed": loses_and(
            e2e, losing("evicted-or-failed", both), *AFTER["TerminateJob"]
        ),
    }
    for action, phases in AFTER.items():
        evicted, name = policy(action, "PodEvicted"), f"evicted-{action.lower()}"
        cases[name] = loses_and(e2e, losing(name, evicted), *phases)
    for action in ("RestartJob", "TerminateJob"):
        evicted, name = policy(action, "PodEvicted"), f"task-evicted-{action.lower()}"
        cases[name] = loses_and(e2e, losing(name, of_task=evicted), *AFTER[action])
    await all_hold(cases)


async def completes(e2e: Cluster, name: str, policies: list[Object], of_task: list[Object]) -> None:
    short = task("completed-task", 2, image=BUSYBOX, line="sleep 20", policies=of_task)
    tasks = (short, task("terminating-task", 2))
    made = await e2e.create(job(name, *tasks, policies=policies))
    await e2e.job_passes(made, "Pending", "Completed")


async def terminates_after_restarts(e2e: Cluster) -> None:
    """The containers of one pod are said to have been restarted more often than its task allows."""
    tasks = (
        task("success", 2, image=BUSYBOX, line="sleep 60"),
        task("failed", 2, image=BUSYBOX, maxRetry=3, **WORKS),
    )
    policies = [policy("TerminateJob", "TaskFailed")]
    made = await e2e.create(job("task-failed", *tasks, policies=policies))
    await e2e.job_passes(made, "Pending", "Running")
    status: Object = {"status": {"containerStatuses": [{"restartCount": 4}]}}
    where = f"/api/v1/namespaces/{e2e.namespace}/pods/task-failed-failed-0/status"
    await e2e.api.patch(where, status)
    await e2e.job_passes(made, "Terminating", "Terminated")


async def restarts_by_exit_code(e2e: Cluster) -> None:
    tasks = (task("success", 1), task("fail", 1, **WORKS))
    made = job("exit-code", *tasks, policies=[policy("RestartJob", exit_code=3)])
    await fails_and(e2e, made, "Restarting", exit_code=3)


async def terminates_unless_the_pod_comes_back(e2e: Cluster) -> None:
    """A failed pod is started again; that it had to go for this ends nothing within the timeout."""
    policies = [
        policy("RestartPod", "PodFailed"),
        policy("TerminateJob", "PodEvicted", timeout="5m"),
    ]
    await fails_and(e2e, failing("pod-restart", *policies), "Pending", "Running")


async def test_policies_follow_ends_of_tasks_and_exit_codes(e2e: Cluster) -> None:
    done = [policy("CompleteJob", "TaskCompleted")]
    await all_hold(
        {
            "job": completes(e2e, "job-complete", done, []),
            "task": completes(e2e, "task-complete", [], done),
            "restarts": terminates_after_restarts(e2e),
            "exit code": restarts_by_exit_code(e2e),
            "restart pod": terminates_unless_the_pod_comes_back(e2e),
        }
    )


@pytest.mark.parametrize(
    "action", ["RestartJob", pytest.param("AbortJob", marks=pytest.mark.certify)]
)
async def test_a_gang_that_lost_a_member_for_good_is_unknown_to_its_policy(
    e2e: Cluster, action: str
) -> None:
    """It fills the cluster; then nothing new may start anywhere."""
    full = task("test", await e2e.free("1"), cpu="1")
    policies = [policy(action, "Unknown")]
    made = await e2e.create(job("unschedulable", full, policies=policies))
    await e2e.job_runs(made)
    await e2e.taint(TAINT)
    await e2e.delete("Pod", "unschedulable-test-0")
    if action == "AbortJob":
        await e2e.job_passes(made, "Aborting", "Aborted")
        return
    await e2e.job_passes(made, "Restarting", "Pending")
    await e2e.taint()
    await e2e.job_passes(made, "Running")


async def test_tasks_of_higher_priority_are_placed_first(e2e: Cluster) -> None:
    """Each node has room for one pod of either task, and the gang needs one for each node."""
    await e2e.priority("master-pri", 100)
    await e2e.priority("worker-pri", -50)
    tasks = (
        task("higher", 4, cpu="3", pod={"priorityClassName": "master-pri"}),
        task("lower", 4, cpu="3", pod={"priorityClassName": "worker-pri"}),
    )
    made = await e2e.create(job("task-priority", *tasks, minAvailable=4))
    await e2e.job_passes(made, "Pending", "Running")

    def is_high(pod: Object) -> bool:
        return bool(pod["spec"].get("priorityClassName") == "master-pri")

    await e2e.pods_are(made, 4, "Running", "Succeeded", chosen=is_high)
