"""What the next step of a Job is, for each phase and each thing that can have happened."""

from typing import Any

import pytest

from services.controller.core.jobs.step import JobMemory, LostPod, Step
from shared.kinds.job import INTERNAL_ACTIONS, PHASES
from tests.services.controller.core.jobs.making import (
    NOW_MS,
    a_group,
    a_job,
    a_pod,
    a_task,
    phase_of,
    step,
)
from tests.support.golden import Golden

KILLING = ("AbortJob", "TerminateJob", "CompleteJob", "RestartJob")


@pytest.mark.parametrize(
    ("phase", "command", "leads_to"),
    [
        *(
            (phase, command, to)
            for phase in ("Pending", "Running")
            for command, to in zip(
                KILLING, ("Aborting", "Terminating", "Completing", "Restarting"), strict=True
            )
        ),
        ("Restarting", "AbortJob", "Aborting"),
        ("Aborting", "ResumeJob", "Restarting"),
        ("Aborted", "ResumeJob", "Restarting"),
    ],
)
def test_a_command_that_kills_is_written_before_a_pod_is_killed(
    phase: str, command: str, leads_to: str
) -> None:
    planned = step(a_job(phase=phase, why="RestartJob"), a_pod("a-x-0"), command=command)
    assert phase_of(planned) == leads_to
    assert planned.status_first
    assert planned.status is not None
    assert planned.status.version == 1
    assert not planned.delete
    assert not planned.mark


@pytest.mark.parametrize("command", KILLING)
def test_the_write_that_begins_a_kill_counts_its_pods_as_going(command: str) -> None:
    """All may be gone before the next write: a watch must see the phase with its pods."""
    pods = (a_pod("a-x-0"), a_pod("a-x-1", going=True), a_pod("a-y-0", "Succeeded"))
    planned = step(a_job(a_task(), a_task("y", 1)), *pods, command=command)
    assert planned.status is not None
    all_go = command == "RestartJob"
    assert planned.status.terminating == (3 if all_go else 2)
    assert planned.status.succeeded == (0 if all_go else 1)
    assert planned.status.running == 0


def test_a_restart_of_a_task_counts_only_its_pods_as_going() -> None:
    job = a_job(
        a_task(), a_task("y", 1), policies=[{"event": "PodFailed", "action": "RestartTask"}]
    )
    planned = step(job, a_pod("a-x-0", "Failed", exit_code=1), a_pod("a-x-1"), a_pod("a-y-0"))
    assert planned.status is not None
    assert (planned.status.terminating, planned.status.running) == (2, 1)


def test_pods_of_higher_priority_are_made_first() -> None:
    """Its gang is bound as soon as enough of it is there."""
    tasks = [a_task(name, 1) for name in ("low", "none", "high")]
    for one, name in ((tasks[0], "low"), (tasks[2], "high")):
        one["template"]["spec"]["priorityClassName"] = name
    job = a_job(*tasks, phase="Pending")
    planned = step(job, group=a_group("Inqueue"), priorities={"low": -50, "high": 100})
    assert [task.name for task, _ in planned.make_pods] == ["high", "none", "low"]


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
@pytest.mark.parametrize("command", [*KILLING, "ResumeJob", "RestartTask"])
def test_a_finished_job_stays_what_it_is(phase: str, command: str) -> None:
    job = a_job(phase=phase, status={"succeeded": 2})
    planned = step(job, a_pod("a-x-0", "Succeeded"), command=command, grouped=False)
    assert phase_of(planned) == phase


@pytest.mark.parametrize(
    ("action", "killed"),
    [
        ("RestartPod", ["a-x-0"]),
        ("RestartTask", ["a-x-0", "a-x-1", "a-x-2", "a-x-3"]),
        ("RestartPartition", ["a-x-0", "a-x-1"]),
    ],
)
def test_a_restart_of_a_part_marks_just_that_part_and_counts_as_a_retry(
    action: str, killed: list[str]
) -> None:
    parts = {"totalPartitions": 2, "partitionSize": 2}
    job = a_job(
        a_task(replicas=4, partitionPolicy=parts),
        a_task("y", 1),
        policies=[{"event": "PodFailed", "action": action}],
    )
    pods = [a_pod(f"a-x-{index}") for index in range(1, 4)]
    planned = step(job, a_pod("a-x-0", "Failed", exit_code=1), *pods, a_pod("a-y-0"))
    assert [pod.metadata.name for pod in planned.mark] == killed
    assert planned.status is not None
    assert (planned.status.version, planned.status.retry_count) == (0, 1)


def test_a_restart_kills_what_is_older_and_waits_until_it_is_gone() -> None:
    job = a_job(phase="Restarting", why="RestartJob", status={"version": 1, "minAvailable": 2})
    planned = step(job, a_pod("a-x-0"), a_pod("a-x-1", going=True))
    assert [pod.metadata.name for pod in planned.delete] == ["a-x-0"]
    assert phase_of(planned) == "Restarting"
    waits = step(job, a_pod("a-x-0", going=True))
    assert not waits.delete
    cleans = step(job)
    assert cleans.delete_group
    assert phase_of(step(job, grouped=False)) == "Pending"


def test_a_restart_in_a_queue_that_is_not_open_waits_for_it_and_says_so_once() -> None:
    job = a_job(phase="Restarting", why="RestartJob", status={"version": 1, "retryCount": 1})
    closing = step(job, grouped=False, queue_state="Closing")
    assert phase_of(closing) != "Pending"
    assert closing.make_group is None
    (event,) = closing.events
    assert (event.type, event.reason) == ("Warning", "PodGroupError")
    assert event.message.endswith("queue `default` status is `Closing`.")
    again = step(job, grouped=False, queue_state="Closing", memory=closing.memory)
    assert again.events == ()
    assert phase_of(step(job, grouped=False, memory=again.memory)) == "Pending"


def test_a_restart_of_a_part_needs_no_open_queue_for_the_group_is_in_it() -> None:
    job = a_job(phase="Restarting", why="RestartTask", status={"retryCount": 1})
    assert phase_of(step(job, a_pod("a-x-0"), queue_state="Closed")) == "Pending"


def test_a_group_that_has_waited_for_long_is_reported(golden: Golden) -> None:
    job = a_job(phase="Pending")

    def waits(*, memory: JobMemory, after_ms: int, said: str, status: str = "True") -> Step:
        condition = {"type": "Unschedulable", "status": status, "message": said}
        group = a_group("Pending", status={"phase": "Pending", "conditions": [condition]})
        return step(job, group=group, memory=memory, now_ms=NOW_MS + after_ms)

    first = waits(memory=JobMemory(planned_before=True), after_ms=0, said="0/0")
    assert (first.events, first.again_ms) == ((), 2_000)
    other = waits(memory=first.memory, after_ms=1_500, said="3/3")
    assert (other.events, other.again_ms) == ((), 500)
    lasting = waits(memory=other.memory, after_ms=2_000, said="3/3")
    golden(*(event.message for event in lasting.events))
    assert waits(memory=lasting.memory, after_ms=3_000, said="3/3").events == ()
    over = waits(memory=lasting.memory, after_ms=4_000, said="", status="False")
    assert waits(memory=over.memory, after_ms=9_000, said="3/3").events == ()


def test_the_last_retry_fails_the_job_and_keeps_what_had_ended() -> None:
    job = a_job(
        phase="Restarting", why="RestartJob", status={"version": 1, "retryCount": 2}, maxRetry=2
    )
    assert phase_of(step(job, a_pod("a-x-0", "Failed"), a_pod("a-x-1"))) == "Failed"
    failed = a_job(phase="Failed", status={"version": 2})
    planned = step(failed, a_pod("a-x-0", "Failed"), a_pod("a-x-1"))
    assert [pod.metadata.name for pod in planned.delete] == ["a-x-1"]


def test_a_resume_uses_up_no_retry_and_goes_on_with_what_had_succeeded() -> None:
    job = a_job(phase="Aborted", status={"version": 1, "retryCount": 2}, maxRetry=2)
    planned = step(job, a_pod("a-x-0", "Succeeded"), command="ResumeJob", grouped=False)
    assert planned.status is not None
    assert planned.status.retry_count == 2
    resumed = a_job(
        phase="Restarting", why="ResumeJob", status={"version": 2, "retryCount": 2}, maxRetry=2
    )
    goes_on = step(resumed, a_pod("a-x-0", "Succeeded"), grouped=False)
    assert phase_of(goes_on) == "Pending"
    assert not goes_on.delete


def test_pods_are_made_once_the_group_is_admitted_and_not_before() -> None:
    job = a_job(phase="Pending")
    assert step(job, grouped=False).make_group is not None
    assert not step(job, group=a_group("Pending")).make_pods
    made = step(job, a_pod("a-x-1"), group=a_group("Inqueue")).make_pods
    assert [(task.name, index) for task, index in made] == [("x", 0)]


def test_surplus_pods_are_marked_and_go() -> None:
    planned = step(a_job(a_task(replicas=1)), a_pod("a-x-0"), a_pod("a-x-1"))
    assert [pod.metadata.name for pod in planned.mark] == ["a-x-1"]


def test_a_pod_that_a_dying_controller_made_too_late_goes() -> None:
    job = a_job(phase="Pending", status={"version": 3})
    planned = step(job, a_pod("a-x-0", "Pending", version=2))
    assert [pod.metadata.name for pod in planned.delete] == ["a-x-0"]


@pytest.mark.parametrize(
    ("pods", "spec", "leads_to"),
    [
        pytest.param(("Succeeded", "Succeeded"), {}, "Completed", id="all succeeded"),
        pytest.param(("Succeeded", "Failed"), {}, "Failed", id="a role below its minimum"),
        pytest.param(
            ("Succeeded", "Failed"), {"minAvailable": 1, "task": 1}, "Completed", id="enough did"
        ),
        pytest.param(("Succeeded", "Running"), {"minSuccess": 1}, "Completed", id="minSuccess"),
        pytest.param(("Succeeded", "Failed"), {"minSuccess": 2}, "Failed", id="minSuccess missed"),
        pytest.param(("Pending", "Running"), {}, "Pending", id="below minAvailable again"),
        pytest.param(("Running", "Running"), {}, "Running", id="all run"),
    ],
)
def test_a_running_job_ends_as_its_pods_did(
    pods: tuple[str, str], spec: dict[str, Any], leads_to: str
) -> None:
    minimum = spec.pop("task", 2)
    job = a_job(a_task(minAvailable=minimum), **{"minAvailable": 2, **spec})
    seen = [a_pod(f"a-x-{index}", phase, exit_code=0) for index, phase in enumerate(pods)]
    assert phase_of(step(job, *seen)) == leads_to


def test_counts_of_a_finished_job_stay_when_its_pods_are_deleted() -> None:
    job = a_job(
        phase="Completed",
        status={"succeeded": 2, "taskStatusCount": {"x": {"phase": {"Succeeded": 2}}}},
    )
    assert step(job, a_pod("a-x-0", "Succeeded"), grouped=False).status is None
    assert step(job, grouped=False).status is None


def test_a_pod_that_our_binder_released_is_no_event() -> None:
    job = a_job(policies=[{"event": "*", "action": "RestartJob"}])
    released: dict[str, Any] = {
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "GangReleased"}]
    }
    planned = step(job, a_pod("a-x-0", "Failed", going=True, **released), a_pod("a-x-1"))
    assert phase_of(planned) in ("", "Running", "Pending")


def test_a_pod_that_is_evicted_at_its_run_limit_is_one() -> None:
    job = a_job(policies=[{"event": "PodFailed", "action": "AbortJob"}])
    evicted: dict[str, Any] = {
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "RunLimitExceeded"}]
    }
    planned = step(job, a_pod("a-x-0", "Failed", going=True, **evicted), a_pod("a-x-1"))
    assert phase_of(planned) == "Aborting"


def lost(name: str, version: int = 0) -> LostPod:
    _, task, index = name.split("-")
    return LostPod(
        name=name, uid=f"uid-{name}", task=task, index=int(index), version=version, at_ms=NOW_MS
    )


def test_a_lost_pod_is_answered_once_and_only_if_it_is_of_the_newest_version() -> None:
    job = a_job(policies=[{"event": "PodEvicted", "action": "AbortJob"}], status={"version": 2})
    pods = [a_pod("a-x-1", version=2)]
    old = step(job, *pods, memory=JobMemory(planned_before=True, lost=(lost("a-x-0", version=1),)))
    assert phase_of(old) != "Aborting"
    assert old.memory.lost == ()
    new = step(job, *pods, memory=JobMemory(planned_before=True, lost=(lost("a-x-0", version=2),)))
    assert phase_of(new) == "Aborting"
    assert new.memory.lost == ()


def test_two_pods_lost_at_once_are_both_answered() -> None:
    job = a_job(
        a_task(), a_task("y", 2), policies=[{"event": "PodEvicted", "action": "RestartTask"}]
    )
    memory = JobMemory(planned_before=True, lost=(lost("a-x-0"), lost("a-y-0")))
    pods = [a_pod("a-x-1"), a_pod("a-y-1")]
    first = step(job, *pods, memory=memory)
    assert [pod.metadata.name for pod in first.mark] == ["a-x-1"]
    restarting = a_job(
        a_task(),
        a_task("y", 2),
        policies=[{"event": "PodEvicted", "action": "RestartTask"}],
        phase="Restarting",
        why="RestartTask",
        status={"retryCount": 1, "minAvailable": 4},
    )
    second = step(restarting, *pods[1:], memory=first.memory)
    assert [pod.metadata.name for pod in second.mark] == ["a-y-1"]


def test_pods_deleted_between_two_looks_are_detected_from_the_counts() -> None:
    job = a_job(
        policies=[{"event": "PodEvicted", "action": "RestartJob"}],
        status={"taskStatusCount": {"x": {"phase": {"Running": 2}}}},
    )
    assert phase_of(step(job, a_pod("a-x-1"), memory=JobMemory())) == "Restarting"
    assert phase_of(step(job, a_pod("a-x-0"), a_pod("a-x-1"), memory=JobMemory())) != "Restarting"


def test_a_delayed_action_waits_from_when_it_happened_and_is_dropped_when_the_pod_runs(
    golden: Golden,
) -> None:
    policies = [{"event": "PodPending", "action": "AbortJob", "timeout": "40s"}]
    job = a_job(phase="Pending", policies=policies)
    pending = a_pod("a-x-0", "Pending", created_ms=NOW_MS - 30_000)
    early = step(job, pending)
    assert early.again_ms == 10_000
    golden(*(event.message for event in early.events))
    again = step(job, pending, memory=early.memory, now_ms=NOW_MS + 1_000)
    assert not again.events
    late = step(job, pending, memory=early.memory, now_ms=NOW_MS + 10_000)
    assert phase_of(late) == "Aborting"
    runs = step(job, a_pod("a-x-0"), memory=early.memory, now_ms=NOW_MS + 10_000)
    assert phase_of(runs) != "Aborting"
    assert runs.memory.waiting_since_ms == {}


@pytest.mark.parametrize(
    ("policy", "phase", "exit_code", "acts"),
    [
        pytest.param({"exitCode": 3}, "Failed", 3, True, id="its exit code"),
        pytest.param({"exitCode": 3}, "Failed", 4, False, id="another exit code"),
        pytest.param({"event": "PodEvicted"}, "Failed", 1, False, id="another event"),
        pytest.param({"events": ["PodEvicted", "PodFailed"]}, "Failed", 1, True, id="of a list"),
        pytest.param({"event": "PodPending"}, "Pending", None, False, id="pending, no timeout"),
        pytest.param({"event": "*"}, "Pending", None, False, id="anything, but every pod pends"),
    ],
)
def test_a_policy_acts_on_its_event(
    policy: dict[str, Any], phase: str, exit_code: int | None, acts: bool
) -> None:
    job = a_job(policies=[{**policy, "action": "AbortJob"}])
    planned = step(job, a_pod("a-x-0", phase, exit_code=exit_code), a_pod("a-x-1"))
    assert (phase_of(planned) == "Aborting") == acts


@pytest.mark.parametrize("action", [*sorted(INTERNAL_ACTIONS), "ResumeJob", "NoSuchAction"])
def test_an_action_without_effect_behind_an_exit_code_keeps_no_other_policy_from_acting(
    action: str,
) -> None:
    policies = [{"exitCode": 7, "action": action}, {"event": "PodFailed", "action": "AbortJob"}]
    job = a_job(policies=policies)
    failed = a_pod("a-x-0", "Failed", exit_code=7)
    alone = step(job, failed, a_pod("a-x-1"))
    assert (phase_of(alone), alone.events) == ("Running", ())
    both = step(job, failed, a_pod("a-x-1", "Failed", exit_code=1))
    assert phase_of(both) == "Aborting"


def test_a_role_that_waits_for_another_does_not_keep_the_gang_from_starting() -> None:
    launcher = a_task("launcher", 1, dependsOn={"name": ["x"]})
    job = a_job(a_task(), launcher, phase="Pending")
    made = step(job, grouped=False).make_group
    assert made is not None
    assert made["spec"]["minMember"] == 2
    assert made["spec"]["minTaskMember"] == {"x": 2, "launcher": 0}
    assert made["spec"]["minResources"]["pods"] == "3"
    begun = step(job, a_pod("a-x-0"), a_pod("a-x-1"), group=a_group(spec={"minMember": 2}))
    assert [(task.name, index) for task, index in begun.make_pods] == [("launcher", 0)]
    assert begun.change_group is not None
    assert begun.change_group["spec"]["minMember"] == 3


@pytest.mark.parametrize(
    ("replicas", "least", "available", "minimum"),
    [
        pytest.param(8, 4, 9, 8, id="all pods are needed: all that can be made are"),
        pytest.param(8, 4, 5, 5, id="enough pods can be made: nothing is lowered"),
    ],
)
def test_a_role_that_waits_lowers_the_minimum_by_no_more_than_its_pods(
    replicas: int, least: int, available: int, minimum: int
) -> None:
    launcher = a_task("launcher", 1, dependsOn={"name": ["x"]})
    workers = a_task("x", replicas, minAvailable=least)
    made = step(a_job(workers, launcher, phase="Pending", minAvailable=available), grouped=False)
    assert made.make_group is not None
    spec = made.make_group["spec"]
    assert (spec["minMember"], spec["minTaskMember"]) == (minimum, {"x": least, "launcher": 0})


def test_every_phase_has_a_next_step() -> None:
    for phase in ("", *PHASES):
        for pods in ((), (a_pod("a-x-0"),), (a_pod("a-x-0", "Failed"), a_pod("a-x-1", going=True))):
            for grouped in (True, False):
                step(a_job(phase=phase), *pods, grouped=grouped)


@pytest.mark.parametrize(("version", "root"), [(0, "u-1"), (1, None)], ids=["first", "restarted"])
def test_only_the_first_group_of_a_job_continues_its_trace(version: int, root: str | None) -> None:
    job = a_job(a_task(), phase="Pending", status={"version": version})
    # A copy of another job's manifest, or of its group's annotations.
    job.metadata.annotations["tutti.dev/trace-root"] = "u-0"
    made = step(job, grouped=False).make_group
    assert made is not None
    assert made["metadata"]["annotations"].get("tutti.dev/trace-root") == root


@pytest.mark.parametrize("phase", PHASES)
def test_a_job_of_two_billion_pods_is_named_and_not_listed(phase: str, golden: Golden) -> None:
    """A user writes it in 300 bytes, and the names of its pods take more memory than there is."""
    job = a_job(a_task(replicas=2**31 - 1), phase=phase, minAvailable=1, plugins={"svc": []})
    first = step(job, a_pod("a-x-0"))
    assert [event.reason for event in first.events] == ["JobTooLarge"]
    golden(first.events[0].message)
    assert (first.status, first.make_pods, first.delete, first.make_group) == (None, (), (), None)
    again = step(job, a_pod("a-x-0"), memory=first.memory)
    assert not again.events
    small = step(a_job(a_task(replicas=1)), a_pod("a-x-0"), memory=again.memory)
    assert small.ensure_objects
