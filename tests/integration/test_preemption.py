"""Gangs of higher priority on a full cluster, on a real API server: as few pods as suffice are
evicted by the eviction API, budgets are kept, and the gang is bound whole where they were.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import RawClient
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

SUITE_FLAGS: Final = (f"--scheduler-conf={Path(__file__).with_name('preempting.yaml')}",)
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
WHOLE: Final = {"cpu": "4"}
#: A refused eviction is followed by a pause, and then by another search.
AGAIN_S: Final = 30.0


@pytest.fixture(autouse=True)
async def classes(api: RawClient) -> AsyncIterator[None]:
    """Priority classes `low` and `high`."""
    for name, value in (("low", 10), ("high", 1000)):
        await api.create(CLASSES, {"metadata": {"name": name}, "value": value})
    yield
    for name in ("low", "high"):
        await api.delete(f"{CLASSES}/{name}", {})


async def submit(stage: Stage, name: str, size: int, *, minimum: int, priority: str) -> None:
    await stage.group(name, minimum, spec={"priorityClassName": priority})
    await stage.members(
        name,
        size,
        requests=WHOLE,
        labels={"app": name},
        spec={"priorityClassName": priority, "terminationGracePeriodSeconds": 1},
    )


async def crowded(stage: Stage) -> None:
    """Four nodes, full of an elastic job of low priority."""
    await stage.nodes(4)
    await submit(stage, "elastic", 4, minimum=1, priority="low")
    await stage.bound("elastic", 4)


async def budget(stage: Stage, least: int) -> None:
    """At least so many pods of the elastic job have to stay."""
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "elastic"}}}
    path = f"/apis/policy/v1/namespaces/{stage.namespace}/poddisruptionbudgets"
    await stage.api.create(path, {"metadata": {"name": "guard"}, "spec": spec})

    async def judged() -> bool:
        found = await stage.api.get(f"{path}/guard")
        assert found.get("status", {}).get("currentHealthy") == 4, found.get("status")
        return True

    await eventually(judged, timeout_s=AGAIN_S, because="the budget knows its pods")


async def test_the_smallest_set_of_an_elastic_job_is_evicted_and_the_gang_runs_whole(
    stage: Stage,
) -> None:
    await crowded(stage)
    await submit(stage, "urgent", 2, minimum=2, priority="high")
    await stage.bound("urgent", 2)
    assert len(await stage.placed("elastic")) == 2, "two, and no more"

    async def reported() -> bool:
        found = (await stage.seen_group("elastic")).get("status", {}).get("conditions", ())
        evicted = [one for one in found if one["type"] == "Evicted"]
        assert evicted, found
        assert "2 of its pods were preempted for gang" in evicted[0]["message"]
        return True

    await eventually(reported, timeout_s=SEEN_S, because="the job says what happened to it")


async def test_a_dry_run_names_the_pods_that_it_would_preempt_and_preempts_none(
    stage: Stage,
) -> None:
    await crowded(stage)
    container = {"name": "c", "image": "none", "resources": {"requests": WHOLE}}
    pod = {
        "schedulerName": "tutti",
        "priorityClassName": "high",
        "restartPolicy": "Never",
        "containers": [container],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "urgent"},
        "spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod}},
    }

    async def reported() -> bool:
        said = await stage.tried(job)
        assert "would preempt: 2 pods of 1 gang (elastic) would be evicted for it" in said
        assert "this gang would have to wait: 0 of 2 pods fit; 8 more cpu needed" in said
        return True

    # The standby that answers may see the jobs run a moment later.
    await eventually(reported, timeout_s=SEEN_S, because="the standby knows the cluster")
    assert len(await stage.placed("elastic")) == 4


async def test_a_budget_is_kept_and_the_gang_waits_with_its_words(stage: Stage) -> None:
    await crowded(stage)
    await budget(stage, 4)
    await submit(stage, "urgent", 1, minimum=1, priority="high")
    await stage.waits("urgent", "NotEnoughResources", "disruption budget")
    assert len(await stage.placed("elastic")) == 4
    await stage.delete(f"/apis/policy/v1/namespaces/{stage.namespace}/poddisruptionbudgets/guard")
    await stage.bound("urgent", 1, timeout_s=90.0)


async def test_where_a_budget_lets_one_go_another_is_found_elsewhere(stage: Stage) -> None:
    await crowded(stage)
    await budget(stage, 4)
    await stage.nodes(1, prefix="more-")
    await submit(stage, "other", 1, minimum=1, priority="low")
    await stage.bound("other", 1)
    await submit(stage, "urgent", 1, minimum=1, priority="high")
    await stage.bound("urgent", 1)
    assert len(await stage.placed("elastic")) == 4
    assert await stage.placed("other") == {}


async def test_planner_and_binder_may_die_between_eviction_and_binding(stage: Stage) -> None:
    await crowded(stage)
    await submit(stage, "urgent", 3, minimum=3, priority="high")

    async def leaving() -> bool:
        gone = 4 - len(
            [
                one
                for one in await stage.pods("elastic")
                if "deletionTimestamp" not in one["metadata"]
            ]
        )
        return gone > 0

    await eventually(leaving, timeout_s=SEEN_S, because="victims leave")
    await stage.suite.kill(await stage.suite.active("gang-planner"))
    for name in await stage.suite.pids():
        if name.startswith("binder-"):
            await stage.suite.kill(name)
            break
    await stage.bound("urgent", 3, timeout_s=AGAIN_S)
    assert len(await stage.placed("elastic")) == 1
