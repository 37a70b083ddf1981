"""A gang with as many and as long roles as the API server allows, on a real API server: another
tenant's gang is bound beside it, no service ends, and the gang itself says what is missing.
"""

import os
import signal

import pytest

from shared.contracts import annotations
from tests.controlplane.client import RawClient
from tests.controlplane.nodes import create_namespace, create_pods, pod_manifest, remove_namespace
from tests.integration.stage import VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.certify,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

SUITE_FLAGS = ("--no-webhook",)
#: As many as a quota of a small tenant may leave: they request nothing that exists.
PODS = 2_800
NAME_MAX = 253


def _member(index: int) -> dict[str, object]:
    """A pod with a role of 253 characters, which requests more CPU than any node has."""
    return pod_manifest(
        f"wide-{index}",
        requests={"cpu": "900"},
        annotations={
            annotations.GROUP_NAME: "wide",
            annotations.TASK_SPEC: f"{index}-".ljust(NAME_MAX, "r"),
        },
    )


async def test_a_gang_of_2800_roles_of_253_characters_stops_no_other_gang(
    stage: Stage, api: RawClient
) -> None:
    """It made a verdict of 1.1 MB, which NATS refuses: the planners ended in turn, for as long as
    the gang existed.
    """
    await stage.nodes(2)
    before = await stage.suite.pids()
    evil = f"{stage.namespace}-evil"
    await create_namespace(api, evil)
    try:
        group = {
            "apiVersion": VOLCANO,
            "kind": "PodGroup",
            "metadata": {"name": "wide"},
            "spec": {"minMember": PODS},
        }
        path = f"/apis/{VOLCANO}/namespaces/{evil}/podgroups"
        await api.create(path, group)
        await create_pods(api, evil, [_member(index) for index in range(PODS)])

        async def named() -> bool:
            found = await api.get(f"{path}/wide")
            (waits, *_) = found.get("status", {}).get("conditions", ()) or [None]
            assert waits is not None
            assert f"0 of {PODS} pods fit" in waits["message"], waits["message"][:500]
            assert len(waits["message"].encode()) < 4_096
            notes = found["metadata"]["annotations"]
            assert len(notes[annotations.VERDICT].encode()) <= 32 * 1024
            assert f'"shapes_count":{PODS}' in notes[annotations.VERDICT]
            return True

        await eventually(named, timeout_s=120, because="the gang names what it lacks")
        await stage.gang("prod", 4)
        await stage.bound("prod", 4)
        assert await stage.suite.pids() == before, "no service was started again"
        # A planner that takes over reads all of it, and so does the next one.
        for _ in range(2):
            active = await stage.suite.active("gang-planner")
            os.kill((await stage.suite.pids())[active], signal.SIGKILL)
            await stage.suite.pids()
        await stage.gang("again", 2)
        await stage.bound("again", 2)
    finally:
        await remove_namespace(api, evil)
