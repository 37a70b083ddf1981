"""Sizes at the limit: what one message holds, what one cycle does, what ten thousand gangs cost."""

import time

import pytest

from services.gang_planner.core.placement.session import BINDINGS_MAX
from shared.contracts import codec
from shared.contracts.subjects import MESSAGE_BYTES_MAX
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

TINY = make_shape({"cpu": 1})
#: With it a pod's UID and name are as long as they usually are.
LONG = "a-job-with-a-name-of-usual-length"
HUGE = {"cpu": 1_000_000, "pods": 100_000}


def test_a_quorum_with_names_as_long_as_kubernetes_allows_is_refused_with_a_reason() -> None:
    scene = Scene([make_node("n" * 253, HUGE)])
    longest = "g" * 240
    scene.put(make_group(longest, 1_400), *make_pods(longest, 1_400, TINY))
    assert scene.settle() == []
    why = scene.verdict(longest).why
    assert why is not None
    assert why.reason == "GangTooLarge"


@pytest.mark.slow
def test_members_above_the_quorum_are_split_into_messages_below_the_limit() -> None:
    scene = Scene([make_node("n0", HUGE)])
    scene.put(make_group(LONG, 1), *make_pods(LONG, 12_000, TINY))
    decisions = scene.settle()
    assert sum(len(one.bindings) for one in decisions) == 12_000
    assert len(decisions) > 1
    sizes = [len(codec.encode(one)) for one in decisions]
    assert max(sizes) < MESSAGE_BYTES_MAX
    assert max(sizes) > MESSAGE_BYTES_MAX // 2, "the bound must not be wasteful"


def test_a_cycle_stops_after_some_bindings_and_asks_to_go_on_at_once() -> None:
    scene = Scene(make_node(f"n{i}", HUGE) for i in range(3))
    gangs = BINDINGS_MAX // 500 + 2
    for index in range(gangs):
        scene.put(make_group(f"g{index}", 500), *make_pods(f"g{index}", 500, TINY))
    step = scene.step()
    assert sum(len(one.bindings) for one in step.decisions) == BINDINGS_MAX
    assert step.next_wakeup_ms == scene.now_ms
    assert len(scene.settle()) == 2
    assert scene.wakeup_ms is None or scene.wakeup_ms > scene.now_ms


@pytest.mark.slow
def test_ten_thousand_gangs_that_wait_cost_an_unrelated_pod_nothing() -> None:
    scene = Scene([make_node("n0")])
    for index in range(10_000):
        scene.put(make_group(f"g{index}", 2 + index % 50))
        scene.put(*make_pods(f"g{index}", 2 + index % 50, make_shape({"cpu": 4000}))[:1])
    scene.planner.step(scene.now_ms)
    (pod,) = make_pods("x", 1, TINY, group_name="", owner=None, gates=("wait",))
    before = time.process_time()
    scene.put(pod)
    scene.planner.step(scene.now_ms)
    assert time.process_time() - before < 0.005
