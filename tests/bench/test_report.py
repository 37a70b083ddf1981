import io

from rich.console import Console

from bench import report
from tests.bench.sessions import drain_case, drain_run, live_run, session


def test_the_table_has_value_bar_and_verdict_and_the_cost_of_each_process() -> None:
    found = session(drains=[drain_case(drain_run(rate=600))], lives=[live_run()])
    output = io.StringIO()
    report.print_tables(found, Console(file=output, width=140))
    text = output.getvalue()
    (row,) = [line for line in text.splitlines() if "rate / bind limit" in line]
    assert "0.60" in row
    assert "≥ 0.70" in row
    assert "MISSED" in row
    (planner,) = [line for line in text.splitlines() if "gang-planner" in line]
    assert "4.00" in planner, "both replicas"
    assert "POST pods/binding 1.000" in text


def test_only_missed_bars_count_as_missed() -> None:
    good = session(drains=[drain_case(drain_run())], lives=[live_run()])
    assert report.missed(good) == []
    late = session(drains=[], lives=[live_run(p50_ms=300)])
    assert [figure.name for figure in report.missed(late)] == [
        "200 x 8: last created to last bound, p50"
    ]
