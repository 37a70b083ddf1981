"""The benchmark of reservations on a trace whose waits can be computed by hand."""

import sys
from pathlib import Path

import pytest

from bench import reservations
from bench.reservations import figures, measure

#: On 4,392 nodes `large` waits for `a`, until 1,000, and without its reservation for `b`, until
#: 2,000, which then waits until 1,100.
TRACE = """user,node_num,interval,run_time,wall_time
a,3000,0,1000,1000
large,4392,10,100,100
b,1000,10,1980,1980
"""
#: The load of these jobs as they arrive.
NATURAL = (3000 * 1000 + 4392 * 100 + 1000 * 1980) / 4392 / 20


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    (tmp_path / "theta.csv").write_text(TRACE)
    return tmp_path


@pytest.mark.slow
def test_waits_with_reservations_are_put_in_proportion_to_those_without(traces: Path) -> None:
    without, beside = measure(traces, (NATURAL,), None, 1)
    assert (without.large.max_s, beside.large.max_s) == (1990, 990)
    assert (without.small_mean_s, beside.small_mean_s) == (0, 1080)
    found = {figure.name: figure for figure in figures([without, beside])}
    assert found["p95 of large gangs' wait / without"].value == pytest.approx(990 / 1990)
    assert found["p95 of large gangs' wait / without"].passed is False
    assert found["utilisation lost"].passed is True
    assert found["planner's CPU"].passed is None


@pytest.mark.slow
def test_a_missed_bar_is_named_and_fails_if_strict(
    traces: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["bench", "--traces", str(traces), f"--load={NATURAL}", "--strict"]
    )
    with pytest.raises(SystemExit):
        reservations.main()
    missed = [line for line in capsys.readouterr().out.splitlines() if line.endswith("MISSED")]
    assert len(missed) == 2
    assert "large gangs' wait / without: 0.497, at most 0.25" in missed[0]


def test_absent_traces_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--traces", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"theta\.csv is absent"):
        reservations.main()
