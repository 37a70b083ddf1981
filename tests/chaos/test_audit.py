"""The judge counts what it is there to count: without this, its zeros would mean nothing."""

from typing import Any

import pytest

from tests.chaos.audit import PARTIAL_ALLOWED_S, Judge, Span
from tests.chaos.report import Report, percentile
from tests.controlplane.client import RawClient
from tests.controlplane.nodes import NodeShape, node_manifest
from tests.support.manual_clock import ManualClock
from tests.support.watched_objects import NAMESPACE, watched_group, watched_pod

KEY = (NAMESPACE, "train")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def judge(clock: ManualClock) -> Judge:
    """A judge that does not watch: the test hands it each event."""
    seeing = Judge(RawClient.__new__(RawClient), clock)
    for name in ("n0", "n1"):
        seeing.see_node("ADDED", node_manifest(name, NodeShape(cpu_milli=2000)))
    seeing.see_group("ADDED", watched_group(2))
    return seeing


def test_seconds_below_the_quorum_count_as_partial_and_beyond_the_allowed_apart(
    judge: Judge, clock: ManualClock
) -> None:
    judge.see_pod("ADDED", watched_pod("a", "n0"))
    clock.now_s += PARTIAL_ALLOWED_S + 5
    assert judge.partial_s(bare=False) == (PARTIAL_ALLOWED_S + 5, 5), "while it lasts"
    assert judge.longest_partial_gang_s() == PARTIAL_ALLOWED_S + 5
    judge.see_pod("ADDED", watched_pod("b", "n1"))
    clock.now_s += 100
    assert judge.partial_s(bare=False) == (PARTIAL_ALLOWED_S + 5, 5), "and once it is whole"
    assert judge.longest_partial_gang_s() == PARTIAL_ALLOWED_S + 5
    assert judge.partial_s(bare=True) == (0, 0)
    assert judge.degraded_s() == 0


def test_a_released_gang_that_is_bound_in_part_again_is_counted_twice(
    judge: Judge, clock: ManualClock
) -> None:
    for times in (1, 2):
        judge.see_pod("ADDED", watched_pod(f"a{times}", "n0"))
        clock.now_s += 7
        judge.see_pod("DELETED", watched_pod(f"a{times}", "n0", version=2))
        clock.now_s += 100
        assert judge.partial_s(bare=False) == (7 * times, 0)
        assert judge.partial_spans[KEY].times == times


def test_a_gang_that_was_whole_is_degraded_when_it_loses_a_member(
    judge: Judge, clock: ManualClock
) -> None:
    judge.see_pod("ADDED", watched_pod("a", "n0"))
    judge.see_pod("ADDED", watched_pod("b", "n1"))
    judge.see_pod("MODIFIED", watched_pod("b", "n1", version=2, phase="Failed"))
    clock.now_s += 3
    assert judge.degraded_s() == 3
    assert judge.partial_s(bare=False) == (0, 0)
    judge.see_pod("ADDED", watched_pod("c", "n1"))
    clock.now_s += 3
    assert judge.degraded_s() == 3


def test_a_member_on_a_node_that_is_gone_is_no_member(judge: Judge, clock: ManualClock) -> None:
    judge.see_pod("ADDED", watched_pod("a", "n0"))
    judge.see_pod("ADDED", watched_pod("b", "n1"))
    judge.see_node("DELETED", {"metadata": {"name": "n1"}})
    clock.now_s += 4
    assert judge.degraded_s() == 4
    judge.see_pod("ADDED", watched_pod("c", "nowhere"))
    clock.now_s += 4
    assert judge.degraded_s() == 8


def test_gangs_without_a_controller_are_counted_apart(judge: Judge, clock: ManualClock) -> None:
    judge.see_pod("ADDED", watched_pod("a", "n0", owned=False))
    clock.now_s += 2
    assert judge.partial_s(bare=False) == (0, 0)
    assert judge.partial_s(bare=True) == (2, 0)


def test_only_what_our_own_pods_over_fill_is_ours(judge: Judge) -> None:
    judge.see_pod("ADDED", watched_pod("a", "n0"))
    judge.see_pod("ADDED", watched_pod("foreign", "n0", cpu="2", scheduler="default-scheduler"))
    assert judge.overcommitted == ["n0: 3000 cpu of 2000"]
    assert judge.overcommitted_by_us == []
    judge.see_pod("ADDED", watched_pod("b", "n0", cpu="1500m"))
    assert judge.overcommitted_by_us == ["n0: 2500 cpu of 2000"]


def test_a_span_that_goes_on_and_off_adds_up() -> None:
    span = Span()
    for now_s, on in [(0, True), (1, True), (4, False), (5, False), (6, True)]:
        span.mark(now_s, on=on)
    assert (span.total_s(7), span.times) == (5, 2)


def test_percentiles_are_values_that_were_there() -> None:
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([5], 0.99) == 5
    assert percentile(list(range(1, 101)), 0.99) == 99


def report(**found: Any) -> Report:
    nothing: dict[str, Any] = {
        "seed": 1,
        "minutes": 1.0,
        "nodes": 1,
        "gangs": 1,
        "whole": 1,
        "faults": 1,
        "troubles": 0,
        "partial_s": 9.0,
        "partial_beyond_s": 0.0,
        "bare_partial_s": 9.0,
        "degraded_s": 9.0,
        "overcommitted_by_us": (),
        "overcommitted_together": 3,
        "refused_by_kubelets": 3,
        "double_bindings": (),
        "lost": (),
        "bound_though_refused": (),
        "recoveries": (),
        "ends": 4,
    }
    return Report(**{**nothing, **found})


@pytest.mark.parametrize(
    "found",
    [
        {"partial_beyond_s": 0.5},
        {"overcommitted_by_us": ("n0",)},
        {"double_bindings": ("uid",)},
        {"lost": ("gang-1",)},
        {"bound_though_refused": ("bad-1",)},
    ],
    ids=lambda found: next(iter(found)),
)
def test_a_report_with_anything_but_degraded_seconds_is_broken(found: dict[str, Any]) -> None:
    assert not list(report().broken())
    assert len(list(report(**found).broken())) == 1
