"""Karpenter beside Tutti: which nodes it gives back or replaces, and what that does to gangs.

Gangs whose pods are to be evicted are those of Jobs, whose controller makes evicted pods again.
"""

from functools import partial
from typing import Any, Final

import pytest

from shared.contracts import annotations
from tests.controlplane.autoscalers.karpenter import LARGE, NODE_CLAIMS, POOL_LABEL, SMALL
from tests.controlplane.nodes import pod_manifest
from tests.integration.autoscalers.purchases import (
    BOUGHT_S,
    GIVEN_BACK_S,
    Purchases,
    job_of,
)
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(300)]

POOL: Final = "default"
DISRUPTED: Final = "karpenter.sh/disrupted"
MEMBERS: Final = 3
#: Nodes are given back as soon as they are empty, or could be smaller.
AT_ONCE: Final[dict[str, Any]] = {"policy": "WhenEmptyOrUnderutilized", "after": "0s"}


async def start(
    stage: Stage, gang: str, pool: str = "", notes: dict[str, str] | None = None
) -> None:
    """Create a gang of three pods with a CPU each, of a Job."""
    await stage.group(gang, MEMBERS, notes=notes)
    await stage.api.create(stage.path("jobs", version="batch/v1"), job_of(gang, MEMBERS, 1, pool))


async def running(stage: Stage, gang: str) -> dict[str, str]:
    """Wait until all members of a gang run on nodes: node by UID."""

    async def all_run() -> dict[str, str]:
        found = {
            pod["metadata"]["uid"]: pod["spec"]["nodeName"]
            for pod in await stage.pods(gang)
            if pod["status"].get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")
        }
        assert len(found) == MEMBERS, found
        return found

    return await eventually(all_run, timeout_s=BOUGHT_S, because=f"{gang} runs whole")


async def room_held(stage: Stage, gang: str, reason: str) -> None:
    """Wait until the group's condition RoomHeld is True for this reason."""

    async def shown() -> bool:
        conditions = (await stage.seen_group(gang)).get("status", {}).get("conditions", ())
        found = [(one["type"], one["status"], one["reason"]) for one in conditions]
        assert ("RoomHeld", "True", reason) in found, conditions
        return True

    await eventually(shown, timeout_s=SEEN_S, because=f"room is held for {gang}: {reason}")


async def moved(stage: Stage, gang: str, before: dict[str, str]) -> str:
    """Wait until all members were made again and run on one other node: its name."""

    async def has_moved() -> str:
        now = await running(stage, gang)
        assert not now.keys() & before.keys(), now
        nodes = set(now.values())
        assert len(nodes) == 1, nodes
        assert not nodes & set(before.values()), nodes
        return nodes.pop()

    return await eventually(has_moved, timeout_s=GIVEN_BACK_S, because=f"{gang} has moved")


async def test_the_nodes_of_a_gang_are_given_back_when_it_has_ended_and_not_before(
    stage: Stage, purchases: Purchases
) -> None:
    places = {}
    for gang in ("short", "long"):
        await purchases.offer(gang, SMALL, policy="WhenEmpty", after="0s")
        spec = {"nodeSelector": {POOL_LABEL: gang}}
        await stage.gang(gang, 6, requests={"cpu": "1200m"}, spec=spec)
    for gang in ("short", "long"):
        places[gang] = await stage.bound(gang, 6, timeout_s=BOUGHT_S)
        assert len(await purchases.nodes(gang)) == 2
    for pod in await stage.pods("short"):
        stage.kubelet.finish(pod["metadata"]["uid"])
    await purchases.gives_back("short")
    assert (await purchases.nodes("long")).keys() == set(places["long"].values())
    assert await stage.placed("long") == places["long"]
    for pod in await stage.pods("long"):
        stage.kubelet.finish(pod["metadata"]["uid"])
    await purchases.gives_back("long")


async def test_nodes_that_wait_for_the_last_one_of_their_gang_are_not_given_back(
    stage: Stage, purchases: Purchases
) -> None:
    """The second node takes longer to come than Karpenter keeps an empty one. It counts the waiting
    pods to the first one, because all of them stay marked.
    """
    await purchases.offer("fast", SMALL, cpus_max=4, weight=2, **AT_ONCE)
    await purchases.offer("slow", SMALL, registration_delay="60s", **AT_ONCE)
    await stage.gang("train", 6, requests={"cpu": "1200m"})
    await eventually(partial(purchases.nodes, "fast"), timeout_s=BOUGHT_S, because="one is there")
    first = await purchases.nodes("fast")
    await stage.bound("train", 6, timeout_s=GIVEN_BACK_S)
    assert await purchases.nodes("fast") == first
    assert len(await purchases.nodes("slow")) == 1
    assert sum(decision.nodes for decision in purchases.decisions()) == 2


async def test_consolidation_moves_a_gang_unless_it_is_not_to_be_disrupted(
    stage: Stage, purchases: Purchases
) -> None:
    """Two gangs run on a large node each, beside a pod that ends: a small node would do then."""
    for gang, notes in (("moving", {}), ("staying", {annotations.UNDISTURBED: "true"})):
        await purchases.offer(gang, SMALL, LARGE, **AT_ONCE)
        filler = pod_manifest(
            f"beside-{gang}", requests={"cpu": "10"}, spec={"nodeSelector": {POOL_LABEL: gang}}
        )
        await stage.bare_pods(filler)
        await start(stage, gang, gang, notes)
    before = {gang: await running(stage, gang) for gang in ("moving", "staying")}
    nodes = {gang: await purchases.nodes(gang) for gang in before}
    assert [list(found.values()) for found in nodes.values()] == [[LARGE], [LARGE]]
    for pod in await stage.pods():
        if pod["metadata"]["name"].startswith("beside-"):
            stage.kubelet.finish(pod["metadata"]["uid"])
    now_on = await moved(stage, "moving", before["moving"])

    async def is_replaced() -> bool:
        return await purchases.nodes("moving") == {now_on: SMALL}

    await eventually(is_replaced, timeout_s=GIVEN_BACK_S, because="the large node is given back")
    assert await running(stage, "staying") == before["staying"]
    assert await purchases.nodes("staying") == nodes["staying"]
    for uid in before["staying"]:
        stage.kubelet.finish(uid)
    await purchases.gives_back("staying")


async def test_members_on_a_node_that_is_deleted_have_their_room_before_they_are_evicted(
    stage: Stage, purchases: Purchases
) -> None:
    await purchases.offer(POOL, SMALL)
    await start(stage, "train")
    before = await running(stage, "train")
    (spare,) = await stage.nodes(1, prefix="spare-")
    budgets = f"/apis/policy/v1/namespaces/{stage.namespace}/poddisruptionbudgets"
    spec = {"minAvailable": MEMBERS, "selector": {"matchLabels": {"job-name": "train"}}}
    await stage.api.create(budgets, {"metadata": {"name": "guard"}, "spec": spec})
    (claim,) = await purchases.claims()
    # Like `kubectl delete nodeclaim`: Karpenter taints the node, and evicts its pods.
    await stage.api.delete(f"{NODE_CLAIMS}/{claim['metadata']['name']}")
    await room_held(stage, "train", "NodesLeaving")
    await stage.gang("next", 1, requests={"cpu": "2"})
    (said,) = await stage.pods_say("next", 1)
    assert said["reason"] == "CapacityReserved"
    assert await running(stage, "train") == before
    await stage.delete(f"{budgets}/guard")
    assert await moved(stage, "train", before) == spare
    # Now it is short of capacity, and not before: one node is bought for it.
    assert (await stage.bound("next", 1, timeout_s=BOUGHT_S))["next-0"] != spare


async def test_the_node_that_replaces_a_drifted_one_is_kept_for_the_members_of_that(
    stage: Stage, purchases: Purchases
) -> None:
    """Karpenter taints a drifted node, buys another one, and evicts the pods when that is ready. It
    may not buy another one beside the new one: a waiting gang would fit there before the successors
    exist.
    """
    await purchases.offer(POOL, SMALL, registration_delay="5s", cpus_max=6)
    await start(stage, "train")
    before = await running(stage, "train")
    old = await purchases.nodes()
    await purchases.change(POOL, template={"metadata": {"labels": {"tutti.test/image": "new"}}})

    async def is_tainted() -> bool:
        taints = [
            taint["key"]
            for name in old
            for taint in (await stage.api.get(f"/api/v1/nodes/{name}"))["spec"].get("taints", ())
        ]
        return DISRUPTED in taints

    await eventually(is_tainted, timeout_s=GIVEN_BACK_S, because="the node is to be replaced")
    await stage.gang("next", 1, requests={"cpu": "2"})
    now_on = await moved(stage, "train", before)
    assert not await stage.placed("next")
    for uid in await running(stage, "train"):
        stage.kubelet.finish(uid)
    assert (await stage.bound("next", 1, timeout_s=BOUGHT_S))["next-0"] == now_on
