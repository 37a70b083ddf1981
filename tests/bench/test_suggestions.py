"""The benchmark of suggestions on a trace with one gang that waits."""

import sys
from pathlib import Path

import pytest

from bench import suggestions
from bench.suggestions import figures, measure

#: On 4,392 nodes `b` waits for `a`.
TRACE = """user,node_num,interval,run_time,wall_time
a,4000,0,1000,1000
b,1000,10,100,200
"""


@pytest.mark.slow
def test_a_gang_that_waits_gets_suggestions(tmp_path: Path) -> None:
    (tmp_path / "theta.csv").write_text(TRACE)
    samples = measure(tmp_path, 1.0, None, 1)
    kinds = {suggestion.kind for sample in samples for suggestion in sample.suggestions}
    # The machine is one pool, so a job is one pod.
    assert kinds == {"requests", "nodes"}
    found = {figure.name: figure for figure in figures(samples, 1.0)}
    assert found["with a suggestion"].passed is True


def test_absent_traces_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--traces", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"theta\.csv is absent"):
        suggestions.main()
