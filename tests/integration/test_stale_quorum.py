"""volcano#6010 on a real API server: a quorum that grows while its gang is being bound.

Volcano binds what the old quorum asked for and leaves it at that: a part of a gang, for ever.
"""

import os
import signal

import pytest

from shared.contracts import annotations
from tests.integration.stage import Stage
from tests.integration.test_unwhole import record, stateful_set
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

REPAIR_S = 3
#: The deadline, the release, and pods that need a second to end, on a machine with other work.
RELEASED_S = 30.0


async def decisions(stage: Stage) -> float:
    """How many the active planner has made."""
    active = await stage.suite.active("gang-planner")

    async def counted() -> tuple[float]:
        return ((await stage.suite.answers())[active].figures.get("decisions_total", 0.0),)

    return (await eventually(counted, because="it answers"))[0]


async def test_volcano_6010_what_a_stale_quorum_bound_is_released_and_then_comes_whole(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    pids = await stage.suite.pids()
    binders = [pid for instance, pid in pids.items() if instance.startswith("binder-")]
    before = await decisions(stage)
    for pid in binders:
        os.kill(pid, signal.SIGSTOP)
    try:
        notes = {annotations.REPAIR_DEADLINE_SECONDS: str(REPAIR_S)}
        await stage.group("train", 4, notes=notes)
        sets = stage.path("statefulsets", version="apps/v1")
        await stage.api.create(sets, stateful_set("train", 8))

        async def decided() -> bool:
            return await decisions(stage) > before

        await eventually(decided, because="four of eight are decided")
        await stage.api.patch(stage.group_path("train"), {"spec": {"minMember": 8}})
    finally:
        for pid in binders:
            os.kill(pid, signal.SIGCONT)

    def taken_back() -> list[float]:
        return record(stage, "train").taken_back_s

    (lasted_s,) = await eventually(taken_back, timeout_s=RELEASED_S, because="it is released")
    assert REPAIR_S - 1 < lasted_s < RELEASED_S
    await stage.waits("train", "RepairDeadline", "released")
    await stage.nodes(1, prefix="more-")
    await stage.bound("train", 8, timeout_s=60.0)
    assert len(taken_back()) == 1, "it was bound in part again"
