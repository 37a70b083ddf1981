"""Volcano's e2e/gangevict and e2e/hypernode: whole gangs make room, inside racks and rows too.

The cases' tables are scenarios (`tests/scenarios/gangpreempt`, `gangreclaim` and
`network-topology-aware`); here are those where Jobs, their PodGroups and evictions meet.
"""

import asyncio
from typing import Any

import pytest

from tests.controlplane.client import Object
from tests.volcano_e2e.cluster import Cluster
from tests.volcano_e2e.manifests import queue
from tests.volcano_e2e.scheduling import (
    GANG_EVICT,
    HIGH,
    LOW,
    NEVER_S,
    alike,
    conf,
    never_runs,
    priorities,
    queues,
    running,
)

#: The first case waits for the control plane, too.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


async def slots(bare: Cluster, count: int = 4, cpus: int = 1) -> list[str]:
    """So many nodes, and what gangs are evicted by."""
    names = await bare.nodes(count, cpu_milli=cpus * 1000)
    await bare.configure(GANG_EVICT)
    await priorities(bare)
    return names


def gang(name: str, at: str, count: int, least: int, *, priority: str = LOW, **spec: Any) -> Object:
    """A Job whose task wants all of its pods, and which itself needs fewer."""
    of_task = {"minAvailable": count, **spec.pop("of_task", {})}
    return alike(name, count, least=least, at=at, priority=priority, of_task=of_task, **spec)


def within(tier: int) -> Object:
    """`networkTopology`: inside one HyperNode of this tier."""
    return {"mode": "hard", "highestTierAllowed": tier}


async def tree(bare: Cluster, *tiers: tuple[str, int, str, list[str]]) -> None:
    """HyperNodes: name, tier, kind of its members, their names."""
    for name, tier, kind, members in tiers:
        await bare.create(
            {
                "apiVersion": "topology.volcano.sh/v1alpha1",
                "kind": "HyperNode",
                "metadata": {"name": name},
                "spec": {
                    "tier": tier,
                    "members": [
                        {"type": kind, "selector": {"exactMatch": {"name": one}}} for one in members
                    ],
                },
            }
        )


async def two_racks(bare: Cluster, names: list[str]) -> None:
    """Two racks of half the nodes each, in one row."""
    half = len(names) // 2
    await tree(
        bare,
        ("s0", 1, "Node", names[:half]),
        ("s1", 1, "Node", names[half:]),
        ("s2", 2, "HyperNode", ["s0", "s1"]),
    )


async def nodes_of(bare: Cluster, made: Object, count: int) -> set[str]:
    """The nodes of a Job's pods, once so many run."""
    return {pod["spec"]["nodeName"] for pod in await bare.pods_run(made, count)}


@pytest.mark.certify
async def test_surplus_is_evicted_and_its_gang_runs_on(bare: Cluster) -> None:
    await slots(bare)
    await queues(bare, gp_q=4)
    low = await bare.create(gang("victim", "gp-q", 4, 2))
    await bare.pods_run(low, 4)
    high = await bare.create(gang("preemptor", "gp-q", 2, 2, priority=HIGH))
    await bare.pods_run(high, 2)
    assert await running(bare, low) == 2


async def test_one_gang_is_broken_where_there_is_no_surplus(bare: Cluster) -> None:
    await slots(bare)
    await queues(bare, gp_q=4)
    lows = [await bare.create(gang(name, "gp-q", 2, 2)) for name in ("victim-a", "victim-b")]
    for one in lows:
        await bare.pods_run(one, 2)
    high = await bare.create(gang("preemptor", "gp-q", 2, 2, priority=HIGH))
    await bare.pods_run(high, 2)
    await asyncio.sleep(NEVER_S)
    assert sorted([await running(bare, one) for one in lows]) == [0, 2]


@pytest.mark.certify
async def test_priority_does_not_reach_into_another_queue(bare: Cluster) -> None:
    await slots(bare)
    await queues(bare, gp6_q1=2, gp6_q2=2)
    await bare.patch("Queue", "gp6-q2", {"spec": {"reclaimable": False}})
    low = await bare.create(gang("victim", "gp6-q2", 4, 4))
    await bare.pods_run(low, 4)
    high = await bare.create(gang("preemptor", "gp6-q1", 2, 2, priority=HIGH))
    await never_runs(bare, high)
    assert await running(bare, low) == 4


@pytest.mark.certify
async def test_a_queue_takes_back_the_surplus_of_a_gang_of_another(bare: Cluster) -> None:
    await slots(bare)
    await queues(bare, gr_q1=2, gr_q2=2)
    lent = await bare.create(gang("victim", "gr-q2", 4, 2))
    await bare.pods_run(lent, 4)
    late = await bare.create(gang("reclaimer", "gr-q1", 2, 2))
    await bare.pods_run(late, 2)
    assert await running(bare, lent) == 2


async def test_queues_within_what_they_deserve_keep_their_gangs(bare: Cluster) -> None:
    await slots(bare)
    names = ("gr-q1", "gr-q2", "gr-q3")
    deserved = {"cpu": "2", "memory": "2Gi"}
    for name in names:
        await bare.queue(queue(name, deserved=deserved))
    kept = [await bare.create(gang(f"kept-{at}", at, 2, 2)) for at in names[1:]]
    for one in kept:
        await bare.pods_run(one, 2)
    late = await bare.create(gang("reclaimer", names[0], 2, 2))
    await never_runs(bare, late)
    assert [await running(bare, one) for one in kept] == [2, 2]


@pytest.mark.certify
async def test_below_a_guarantee_nothing_is_taken(bare: Cluster) -> None:
    await slots(bare)
    await queues(bare, gr_q1=4, gr_q2=2)
    await bare.patch("Queue", "gr-q2", {"spec": {"guarantee": {"resource": {"cpu": "2"}}}})
    lent = await bare.create(gang("victim", "gr-q2", 4, 2))
    await bare.pods_run(lent, 4)
    late = await bare.create(gang("reclaimer", "gr-q1", 4, 4))
    await never_runs(bare, late)
    assert await running(bare, lent) == 4


@pytest.mark.certify
async def test_room_is_made_inside_one_rack(bare: Cluster) -> None:
    names = await slots(bare)
    await two_racks(bare, names)
    await queues(bare, gp_q=4)
    low = await bare.create(gang("victim", "gp-q", 4, 2, networkTopology=within(2)))
    await bare.pods_run(low, 4)
    high = gang("preemptor", "gp-q", 2, 2, priority=HIGH, networkTopology=within(1))
    assert await nodes_of(bare, await bare.create(high), 2) in ({*names[:2]}, {*names[2:]})
    assert await running(bare, low) == 2


async def test_parts_of_a_job_have_racks_of_their_own_and_come_back_to_them(bare: Cluster) -> None:
    names = await bare.nodes(4, cpu_milli=2000)
    await bare.configure(conf())
    await two_racks(bare, names)
    parts = {"totalPartitions": 2, "partitionSize": 2, "networkTopology": within(1)}
    of_task = {"partitionPolicy": parts}
    job = alike("parts", 4, cpu="1500m", of_task=of_task, networkTopology=within(2))
    made = await bare.create(job)
    found = await bare.pods_run(made, 4)

    def racks(pods: list[Object]) -> dict[str, set[int]]:
        where: dict[str, set[int]] = {}
        for pod in pods:
            part = pod["metadata"]["labels"]["volcano.sh/partition-id"]
            where.setdefault(part, set()).add(names.index(pod["spec"]["nodeName"]) // 2)
        return where

    before = racks(found)
    assert sorted(before) == ["0", "1"]
    assert sorted(before.values(), key=min) == [{0}, {1}]
    gone = found[0]["metadata"]
    await bare.delete("Pod", gone["name"])
    again = await bare.pods_are(
        made,
        1,
        "Running",
        chosen=lambda pod: (
            pod["metadata"]["name"] == gone["name"] and pod["metadata"]["uid"] != gone["uid"]
        ),
    )
    assert len(again) == 1
    assert racks(await bare.pods_run(made, 4)) == before


@pytest.mark.certify
async def test_a_gang_that_no_rack_holds_waits_with_its_pods_made(bare: Cluster) -> None:
    names = await bare.nodes(4, cpu_milli=2000)
    await bare.configure(conf())
    await two_racks(bare, names)
    made = await bare.create(alike("wide", 3, cpu="2", networkTopology=within(1)))
    await bare.pods_are(made, 3, "Pending")
    await never_runs(bare, made)
