"""Karpenter beside Tutti: it buys the nodes that a gang needs, and none for a gang that waits for
anything else.

Where it must buy nothing, a pod of no gang that is created afterwards gets a node of its own:
Karpenter has decided about all waiting pods by then (`Purchases.buy_for_control`).
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.autoscalers.karpenter import INSTANCE_TYPE_LABEL, LARGE, SMALL, requirements
from tests.controlplane.client import RawClient
from tests.controlplane.kubelet import STOP_SECONDS
from tests.controlplane.nodes import pod_manifest
from tests.documents.links import ROOT
from tests.documents.playing import matches
from tests.integration.autoscalers.purchases import BOUGHT_S, Decision, Purchases
from tests.integration.operators.examples import NAME, example_of
from tests.integration.stage import SEEN_S, VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(240)]

SUITE_FLAGS: Final = (
    "--no-webhook",
    f"--scheduler-conf={Path(__file__).with_name('preempting.yaml')}",
)
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
QUEUES: Final = f"/apis/{VOLCANO}/queues"
TOPOLOGY: Final = "topology.volcano.sh/v1alpha1"
HYPERNODES: Final = f"/apis/{TOPOLOGY}/hypernodes"
POOL: Final = "default"
#: Three of them fit on a small node, which has 3.9 CPUs for pods.
THIRD: Final = {"cpu": "1200m"}


def without_names(text: str) -> str:
    """Text of the page or of a program, without the ends of the NodeClaims' names."""
    return re.sub(rf"\b{POOL}-\w{{5}}\b", f"{POOL}-NAME", text)


async def say(stage: Stage, gang: str, reasons: dict[str, int]) -> None:
    """Wait until the pods of a gang have these reasons to wait: how many by reason."""

    async def reported() -> bool:
        said = await stage.pods_say(gang, sum(reasons.values()))
        assert Counter(one["reason"] for one in said) == reasons, said
        return True

    await eventually(reported, timeout_s=SEEN_S, because=f"the pods of {gang} have their reason")


async def test_a_gang_of_eight_gets_exactly_the_three_nodes_that_it_needs_and_starts_whole(
    stage: Stage, purchases: Purchases
) -> None:
    await purchases.offer(POOL, SMALL)
    await stage.gang("train", 8, requests=THIRD)
    places = await stage.bound("train", 8, timeout_s=BOUGHT_S)
    assert Counter(Counter(places.values()).values()) == {3: 2, 2: 1}
    assert set(places.values()) == (await purchases.nodes()).keys()
    assert purchases.decisions() == [Decision(nodes=3, pods=8)]
    await purchases.buy_for_control()
    assert len(await purchases.claims()) == 4


async def test_the_pages_example_waits_and_buys_as_the_page_shows(
    stage: Stage, purchases: Purchases
) -> None:
    example = example_of("autoscalers", folder=ROOT / "docs")
    await stage.nodes(1)
    await stage.bare_pods(pod_manifest("other", requests={"cpu": "4"}))
    await eventually(stage.placed, timeout_s=SEEN_S, because="the node is full")
    # Long enough to look at the nodes that are bought.
    await purchases.offer(POOL, SMALL, registration_delay="20s")
    for manifest in example.objects(NAME):
        await stage.created(manifest)

    async def output(command: str) -> str:
        if command == f"tutti why job/{NAME}":
            return await stage.suite.why(f"job/{NAME}", stage.namespace)
        assert command == "kubectl get nodeclaims"
        return await asyncio.to_thread(stage.control_plane.kubectl, "get", "nodeclaims")

    async def is_shown(command: str) -> bool:
        text = without_names(await output(command))
        assert matches(without_names(example.answers[command]), text), text
        return True

    assert len(example.answers) == 2
    for command in example.answers:
        probe = partial(is_shown, command)
        await eventually(probe, timeout_s=SEEN_S, because=f"{command} answers as on the page")

    async def all_run() -> bool:
        pods = await stage.pods()
        return len([one for one in pods if one["status"].get("phase") == "Running"]) == 9

    await eventually(all_run, timeout_s=BOUGHT_S, because="the Job runs")
    assert purchases.decisions() == [Decision(nodes=3, pods=8)]


@pytest.mark.timeout(420)
async def test_exactly_the_nodes_of_a_gang_of_a_thousand_are_bought(
    stage: Stage, purchases: Purchases
) -> None:
    """Karpenter decides when no pod was marked for a second, or after ten seconds. All members are
    marked by then, or on a slow machine most of them: those that follow use what is bought already.
    """
    await purchases.offer(POOL, LARGE)
    await stage.gang("train", 1000, requests={"cpu": "500m"})
    places = await stage.bound("train", 1000, timeout_s=4 * BOUGHT_S)
    decisions = purchases.decisions()
    # 31 pods fit on a node that has 15.9 CPUs.
    assert sum(decision.nodes for decision in decisions) == 33, decisions
    assert len(set(places.values())) == len(await purchases.claims()) == 33
    # On a slow machine, longer than the fixtures wait: the next test would find these nodes.
    await stage.audit.catch_up(timeout_s=BOUGHT_S)
    await purchases.clear()


async def test_a_gang_that_waits_for_quota_buys_nothing_until_it_has_it(
    stage: Stage, purchases: Purchases
) -> None:
    queue = f"q-{stage.namespace}"
    kind = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": queue}}
    await stage.api.create(QUEUES, {**kind, "spec": {"weight": 1, "capability": {"cpu": "4"}}})
    await purchases.offer(POOL, SMALL)
    await stage.group("train", 8, spec={"queue": queue})
    await stage.members("train", 8, requests=THIRD)
    await say(stage, "train", {"NotEnoughQuota": 8})
    await purchases.buy_for_control()
    await stage.api.patch(f"{QUEUES}/{queue}", {"spec": {"capability": {"cpu": "10"}}})
    await stage.bound("train", 8, timeout_s=BOUGHT_S)
    assert purchases.decisions()[1:] == [Decision(nodes=3, pods=8)]
    await stage.delete(f"{QUEUES}/{queue}")


@pytest.fixture
async def priorities(api: RawClient) -> AsyncIterator[None]:
    """Priority classes `low` and `high`."""
    for name, value in (("low", 10), ("high", 1000)):
        await api.create(CLASSES, {"metadata": {"name": name}, "value": value})
    yield
    for name in ("low", "high"):
        await api.delete(f"{CLASSES}/{name}", {})


@pytest.mark.usefixtures("priorities")
async def test_a_gang_that_waits_for_its_victims_buys_nothing(
    stage: Stage, purchases: Purchases
) -> None:
    names = await stage.nodes(3)
    low, high = {"priorityClassName": "low"}, {"priorityClassName": "high"}
    await stage.group("elastic", 1, spec=low)
    # Their containers take longer to end than the test.
    slow = {STOP_SECONDS: "3600"}
    await stage.members("elastic", 3, requests={"cpu": "3"}, spec=low, notes=slow)
    await stage.bound("elastic", 3)
    await purchases.offer(POOL, SMALL)
    await stage.group("urgent", 2, spec=high)
    await stage.members("urgent", 2, requests={"cpu": "3"}, spec=high)
    await say(stage, "urgent", {"Preempting": 2})
    nominated = {pod["status"].get("nominatedNodeName") for pod in await stage.pods("urgent")}
    assert len(nominated & set(names)) == 2
    await purchases.buy_for_control()
    evicted = [
        pod["metadata"]["name"]
        for pod in await stage.pods("elastic")
        if pod["metadata"].get("deletionTimestamp")
    ]
    assert len(evicted) == 2
    await stage.delete_pods(evicted)
    assert set((await stage.bound("urgent", 2)).values()) == nominated
    assert len(await purchases.claims()) == 1


async def test_a_gang_with_a_member_larger_than_every_instance_type_buys_nothing(
    stage: Stage, purchases: Purchases
) -> None:
    """Only this member is marked, also while there is no node for the rest; when the pool offers
    a kind that holds it, the gang gets all its nodes, in two steps.
    """
    await purchases.offer(POOL, SMALL)
    await stage.group("train", 7)
    await stage.members("train", 1, role="main", requests={"cpu": "15"})
    await stage.members("train", 6, role="worker", requests=THIRD)
    await say(stage, "train", {"Unschedulable": 1, "NodesTooSmall": 6})
    await purchases.buy_for_control()
    await purchases.change(POOL, template={"spec": {"requirements": requirements([SMALL, LARGE])}})
    places = await stage.bound("train", 7, timeout_s=2 * BOUGHT_S)
    nodes = await purchases.nodes()
    assert nodes[places["train-main-0"]] == LARGE
    assert sum(decision.pods for decision in purchases.decisions()[1:]) == 7


async def test_a_gang_for_hypernodes_that_new_nodes_do_not_join_buys_nothing(
    stage: Stage, purchases: Purchases
) -> None:
    await stage.nodes(2)
    rack = f"rack-{stage.namespace}"
    members = [
        {"type": "Node", "selector": {"exactMatch": {"name": name}}}
        for name in ("node-0", "node-1")
    ]
    manifest = {
        "apiVersion": TOPOLOGY,
        "kind": "HyperNode",
        "metadata": {"name": rack},
        "spec": {"tier": 1, "members": members},
    }
    await stage.api.create(HYPERNODES, manifest)
    await purchases.offer(POOL, SMALL)
    one_rack = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    await stage.group("train", 8, spec=one_rack)
    await stage.members("train", 8, requests=THIRD)
    await say(stage, "train", {"OutsideTopology": 8})
    # A node that is there already would take a pod of three CPUs: it has to be a new one.
    await purchases.buy_for_control(nodeSelector={INSTANCE_TYPE_LABEL: SMALL})
    assert not await stage.placed("train")
    await stage.delete(f"{HYPERNODES}/{rack}")
