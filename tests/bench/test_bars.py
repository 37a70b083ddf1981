import pytest

from bench.bars import Figure, cpu_by_role, drain_figures, live_figures, webhook_figures
from bench.webhook import CreationRun, WebhookRun
from bench.yardstick import bind_limit, rate
from tests.bench.sessions import drain_case, drain_run, live_run, yardstick


def named(figures: list[Figure], name: str) -> Figure:
    (found,) = [figure for figure in figures if figure.name == name]
    return found


def test_the_bind_limit_is_the_best_concurrency_by_its_mean_before_and_after() -> None:
    before = yardstick(1000, 900)
    after = yardstick(600, 900)
    assert bind_limit(before, after) == 900


def test_a_rate_counts_the_steps_between_first_and_last() -> None:
    assert rate([10.0, 10.5, 11.0]) == 2.0
    with pytest.raises(ValueError, match="two instants"):
        rate([1.0])


def test_the_ratio_of_each_run_is_taken_with_its_own_yardsticks_and_then_the_median() -> None:
    # The machine was half as fast in the second run: the rate says 450, the ratio does not.
    cases = [
        drain_case(drain_run(rate=800), limit=1000),
        drain_case(drain_run(rate=400), limit=500),
        drain_case(drain_run(rate=450), limit=500),
    ]
    figures = drain_figures(cases, owned=True)
    assert named(figures, "rate / bind limit").value == 0.8
    assert named(figures, "rate / bind limit").runs == 3
    assert named(figures, "rate").value == 450


@pytest.mark.parametrize(
    ("rate_per_s", "owned", "passed"),
    [
        pytest.param(700, True, True, id="at the bar"),
        pytest.param(690, True, False, id="below it"),
        pytest.param(410, False, True, id="bare pods have a lower one"),
        pytest.param(390, False, False, id="bare pods below theirs"),
    ],
)
def test_the_ratio_is_held_to_its_bar(rate_per_s: float, owned: bool, passed: bool) -> None:
    figures = drain_figures([drain_case(drain_run(rate=rate_per_s))], owned=owned)
    assert named(figures, "rate / bind limit").passed is passed


def test_more_cpu_memory_or_waiting_than_the_bar_is_a_miss() -> None:
    run = drain_run(cpu_s=9.5, apiserver_ms=1.4, first_binding_s=4.5)
    figures = drain_figures([drain_case(run)], owned=True)
    missed = {figure.name for figure in figures if figure.passed is False}
    assert missed == {
        "suite's CPU per 10,000 pods",
        "API server's CPU per pod / bare bindings'",
        "first binding after start",
    }


def test_cpu_is_held_to_the_bar_only_where_start_up_is_a_small_part_of_it() -> None:
    figures = drain_figures([drain_case(drain_run(pods=2000))], owned=True)
    assert not [figure for figure in figures if "CPU per 10,000" in figure.name]


def test_other_schedulers_are_listed_without_bars() -> None:
    run = drain_run(contender="volcano", rate=100, cpu_s=45)
    figures = drain_figures([drain_case(run)], owned=True)
    figures += live_figures([live_run(contender="volcano", p50_ms=7400)])
    assert {figure.passed for figure in figures} == {None}
    assert {figure.group for figure in figures} == {"drain 20 x 500 (volcano)", "live (volcano)"}


def test_with_five_runs_each_of_them_is_held_to_the_bar_of_the_rate() -> None:
    cases = [drain_case(drain_run(rate=rate)) for rate in (900, 900, 900, 900, 600)]
    figures = drain_figures(cases, owned=True)
    assert named(figures, "rate / bind limit").passed
    slowest = named(figures, "rate / bind limit, slowest run")
    assert (slowest.value, slowest.passed) == (0.6, False)
    assert not [one for one in drain_figures(cases[:4], owned=True) if "slowest" in one.name]


def test_of_five_live_runs_the_slowest_is_listed() -> None:
    figures = live_figures([live_run(p50_ms=ms) for ms in (100, 100, 900, 100, 100)])
    assert named(figures, "200 x 8: p50, slowest run").value == 900
    assert named(figures, "200 x 8: last created to last bound, p50").value == 100


def test_live_latency_is_the_median_of_the_runs_percentiles() -> None:
    figures = live_figures([live_run(p50_ms=ms) for ms in (100, 900, 240)])
    found = named(figures, "200 x 8: last created to last bound, p50")
    assert (found.value, found.passed) == (240, True)


def test_cpu_by_process_adds_replicas_and_scales_to_ten_thousand_pods() -> None:
    assert cpu_by_role([drain_run(pods=5000, cpu_s=4.0)]) == {"watcher": 4.0, "gang-planner": 4.0}


def test_the_webhook_misses_its_bar_by_its_99th_percentile_or_by_one_creation_let_through() -> None:
    runs = [
        WebhookRun(
            reviews=10_000,
            connections=32,
            failed=0,
            per_s=5000,
            p50_ms=3,
            p99_ms=ms,
            bare_per_s=20_000,
            bare_p99_ms=2,
            cpu_us=100,
            bare_cpu_us=30,
        )
        for ms in (10, 30, 25)
    ]
    burst = CreationRun(pods=10_000, per_s=500, answered=9_999, failed_open=1)
    figures = webhook_figures(runs, [burst])
    assert named(figures, "32 connections, p99").value == 25
    missed = {figure.name for figure in figures if figure.passed is False}
    assert missed == {
        "32 connections, p99",
        "admitted without an answer, of 10,000 creations",
    }


def test_a_large_cluster_is_held_to_rate_and_slowest_gang_alone() -> None:
    figures = drain_figures([drain_case(drain_run())], owned=True, large=True)
    figures += live_figures([live_run(p50_ms=240)], large=True)
    assert [one.name for one in figures if one.bar is not None] == [
        "rate / bind limit",
        "nodes over-committed",
        "200 x 8: last created to last bound, p99",
    ]
