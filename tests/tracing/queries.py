"""The queries of the chart's alerts and dashboard, and what is wrong with one, given what is
exposed.

A query may name what is exposed only: metrics, their labels and, in equalities, values. Labels that
an alert or a legend shows must be left over by its query, and both sides of a calculation must be
left with the same labels, or Prometheus finds no pair and shows nothing.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import promql_parser as promql
import yaml
from prometheus_client.parser import text_string_to_metric_families

FILES: Final = Path(__file__).parents[2] / "deploy" / "chart" / "files"
#: Prometheus itself puts these on every series that it reads.
OF_TARGETS: Final = frozenset({"instance", "job", "namespace"})
#: What distinguishes one installation's series from another's.
SCOPE: Final = frozenset({"job", "namespace"})
_SHOWN: Final = re.compile(r"\{\{\s*\$labels\.(\w+)|\{\{\s*(\w+)\s*\}\}")

Exposed: TypeAlias = dict[str, dict[str, set[str]]]
"""By name of a series: its labels, and each one's values."""


class Query(NamedTuple):
    """One query of one of the files."""

    where: str
    text: str
    #: What is shown beside its values.
    shown: tuple[str, ...] = ()


class Wrong(AssertionError):
    """What is wrong with a query."""


def exposed_in(texts: Iterable[str]) -> Exposed:
    """What processes show at /metrics, all together."""
    found: Exposed = {}
    for text in texts:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = found.setdefault(sample.name, {})
                for label, value in sample.labels.items():
                    labels.setdefault(label, set()).add(value)
    return found


def alerts() -> list[dict[str, Any]]:
    """All alerting rules."""
    groups = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana reads it."""
    found: dict[str, Any] = json.loads((FILES / "dashboard.json").read_text())
    return found


def queries() -> Iterator[Query]:
    """Every query of both files."""
    for rule in alerts():
        annotations = rule["annotations"]
        yield Query(rule["alert"], rule["expr"], tuple(annotations.values()))
    board = dashboard()
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield Query(panel["title"], _plain(target["expr"]), (target["legendFormat"],))
    for one in board["annotations"]["list"]:
        yield Query(one["name"], _plain(one["expr"]), (one["textFormat"],))


def _plain(text: str) -> str:
    """Without the dashboard's variables, and Grafana's own."""
    plain = text.replace("$__rate_interval", "5m")
    for variable in dashboard()["templating"]["list"]:
        plain = plain.replace(f"${variable['name']}", ".*")
    return plain


def check(query: Query, exposed: Exposed) -> None:
    """Raises Wrong where the query, or what is shown of it, asks for what is not there."""
    try:
        parsed = promql.parse(query.text)
    except ValueError as error:
        raise Wrong(f"{query.where}: {error}") from None
    try:
        left = _labels(parsed, exposed)
    except Wrong as wrong:
        raise Wrong(f"{query.where}: {wrong}") from None
    for text in query.shown:
        for found in _SHOWN.finditer(text):
            label = found[1] or found[2]
            if left is None or label not in left:
                raise Wrong(f"{query.where}: {label} is shown, and the query leaves {left}")


def selectors(text: str) -> list[promql.VectorSelector]:
    """All selectors of a query."""
    parts = _parts(promql.parse(_plain(text)))
    return [one for one in parts if isinstance(one, promql.VectorSelector)]


def unscoped(text: str) -> list[str]:
    """The aggregations of a query that add up what several installations show."""
    return [
        one.prettify()
        for one in _parts(promql.parse(text))
        if isinstance(one, promql.AggregateExpr)
        and not (one.modifier is not None and set(one.modifier.labels) >= SCOPE)
    ]


def _parts(expr: promql.Expr) -> Iterator[promql.Expr]:
    """An expression and all that it is made of."""
    yield expr
    match expr:
        case promql.ParenExpr() | promql.UnaryExpr() | promql.AggregateExpr():
            inner: list[promql.Expr] = [expr.expr]
        case promql.BinaryExpr():
            inner = [expr.lhs, expr.rhs]
        case promql.MatrixSelector():
            inner = [expr.vector_selector]
        case promql.Call():
            inner = list(expr.args)
        case _:
            inner = []
    for one in inner:
        yield from _parts(one)


def _labels(expr: promql.Expr, exposed: Exposed) -> frozenset[str] | None:
    """The labels that an expression leaves; None: it is no vector."""
    match expr:
        case promql.NumberLiteral() | promql.StringLiteral():
            return None
        case promql.ParenExpr() | promql.UnaryExpr():
            return _labels(expr.expr, exposed)
        case promql.VectorSelector():
            return _selected(expr, exposed)
        case promql.MatrixSelector():
            return _selected(expr.vector_selector, exposed)
        case promql.Call():
            return _called(expr, exposed)
        case promql.AggregateExpr():
            return _aggregated(expr, exposed)
        case promql.BinaryExpr():
            return _combined(expr, exposed)
        case _:
            raise Wrong(f"{expr}: no such expression is expected here")


def _selected(selector: promql.VectorSelector, exposed: Exposed) -> frozenset[str]:
    matchers = {one.name: one for one in selector.matchers.matchers}
    by_name = matchers.pop("__name__", None)
    pattern = selector.name or (by_name.value if by_name is not None else "")
    named = [series for series in exposed if re.fullmatch(pattern, series)]
    if not named:
        raise Wrong(f"{selector}: nothing of that name is exposed")
    for series in named:
        for label in matchers.keys() - OF_TARGETS:
            matcher = matchers[label]
            values = exposed[series].get(label)
            if values is None:
                raise Wrong(f"{series} has no label {label}")
            if matcher.op == promql.MatchOp.Equal and matcher.value not in values:
                raise Wrong(f"{series} has no {label} {matcher.value}: {sorted(values)}")
    return OF_TARGETS.union(*(exposed[series] for series in named))


def _called(call: promql.Call, exposed: Exposed) -> frozenset[str] | None:
    found = [labels for one in call.args if (labels := _labels(one, exposed)) is not None]
    if call.func.name == "vector":
        return frozenset()
    if call.func.name == "absent":
        return frozenset()
    if not found:
        return None
    if call.func.name == "histogram_quantile" and "le" not in found[0]:
        raise Wrong(f"{call.prettify()}: no buckets are left")
    return found[0] - ({"le"} if call.func.name == "histogram_quantile" else set())


def _aggregated(expr: promql.AggregateExpr, exposed: Exposed) -> frozenset[str]:
    inner = _labels(expr.expr, exposed)
    kept = frozenset(expr.modifier.labels if expr.modifier is not None else ())
    if inner is None or not kept <= inner:
        raise Wrong(f"by {sorted(kept)}, where there are {inner and sorted(inner)}")
    return kept


def _combined(expr: promql.BinaryExpr, exposed: Exposed) -> frozenset[str] | None:
    left, right = _labels(expr.lhs, exposed), _labels(expr.rhs, exposed)
    if left is None or right is None:
        return right if left is None else left
    modifier = expr.modifier
    if modifier is not None and modifier.matching is not None:
        missing = set(modifier.matching.labels) - (left & right)
        if missing:
            raise Wrong(f"matched on {sorted(missing)}, which one side lacks")
        return left
    if str(expr.op) == "or":
        return left | right
    if left != right:
        raise Wrong(f"{sorted(left)} beside {sorted(right)}: no pairs are found")
    return left
