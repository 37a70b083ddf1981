"""Gangs that their pods declare completely, on a real API server: no group object exists."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

GATE: Final = "kueue.x-k8s.io/admission"


async def make_pods(
    stage: Stage,
    *names: str,
    labels: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    cpu: str = "4",
    **spec: Any,
) -> None:
    """Pods of four CPUs with these labels and annotations."""
    await stage.bare_pods(
        *(
            pod_manifest(
                name,
                requests={"cpu": cpu},
                scheduler_name="tutti",
                labels=labels,
                annotations=notes,
                spec=spec,
            )
            for name in names
        )
    )


async def all_placed(stage: Stage, *names: str) -> None:
    """Wait until these pods, and no others, are on nodes."""

    async def placed() -> bool:
        found = await stage.placed()
        assert set(found) == set(names), found
        return True

    await eventually(placed, timeout_s=SEEN_S, because=f"{names} are bound")


async def test_a_group_of_kueue_waits_for_all_its_pods_without_gates(stage: Stage) -> None:
    await stage.nodes(3)
    labels = {"kueue.x-k8s.io/pod-group-name": "train", "kueue.x-k8s.io/queue-name": "research"}
    notes = {"kueue.x-k8s.io/pod-group-total-count": "3"}
    gated: Any = {"schedulingGates": [{"name": GATE}]}
    await make_pods(stage, "k-0", labels=labels, notes=notes)
    await make_pods(stage, "k-1", "k-2", labels=labels, notes=notes, **gated)
    messages = [one["message"] for one in await stage.pods_say("", 3)]
    assert any("2 members have scheduling gates" in message for message in messages), messages
    for name in ("k-1", "k-2"):
        assert not await stage.placed()
        await stage.api.patch(stage.path(name=name), {"spec": {"schedulingGates": None}})
    await all_placed(stage, "k-0", "k-1", "k-2")
    await stage.why("pod/k-0", "k-0")


async def test_a_group_of_kueue_without_a_count_says_so(stage: Stage) -> None:
    await stage.nodes(1)
    await make_pods(stage, "lost-0", labels={"kueue.x-k8s.io/pod-group-name": "lost"})
    (found,) = await stage.pods_say("", 1)
    assert "kueue.x-k8s.io/pod-group-total-count" in found["message"]
    assert not await stage.placed()


async def test_an_application_of_yunikorn_starts_when_all_of_it_fits_and_keeps_the_rest(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    groups = [
        {"name": name, "minMember": 1, "minResource": {"cpu": "4"}}
        for name in ("driver", "executor")
    ]
    labels = {"yunikorn.apache.org/app-id": "spark-1"}
    prefix = "yunikorn.apache.org/task-group"
    first = {f"{prefix}s": json.dumps(groups), f"{prefix}-name": "driver"}
    await make_pods(stage, "driver", labels=labels, notes=first)
    await stage.pods_say("", 1)
    assert not await stage.placed()
    await stage.nodes(1, prefix="more-")
    await all_placed(stage, "driver")
    await make_pods(stage, "other")
    await stage.pods_say("", 1)
    await make_pods(stage, "executor", labels=labels, notes={f"{prefix}-name": "executor"})
    await all_placed(stage, "driver", "executor")


async def test_a_gang_of_koordinator_waits_for_its_minimum(stage: Stage) -> None:
    await stage.nodes(2)
    prefix = "gang.scheduling.koordinator.sh"
    notes = {f"{prefix}/name": "pair", f"{prefix}/min-available": "2"}
    await make_pods(stage, "koord-0", notes=notes)
    (found,) = await stage.pods_say("", 1)
    assert "1 of 2 members exist" in found["message"]
    await make_pods(stage, "koord-1", notes=notes)
    await all_placed(stage, "koord-0", "koord-1")
