from datetime import UTC, datetime
from typing import Any

import pytest

from tutti.api.objects import Object
from tutti.api.pod_table import ready, restarts, status


def pod(*states: Any, phase: str = "Running", **more: Any) -> Object:
    statuses = [
        {"name": f"c{index}", "state": state, "ready": "running" in state}
        for index, state in enumerate(states)
    ]
    containers = [{"name": f"c{index}"} for index in range(len(states))]
    return {
        "metadata": more.pop("metadata", {}),
        "spec": {"containers": containers, **more.pop("spec", {})},
        "status": {"phase": phase, "containerStatuses": statuses, **more},
    }


RUNNING: Object = {"running": {}}
DONE: Object = {"terminated": {"exitCode": 0, "reason": "Completed"}}
INIT = {"initContainers": [{"name": "i0"}, {"name": "i1"}]}


@pytest.mark.parametrize(
    ("found", "word"),
    [
        pytest.param(pod(RUNNING), "Running", id="runs"),
        pytest.param(pod(phase="Pending"), "Pending", id="waits"),
        pytest.param(pod(phase="Failed", reason="Evicted"), "Evicted", id="evicted"),
        pytest.param(pod({"waiting": {"reason": "ErrImagePull"}}), "ErrImagePull", id="no image"),
        pytest.param(pod(DONE, phase="Succeeded"), "Completed", id="done"),
        pytest.param(pod(DONE, RUNNING), "NotReady", id="one is done"),
        pytest.param(pod({"terminated": {"exitCode": 3}}), "ExitCode:3", id="exit code"),
        pytest.param(pod({"terminated": {"signal": 9, "exitCode": 137}}), "Signal:9", id="signal"),
        pytest.param(pod(RUNNING, metadata={"deletionTimestamp": "now"}), "Terminating", id="goes"),
        pytest.param(
            pod(conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
            "SchedulingGated",
            id="gated",
        ),
        pytest.param(
            pod(
                spec=INIT,
                initContainerStatuses=[
                    {"name": "i0", "state": {"terminated": {"exitCode": 0}}},
                    {"name": "i1", "state": {"running": {}}},
                ],
            ),
            "Init:1/2",
            id="second init container",
        ),
        pytest.param(
            pod(
                spec=INIT,
                initContainerStatuses=[
                    {"name": "i0", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
                ],
            ),
            "Init:Error",
            id="init container failed",
        ),
    ],
)
def test_a_pods_word_is_kubectls(found: Object, word: str) -> None:
    assert status(found) == word


def test_sidecars_count_among_the_containers_that_are_ready() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always"}
    found = pod(
        RUNNING,
        {"waiting": {}},
        spec={"containers": [{"name": "c0"}, {"name": "c1"}], "initContainers": [sidecar]},
        initContainerStatuses=[{"name": "s", "state": RUNNING, "ready": True, "started": True}],
    )
    assert ready(found) == "2/3"


def test_restarts_say_when_the_last_one_was() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    found = pod(RUNNING)
    assert restarts(found, now) == "0"
    last = {"terminated": {"finishedAt": "2026-11-21T11:55:00Z"}}
    found["status"]["containerStatuses"][0].update(restartCount=3, lastState=last)
    assert restarts(found, now) == "3 (5m ago)"
