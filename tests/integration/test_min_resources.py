"""Applications whose later pods are created by the first one: a Spark driver, a group's leader."""

import pytest

from tests.controlplane.nodes import GPU
from tests.integration.stage import Stage

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

WHOLE = {"cpu": "5", GPU: "4"}


async def start(stage: Stage, name: str) -> None:
    """What the Spark operator writes: a group of one with the resources of all, and the driver."""
    await stage.group(name, 1, spec={"minResources": WHOLE})
    await stage.members(name, 1, role="driver")


async def test_of_two_applications_that_need_all_gpus_one_runs_whole_and_then_the_other(
    stage: Stage,
) -> None:
    await stage.nodes(2, extended={GPU: 2})
    await start(stage, "one")
    await stage.bound("one", 1)
    await start(stage, "two")
    words = "4 nvidia.com/gpu needed, 0 free"
    message = await stage.waits("two", "NotEnoughResources", words)
    assert "not enough free capacity for its minResources: " in message

    # Its executors come late; the other application's would fit as well, and are not there.
    await stage.stays_unbound("two")
    await stage.members("one", 4, role="executor", requests={"cpu": "1", GPU: "1"})
    await stage.bound("one", 5)
    await stage.stays_unbound("two")

    await stage.delete_pods([pod["metadata"]["name"] for pod in await stage.pods("one")])
    await stage.bound("two", 1)
    await stage.members("two", 4, role="executor", requests={"cpu": "1", GPU: "1"})
    await stage.bound("two", 5)


async def test_minresources_beyond_the_cluster_block_no_gang_and_the_group_says_so(
    stage: Stage,
) -> None:
    await stage.nodes(1, cpu_milli=16_000, extended={GPU: 2})
    await start(stage, "huge")
    words = "need more or other nodes: 4 nvidia.com/gpu needed"
    await stage.waits("huge", "NotEnoughResources", words)
    await stage.gang("small", 2, requests={"cpu": "1", GPU: "1"})
    await stage.bound("small", 2)
