"""The chart's alerts and dashboard as files, and that the check of their queries finds faults.

That every query asks for what a running suite exposes is proved in `test_metrics`.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.tracing.queries import (
    SCOPE,
    Query,
    Wrong,
    alerts,
    check,
    dashboard,
    exposed_in,
    selectors,
    unscoped,
)

#: Where the documentation's site has that page; the chart's value `prometheusRule.runbooks`.
RUNBOOKS = "https://tutti.dev/docs/alerts.html"
RUNBOOK = Path(__file__).parents[2] / "docs" / "alerts.md"
EXPOSED = exposed_in(
    [
        """# TYPE tutti_x_things_total counter
tutti_x_things_total{result="good"} 1
tutti_x_things_total{result="bad"} 0
# TYPE tutti_x_seconds histogram
tutti_x_seconds_bucket{le="1.0",phase="bound"} 1
tutti_x_seconds_bucket{le="+Inf",phase="bound"} 1
tutti_x_seconds_count{phase="bound"} 1
tutti_x_seconds_sum{phase="bound"} 0.5
# TYPE tutti_x_ready gauge
tutti_x_ready 1
"""
    ]
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('increase(tutti_x_things_total{result="bad"}[5m]) > 0', "{{ $labels.result }}"),
        ("sum by (result) (rate(tutti_x_things_total[5m]))", "{{result}}"),
        ('{__name__=~"tutti_.+_ready"} == 0', "{{ $labels.instance }}"),
        ("histogram_quantile(0.99, sum by (le) (rate(tutti_x_seconds_bucket[5m]))) > 1", ""),
        ("(sum(tutti_x_ready) or vector(0)) < 1", "{{ $value }}"),
        ("tutti_x_ready > 0 and on () sum(rate(tutti_x_things_total[5m])) == 0", ""),
        ("min(tutti_x_ready) - time() < 14 * 86400", ""),
    ],
)
def test_what_asks_for_what_is_exposed_passes(text: str, shown: str) -> None:
    check(Query("here", text, (shown,)), EXPOSED)


@pytest.mark.parametrize(
    ("text", "shown", "words"),
    [
        pytest.param("rate(tutti_x_things_total)", "", "rate", id="no PromQL"),
        pytest.param("tutti_x_thing_total", "", "nothing of that name", id="a name misspelt"),
        pytest.param('{__name__=~"tutti_y_.+"}', "", "nothing of that name", id="no such names"),
        pytest.param('tutti_x_things_total{reason="bad"}', "", "no label reason", id="a label"),
        pytest.param('tutti_x_things_total{result="ugly"}', "", "no result ugly", id="a value"),
        pytest.param("sum by (reason) (tutti_x_things_total)", "", "reason", id="grouped by none"),
        pytest.param("sum(tutti_x_things_total)", "{{result}}", "is shown", id="summed away"),
        pytest.param("sum(tutti_x_ready)", "{{ $labels.instance }}", "is shown", id="in an alert"),
        pytest.param(
            "histogram_quantile(0.9, sum by (phase) (rate(tutti_x_seconds_bucket[5m])))",
            "",
            "no buckets",
            id="buckets summed up",
        ),
        pytest.param(
            "sum by (result) (tutti_x_things_total) / sum(tutti_x_things_total)",
            "",
            "no pairs",
            id="sides that never match",
        ),
        pytest.param(
            "tutti_x_ready and on (result) tutti_x_things_total", "", "lacks", id="on what is not"
        ),
    ],
)
def test_what_asks_for_something_else_is_found(text: str, shown: str, words: str) -> None:
    with pytest.raises(Wrong, match=f"here: .*{words}"):
        check(Query("here", text, (shown,)), EXPOSED)


def test_every_alert_is_explained_under_its_own_name_and_nothing_else_is() -> None:
    explained = re.findall(r"^### (Tutti\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert Counter(explained) == Counter(rule["alert"] for rule in alerts())
    for rule in alerts():
        assert rule["annotations"]["runbook_url"] == f"{RUNBOOKS}#{rule['alert'].lower()}"
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_each_explanation_says_what_it_means_where_it_comes_from_and_what_cures_it() -> None:
    for section in re.split(r"^### ", RUNBOOK.read_text(), flags=re.MULTILINE)[1:]:
        name = section.split()[0]
        assert [word for word in ("*Means*", "*Cause*", "*Cure*") if word not in section] == [], (
            name
        )


def test_two_installations_in_one_prometheus_are_distinguished() -> None:
    for rule in alerts():
        assert unscoped(rule["expr"]) == [], rule["alert"]
    asked = [
        (panel["title"], one["expr"])
        for panel in dashboard()["panels"]
        for one in panel.get("targets", ())
    ]
    for title, text in asked:
        for selector in selectors(text):
            matched = {one.name for one in selector.matchers.matchers}
            assert matched >= SCOPE, f"{title}: {text}"
            if {"queue", "queue_name"} & matched:
                assert "$queue" in text, title
    by_queue = [text for _, text in asked if "$queue" in text]
    assert len(by_queue) >= 5


def test_an_aggregation_over_installations_is_found() -> None:
    assert unscoped("sum by (job) (tutti_x_ready)")
    assert unscoped("max(tutti_x_ready)")
    assert not unscoped("sum by (job, namespace) (tutti_x_ready)")


def test_panels_have_numbers_of_their_own_and_overlap_nowhere() -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 30
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or (panel["description"] and panel["targets"]), panel["title"]
