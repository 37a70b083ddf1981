"""The benchmark of estimates on a trace whose starts can be computed by hand."""

import sys
from pathlib import Path

import pytest

from bench import estimates
from bench.estimates import figures, measure

#: On 4,392 nodes `next` waits for `all`, which ends at its limit.
TRACE = """user,node_num,interval,run_time,wall_time
a,4392,0,1000,1000
b,4392,10,100,200
"""
NATURAL = (4392 * 1000 + 4392 * 100) / 4392 / 10


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    (tmp_path / "theta.csv").write_text(TRACE)
    return tmp_path


@pytest.mark.slow
def test_a_start_at_the_limit_of_the_gang_before_it_is_the_latest_start(traces: Path) -> None:
    case = measure(traces, "theta", NATURAL, None, 1)
    (sample,) = case.samples
    assert (sample.inside, sample.waiting) == (True, 1)
    assert sample.estimate.latest_ms - sample.start_ms in range(2_000)
    found = {figure.name: figure for figure in figures(case)}
    assert found["true start inside the range"].passed is True
    assert found["median width / wait"].value == pytest.approx(1, abs=0.01)


def test_absent_traces_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--traces", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"theta\.csv is absent"):
        estimates.main()
