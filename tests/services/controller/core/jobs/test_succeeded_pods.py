"""A pod of a Job that has succeeded is not run again when it is gone, until a restart asks for it.

Volcano runs it again: its users' nodes are removed by an autoscaler once a part of a job has ended.
"""

import msgspec
import pytest

from services.controller.core.jobs.step import JobMemory, SeenPod, Step
from services.controller.core.jobs.succeeded_pods import remembered
from shared.kinds.job import Job
from tests.services.controller.core.jobs.making import (
    a_group,
    a_job,
    a_pod,
    a_task,
    phase_of,
    step,
)


def after(*names: str) -> JobMemory:
    """The memory of a controller that saw these pods succeed and go."""
    gone = tuple(remembered(a_pod(name, "Succeeded", going=True)) for name in names)
    return JobMemory(succeeded=gone, planned_before=True)


def made(planned: Step) -> list[str]:
    return [f"{task.name}-{index}" for task, index in planned.make_pods]


def kept(planned: Step) -> list[str]:
    return [one.metadata.name for one in planned.memory.succeeded]


def of_three(**fields: object) -> Job:
    return a_job(a_task("x", 3), **fields)  # type: ignore[arg-type]


def test_it_is_not_made_again_and_counts_until_the_job_has_completed() -> None:
    memory = after("a-x-1")
    runs = step(of_three(), a_pod("a-x-0"), a_pod("a-x-2"), group=a_group(), memory=memory)
    assert (made(runs), kept(runs)) == ([], ["a-x-1"])
    assert runs.status is not None
    assert (runs.status.running, runs.status.succeeded, runs.status.terminating) == (2, 1, 0)
    assert runs.status.task_status_count["x"].phase == {"Running": 2, "Succeeded": 1}
    ends = step(
        of_three(), a_pod("a-x-0", "Succeeded"), a_pod("a-x-2", "Succeeded"), memory=runs.memory
    )
    assert phase_of(ends) == "Completed"
    assert ends.status is not None
    assert ends.status.succeeded == 3


def test_it_is_no_lost_pod_and_completes_its_task() -> None:
    policies = [
        {"event": "PodEvicted", "action": "AbortJob"},
        {"event": "TaskCompleted", "action": "CompleteJob"},
    ]
    job = of_three(policies=policies)
    runs = step(job, a_pod("a-x-0"), a_pod("a-x-2"), memory=after("a-x-1"))
    assert phase_of(runs) == "Running"
    done = step(job, a_pod("a-x-0", "Succeeded"), memory=after("a-x-1", "a-x-2"))
    assert phase_of(done) == "Completing"


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ({"event": "PodFailed", "action": "RestartJob"}, []),
        ({"event": "PodFailed", "action": "RestartTask"}, []),
        ({"event": "PodFailed", "action": "RestartPod"}, ["a-x-1"]),
        ({"event": "PodFailed", "action": "AbortJob"}, ["a-x-1"]),
    ],
    ids=["the job", "its task", "another pod", "an abort"],
)
def test_it_is_run_again_with_what_is_restarted(policy: dict[str, str], left: list[str]) -> None:
    pods = (a_pod("a-x-0", "Failed"), a_pod("a-x-2"))
    planned = step(of_three(policies=[policy]), *pods, memory=after("a-x-1"))
    assert kept(planned) == left
    assert "a-x-1" not in {pod.metadata.name for pod in (*planned.mark, *planned.delete)}
    assert planned.status is not None
    assert planned.status.succeeded == len(left)


@pytest.mark.parametrize(("why", "left"), [("RestartJob", []), ("ResumeJob", ["a-x-1"])])
def test_a_resumed_job_goes_on_with_it_and_a_restarted_one_does_not(
    why: str, left: list[str]
) -> None:
    job = of_three(phase="Restarting", why=why, status={"version": 1})
    planned = step(job, memory=after("a-x-1"), grouped=False)
    assert kept(planned) == left
    assert phase_of(planned) == "Pending"


def test_it_goes_with_its_place_in_the_task() -> None:
    planned = step(a_job(a_task("x", 1)), a_pod("a-x-0"), memory=after("a-x-1"))
    assert kept(planned) == []
    assert planned.status is not None
    assert (planned.status.running, planned.status.succeeded) == (1, 0)


def counted(*pods: SeenPod, succeeded: int) -> Step:
    """The first step of a controller after one that counted so many succeeded pods."""
    running = 3 - succeeded
    phases = {"Succeeded": succeeded, "Running": running}
    status = {"running": running, "taskStatusCount": {"x": {"phase": phases}}}
    return step(of_three(status=status), *pods, group=a_group(), memory=JobMemory())


def test_the_next_controller_knows_it_from_the_counts() -> None:
    planned = counted(a_pod("a-x-0"), a_pod("a-x-2"), succeeded=1)
    assert (made(planned), kept(planned)) == ([], ["a-x-1"])
    both = counted(a_pod("a-x-0"), a_pod("a-x-2", "Succeeded"), succeeded=2)
    assert (made(both), kept(both)) == ([], ["a-x-1"])


def test_if_the_counts_leave_open_which_pod_has_succeeded_all_that_are_gone_run_again() -> None:
    planned = counted(a_pod("a-x-0"), succeeded=1)
    assert (made(planned), kept(planned)) == (["x-1", "x-2"], [])


def test_a_pod_that_is_there_again_is_not_remembered() -> None:
    """A user made it."""
    pods = [a_pod(f"a-x-{index}") for index in range(3)]
    planned = step(of_three(), *pods, memory=after("a-x-1"))
    assert kept(planned) == []
    assert planned.status is not None
    assert planned.status.succeeded == 0


def test_what_is_remembered_is_small_and_says_that_it_succeeded() -> None:
    pod = a_pod("a-x-1", "Succeeded", version=2, going=True, exit_code=0)
    small = remembered(pod)
    assert (small.task, small.index, small.version, small.marked) == ("x", 1, 2, False)
    assert (small.status.phase, small.terminating, small.alive) == ("Succeeded", False, False)
    assert len(msgspec.json.encode(small)) < 400
