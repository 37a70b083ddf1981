"""The end of a gang whose workload ends before its pods, or makes its Jobs again."""

from typing import Any

import msgspec
import pytest

from shared.model.objects import Pod, PodGroup
from tests.services.gang_planner.core.lifecycle.gang_lives import FULL, cluster
from tests.services.gang_planner.core.lifecycle.test_ends import (
    DEATHS,
    GRACE,
    JOB,
    clean,
    end,
    running,
    three_of_a_job,
)
from tests.services.gang_planner.core.scene import amounts, make_group, make_pods


@DEATHS
@pytest.mark.parametrize("succeeded", [0, 1, 2])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_gang_whose_workload_has_ended_waits_for_no_pods(
    succeeded: int, *, is_first: bool, death: Any
) -> None:
    """By a deadline or a success policy: too few of its pods had ended when they were deleted."""
    scene = cluster()
    pods = three_of_a_job(scene)
    end(scene, *pods[:succeeded])

    def end_job() -> None:
        group: PodGroup = scene.objects["group-a"]
        version = group.resource_version + 1
        scene.put(msgspec.structs.replace(group, resource_version=version, workload_ended=True))
        scene.until_quiet()

    if is_first:
        end_job()
        assert scene.verdict("a").phase == "Running"
    clean(scene, *pods[succeeded:])
    if not is_first:
        assert scene.verdict("a").phase != "Completed"
        end_job()
    death(scene)
    verdict = scene.verdict("a")
    assert (verdict.phase, verdict.succeeded, verdict.why) == ("Completed", succeeded, None)
    clean(scene, *pods[:succeeded])
    verdict = scene.verdict("a")
    assert (verdict.phase, verdict.succeeded, verdict.why) == ("Completed", succeeded, None)
    scene.until_quiet(within_ms=120_000)
    assert not scene.holds()


def test_a_workload_that_ended_before_its_gang_started_requests_nothing() -> None:
    scene = cluster(1)
    fields: dict[str, Any] = {"dialect": "volcano", "phase": "Inqueue", "waits_for_inqueue": True}
    group = make_group("a", 3, min_resources=amounts(cpu=12_000), **fields)
    pods = make_pods("a", 3, FULL, owner=JOB)
    scene.put(group, *pods)
    scene.until_quiet()
    clean(scene, *pods)
    (queue,) = scene.state.queues.entries.values()
    assert queue.promises
    scene.put(msgspec.structs.replace(group, resource_version=9, workload_ended=True))
    scene.until_quiet()
    assert (scene.verdict("a").phase, scene.verdict("a").why) == ("Completed", None)
    assert not queue.promises


def test_succeeded_pods_of_a_job_that_is_made_again_count_no_longer() -> None:
    """As of a JobSet that restarts: it makes each of its Jobs again once the former one is gone, so
    the gang always has pods.
    """
    scene = cluster()

    def pods_of(attempt: int) -> list[Pod]:
        return [
            msgspec.structs.replace(
                pod,
                uid=f"{pod.uid}-{attempt}",
                name=f"{pod.name}-{attempt}",
                owner=msgspec.structs.replace(JOB, name=f"a-{i}", uid=f"job-{i}-{attempt}"),
            )
            for i, pod in enumerate(make_pods("a", 3, FULL))
        ]

    first, again = pods_of(0), pods_of(1)
    running(scene, make_group("a", 3, settings=GRACE), first)
    end(scene, first[0])
    end(scene, first[1], phase="Failed")
    for before, after in zip(first, again, strict=True):
        clean(scene, before)
        scene.put(after)
        scene.until_quiet()
        scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=2_000)
    assert (scene.verdict("a").running, scene.verdict("a").succeeded) == (3, 0)
    clean(scene, again[2])
    assert scene.verdict("a").phase == "Unknown"
