"""Kueue's loads, made small: every workload runs to its end, and both figures are reported."""

import dataclasses

import pytest

from bench.queues import LOADS, Kind, Load, Run, figures


def small(name: str) -> Load:
    """Two queues of two cohorts with a handful of workloads."""
    load = LOADS[name]
    kinds: tuple[Kind, ...] = tuple(
        dataclasses.replace(kind, count=max(1, kind.count // 50)) for kind in load.kinds
    )
    return dataclasses.replace(load, cohorts=2, queues=2, kinds=kinds, nodes=min(load.nodes, 40))


@pytest.mark.parametrize("name", sorted(LOADS))
def test_every_workload_of_a_load_is_admitted_placed_and_ends(name: str) -> None:
    load = small(name)
    run = Run(load)
    run.run()
    assert run.finished == load.cohorts * load.queues * sum(kind.count for kind in load.kinds)
    assert run.cpu_s > 0
    assert not run.left


def test_figures_compare_with_a_hundred_times_theirs() -> None:
    rate, ratio = figures(small("baseline"))
    assert rate.bar == pytest.approx(4270)
    assert rate.passed == (rate.value >= 4270)
    assert ratio.value == pytest.approx(rate.value / 42.7)
