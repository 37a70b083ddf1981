"""`tutti job run --wait` while the test plays the controller."""

import asyncio

import pytest

from tests.api_suite.client import Client
from tests.tutti.conftest import Typed
from tests.tutti.job.test_command import GROUPS, JOBS, set_status
from tutti.api.objects import Object
from tutti.job.submission import Goal, Progress, sentence, verdict


@pytest.mark.integration
@pytest.mark.parametrize(
    ("flags", "last", "status"),
    [
        pytest.param([], "Completed", 0, id="completed"),
        pytest.param([], "Failed", 1, id="failed"),
        pytest.param(["--until", "running"], "Running", 0, id="running is enough"),
    ],
)
async def test_waiting_ends_with_the_job_and_shows_its_progress(
    typed: Typed, cluster_api: Client, flags: list[str], last: str, status: int
) -> None:
    async with cluster_api.watch(JOBS) as events, asyncio.TaskGroup() as group:
        words = ["job", "run", "-N", "train", "--wait", "--timeout", "20s", *flags]
        waiting = group.create_task(typed(*words))
        _, job = await events.next()
        uid = job["metadata"]["uid"]
        condition = {"type": "Unschedulable", "status": "True", "message": "0/4 nodes have room"}
        podgroup = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": f"train-{uid}"},
            "spec": {"minMember": 1},
            "status": {"phase": "Pending", "conditions": [condition]},
        }
        await cluster_api.create(GROUPS, podgroup)
        await set_status(cluster_api, "train", state={"phase": "Pending"}, pending=1)
        await set_status(cluster_api, "train", state={"phase": last, "message": "so it went"})
    done = waiting.result()
    assert done.exit_code == status, done.output
    lines = done.output.splitlines()
    assert lines[0] == "run job train successfully"
    assert f"train: {last}, 1 pods" in lines[-1]


@pytest.mark.integration
async def test_a_job_that_stays_away_from_the_goal_is_left_after_the_time(
    typed: Typed, cluster_api: Client
) -> None:
    done = await typed("job", "run", "-N", "train", "--wait", "--timeout", "300ms")
    assert done.exit_code == 1
    assert "train: not finished within 0.3 s; nothing was deleted" in done.output
    assert await cluster_api.names(JOBS) == ["train"]


@pytest.mark.parametrize(
    ("phase", "goal", "expected"),
    [
        ("Pending", "running", "not yet"),
        ("Running", "running", "yes"),
        ("Running", "finished", "not yet"),
        ("Restarting", "running", "not yet"),
        ("Completed", "running", "yes"),
        ("Completed", "finished", "yes"),
        ("Aborted", "running", "no"),
        ("Terminated", "finished", "no"),
        ("", "finished", "not yet"),
    ],
)
def test_a_phase_is_the_goal_the_way_or_the_end(phase: str, goal: Goal, expected: str) -> None:
    job: Object = {"status": {"state": {"phase": phase}}}
    assert verdict(job, goal) == expected


@pytest.mark.parametrize(
    ("status", "why", "reported"),
    [
        ({}, "no room", "j: not yet seen by a controller, 2 pods, no room"),
        ({"state": {"phase": "Pending"}, "pending": 2}, "", "j: Pending, 2 pods, 2 pending"),
        (
            {"state": {"phase": "Running"}, "running": 2},
            "old news",
            "j: Running, 2 pods, 2 running",
        ),
        (
            {"state": {"phase": "Failed", "message": "it broke"}, "failed": 1},
            "old news",
            "j: Failed, 2 pods, 1 failed, it broke",
        ),
    ],
    ids=["fresh", "pending", "running", "failed"],
)
def test_a_line_says_how_it_stands_and_why_it_waits_while_it_waits(
    status: Object, why: str, reported: str
) -> None:
    spec = {"tasks": [{"replicas": 2}]}
    assert sentence({"metadata": {"name": "j"}, "spec": spec, "status": status}, why) == reported


def test_on_a_terminal_one_line_is_drawn_over_and_elsewhere_changes_are_lines() -> None:
    drawn: list[str] = []
    progress = Progress(terminal=True, out=drawn.append)
    for line in ("a", "a", "b"):
        progress.show("job", line)
    progress.close()
    assert drawn == ["\r\x1b[Ka", "\r\x1b[Kb", "\n"]
    both: list[str] = []
    progress = Progress(terminal=True, out=both.append)
    for name in ("one", "other"):
        progress.show(name, name)
    progress.close()
    assert both == ["\r\x1b[Kone", "\n", "other\n"]
    plain: list[str] = []
    progress = Progress(terminal=False, out=plain.append)
    for line in ("a", "a", "b"):
        progress.show("job", line)
    progress.close()
    assert plain == ["a\n", "b\n"]
