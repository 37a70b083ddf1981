"""Plots show every run of a session, and those of the documents are current."""

import re

from bench.plots import PLOTS, drains, lives_of, newest, plots, read
from tests.bench.sessions import drain_case, drain_run, live_run


def test_every_run_of_a_load_is_drawn_in_its_panel_below_its_limit() -> None:
    cases = [
        drain_case(drain_run(load="20 x 500")),
        drain_case(drain_run(load="500 x 20")),
        drain_case(drain_run(load="20 x 500")),
    ]
    drawn = drains(cases)
    assert drawn.count('class="run"') == drawn.count('class="limit"') == 3
    assert "20 x 500, 2 runs</text>" in drawn
    assert "500 x 20, 1 run</text>" in drawn


def test_more_time_is_higher_up() -> None:
    drawn = lives_of([live_run(p50_ms=100.0), live_run(p50_ms=400.0)])
    bars = re.findall(r'class="crowd" d="M[\d.]+ ([\d.]+)V([\d.]+)"', drawn)
    (low, high), (slower_low, slower_high) = [(float(a), float(b)) for a, b in bars]
    assert low > high > slower_low > slower_high
    assert drawn.count('class="one"') == 2


def test_the_plots_of_the_documents_are_those_of_the_newest_certificate() -> None:
    for name, drawn in plots(read(newest())).items():
        assert (PLOTS / name).read_text() == drawn, "run `make plots`"
