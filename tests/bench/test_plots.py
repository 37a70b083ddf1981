"""Plots show every run of a session, and those of the documents are current."""

import re
from pathlib import Path

import msgspec
import pytest

from bench.plots import PLOTS, drains, draw, lives_of, newest, plots, read
from bench.session import Session
from tests.bench.sessions import drain_case, drain_run, live_run, session


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


def test_the_newest_session_is_the_one_that_started_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.plots.CERTIFICATES", tmp_path)
    earlier, later = tmp_path / "2026-01-02-b.json", tmp_path / "2026-01-02-a.json"
    earlier.write_bytes(msgspec.json.encode(_session("2026-01-02T08:00:00+00:00")))
    later.write_bytes(msgspec.json.encode(_session("2026-01-02T19:00:00+00:00")))
    assert newest() == later


def test_certify_draws_the_plots_of_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.plots.CERTIFICATES", tmp_path)
    monkeypatch.setattr("bench.plots.PLOTS", tmp_path / "plots")
    made = _session("2026-01-02T08:00:00+00:00")
    (tmp_path / "page.json").write_bytes(msgspec.json.encode(made))
    assert [path.name for path in draw(newest())] == ["drain.svg", "live.svg"]
    assert (tmp_path / "plots" / "live.svg").read_text() == plots(made)["live.svg"]


def _session(started_at: str) -> Session:
    return session(
        drains=[drain_case(drain_run())], lives=[live_run(p50_ms=100.0)], started_at=started_at
    )
