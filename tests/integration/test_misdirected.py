"""Pods whose group is Tutti's and whose scheduler is kube-scheduler, as Trainer's runtime makes
them: their author is warned, and their group says why they are bound one by one.
"""

from typing import Final

import pytest

from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

SUITE_FLAGS: Final = ()
GROUP: Final = "scheduling.k8s.io/group-name"


async def condition_of(stage: Stage, group: str) -> tuple[str, str]:
    """Status and message of the group's condition OtherScheduler."""
    found = await stage.seen_group(group)
    conditions = found.get("status", {}).get("conditions", ())
    reported = [one for one in conditions if one["type"] == "OtherScheduler"]
    assert reported, f"no condition: {found.get('status')}"
    return reported[0]["status"], reported[0]["message"]


async def test_the_group_of_pods_that_kube_scheduler_binds_says_so(stage: Stage) -> None:
    await stage.nodes(1)
    await stage.gang("train", 3, scheduler_name="default-scheduler")

    async def reported() -> str:
        status, message = await condition_of(stage, "train")
        assert status == "True"
        assert message.startswith("3 of its pods name the scheduler default-scheduler"), message
        return message

    message = await eventually(reported, timeout_s=20, because="the pods are named")
    assert "tutti.dev/schedule=true" in message
    await stage.bound("train", 3)
    await stage.why("podgroup/train", "3 of its pods name the scheduler default-scheduler")


async def test_the_author_of_such_a_pod_is_warned(stage: Stage) -> None:
    pod = pod_manifest("one", scheduler_name="default-scheduler", annotations={GROUP: "train"})

    async def is_warned() -> str:
        warning = await stage.tried(pod)
        assert 'schedulerName "default-scheduler" ignores the group train' in warning, warning
        return warning

    await eventually(is_warned, timeout_s=20, because="the webhook is registered")
    plain = pod_manifest("two", scheduler_name="default-scheduler")
    assert "tutti" not in await stage.tried(plain)
