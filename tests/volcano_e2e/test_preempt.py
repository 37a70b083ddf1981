"""Volcano's e2e/schedulingaction, preempt.go: preemption inside a queue."""

import asyncio

import pytest

from tests.volcano_e2e.cluster import Cluster
from tests.volcano_e2e.scheduling import (
    HIGH,
    LOW,
    MIDDLE,
    NEVER_S,
    alike,
    conf,
    never_runs,
    priorities,
    queues,
    running,
    ungate,
)

#: The first case waits for the control plane, too.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
#: As many pods of one CPU as the cluster holds.
ALL = 4
HALF = ALL // 2


@pytest.fixture
async def small(bare: Cluster) -> Cluster:
    """Two nodes that hold two pods of one CPU each, and the priority classes."""
    await bare.nodes(2, cpu_milli=2000)
    await bare.configure(conf())
    await priorities(bare)
    return bare


@pytest.mark.certify
async def test_no_pod_is_evicted_where_there_is_free_capacity(small: Cluster) -> None:
    low = await small.create(alike("preemptee", 1, priority=LOW))
    await small.pods_run(low, 1)
    high = await small.create(alike("preemptor", 1, priority=HIGH))
    await small.pods_run(high, 1)
    assert await running(small, low) == 1


async def test_half_of_a_full_cluster_is_had_by_preemption(small: Cluster) -> None:
    low = await small.create(alike("preemptee", ALL, least=1, priority=LOW))
    await small.pods_run(low, ALL)
    high = await small.create(alike("preemptor", ALL, least=HALF, priority=HIGH))
    await small.pods_run(high, HALF)
    await asyncio.sleep(NEVER_S)
    assert (await running(small, low), await running(small, high)) == (HALF, HALF)


@pytest.mark.certify
async def test_a_group_that_is_not_admitted_evicts_no_pod(small: Cluster) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "pending-pg"},
        "spec": {"minMember": 1, "minResources": {"cpu": "30"}},
    }
    await small.create(group)
    low = await small.create(alike("preemptee", ALL, least=1, priority=LOW))
    await small.pods_run(low, ALL)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "preemptor-pod",
            "annotations": {"scheduling.k8s.io/group-name": "pending-pg"},
        },
        "spec": {
            "schedulerName": "volcano",
            "priorityClassName": HIGH,
            "containers": [
                {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}
            ],
        },
    }
    await small.create(pod)
    await asyncio.sleep(NEVER_S)
    assert await running(small, low) == ALL


async def test_preemption_stays_inside_its_queue(small: Cluster) -> None:
    await queues(small, q1_preemption=0, q2_reference=0)
    mine = await small.create(alike("j1-q1", HALF, least=1, priority=LOW, at="q1-preemption"))
    await small.pods_run(mine, HALF)
    other = await small.create(alike("j2-q2", HALF, least=1, priority=LOW, at="q2-reference"))
    await small.pods_run(other, HALF)
    # The original's third job needs one pod, and is expected to get half of the cluster by evicting
    # the first one below its minimum. Here members above a minimum do not preempt.
    high = await small.create(alike("j3-q1", ALL, least=1, priority=HIGH, at="q1-preemption"))
    await small.pods_run(high, 1)
    await asyncio.sleep(NEVER_S)
    assert (await running(small, mine), await running(small, high)) == (HALF - 1, 1)
    assert await running(small, other) == HALF


@pytest.mark.certify
async def test_what_would_not_be_enough_is_not_evicted(small: Cluster) -> None:
    await queues(small, q1_preemption=0, q2_reference=0)
    mine = await small.create(alike("j1-q1", 1, priority=LOW, at="q1-preemption"))
    await small.pods_run(mine, 1)
    other = await small.create(alike("j2-q2", HALF, priority=LOW, at="q2-reference"))
    await small.pods_run(other, HALF)
    high = await small.create(alike("j3-q1", ALL, priority=HIGH, at="q1-preemption"))
    await never_runs(small, high)
    assert (await running(small, mine), await running(small, other)) == (1, HALF)


@pytest.mark.certify
async def test_preemptors_of_several_priorities_have_their_turns(small: Cluster) -> None:
    await queues(small, q1_preemption=0)
    low = await small.create(alike("low", ALL, least=1, priority=LOW, at="q1-preemption"))
    await small.pods_run(low, ALL)
    middle = await small.create(alike("middle", HALF, priority=MIDDLE, at="q1-preemption"))
    await small.pods_run(middle, HALF)
    assert await running(small, low) == HALF
    high = await small.create(alike("high", ALL, priority=HIGH, at="q1-preemption"))
    await small.pods_run(high, ALL)


async def test_gated_pods_evict_no_pod_before_their_gates_are_gone(small: Cluster) -> None:
    await small.configure(conf("allocate, backfill, reclaim, preempt"))
    low = await small.create(alike("preemptee-1", ALL, least=1, priority=LOW))
    await small.pods_run(low, ALL)
    gated = {"pod": {"schedulingGates": [{"name": "example.com/g1"}]}}
    high = await small.create(alike("preemptor-1", ALL, least=HALF, priority=HIGH, of_task=gated))
    waiting = await small.pods_are(high, ALL, "Pending")
    await never_runs(small, high)
    assert await running(small, low) == ALL
    await ungate(small, *waiting)
    await small.pods_run(high, HALF)
    # Its other half evicts no pod: the preempted job keeps as much, far above its minimum.
    await asyncio.sleep(NEVER_S)
    assert (await running(small, low), await running(small, high)) == (HALF, HALF)
