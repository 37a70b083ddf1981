"""The tables of the documents, made from the code: options, settings, metrics, values, rights,
policies, gang APIs. And those pages of docs/reference that are made as a whole.

A table stands between the comments `<!-- table: NAME -->` and `<!-- end -->`. To update
them all: `.venv/bin/python -m tests.documents.tables`.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import click

from services.admission_webhook.config import WebhookSettings
from services.admission_webhook.reporting import Reporting as WebhookReporting
from services.api.config import ApiSettings
from services.api.reporting import Reporting as ApiReporting
from services.binder.config import BinderSettings
from services.binder.reporting import Reporting as BinderReporting
from services.controller.config import ControllerSettings
from services.controller.reporting import Reporting as ControllerReporting
from services.controller.volcano_metrics import ControllerMetrics
from services.gang_planner.config import PlannerSettings
from services.gang_planner.core.configuration import unsupported
from services.gang_planner.core.constraints.filters import filter_rules
from services.gang_planner.core.policies import discovered
from services.gang_planner.core.scoring import scoring_rules
from services.gang_planner.reporting import Reporting as PlannerReporting
from services.observer.config import ObserverSettings
from services.observer.reporting import Reporting as ObserverReporting
from services.watcher.config import WatcherSettings
from services.watcher.reporting import Reporting as WatcherReporting
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.run_limits import SOURCES
from shared.runtime.settings import CommonSettings, KubeSettings, Setting, describe
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracers import tracer_for
from tests.deploy.values import documented_values
from tests.documents.device_features import device_features_table
from tests.documents.dialects import dialects_table
from tests.documents.reference import pages, table_of
from tests.documents.rights import rights_tables
from tutti.up.command import up

_DOCS: Final = Path(__file__).parents[2] / "docs"
SETTINGS: Final = _DOCS / "reference" / "settings.md"
CHART_PAGE: Final = _DOCS.parent / "deploy" / "chart" / "README.md"
DOCUMENTS: Final = (
    SETTINGS,
    _DOCS / "reference" / "metrics.md",
    CHART_PAGE,
    *(
        _DOCS / f"{name}.md"
        for name in (
            "operations",
            "policies",
            "migrating",
            "rights",
            "dialects",
            "devices",
            "submitting",
        )
    ),
)
_TABLE: Final = re.compile(r"(<!-- table: ([\w-]+(?: [\w-]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
_SETTINGS: Final[dict[str, type[CommonSettings]]] = {
    "watcher": WatcherSettings,
    "gang-planner": PlannerSettings,
    "binder": BinderSettings,
    "controller": ControllerSettings,
    "admission-webhook": WebhookSettings,
    "api": ApiSettings,
    "observer": ObserverSettings,
}


def tables() -> dict[str, str]:
    """All tables by name."""
    common, kube = describe(CommonSettings), describe(KubeSettings)
    made = {
        "options up": _up(),
        "settings all": _settings(common),
        "settings kube": _settings(_without(kube, common)),
    }
    for service, settings in _SETTINGS.items():
        made[f"settings {service}"] = _settings(_without(describe(settings), kube))
    for service, register in _metrics_of().items():
        metrics = Metrics(service)
        register(metrics)
        made[f"metrics {service}"] = _metrics(metrics)
    made["values"] = table_of(("value", "default", "what it is"), documented_values())
    made |= rights_tables()
    made["dialects"] = dialects_table()
    made["devices"] = device_features_table()
    made["gang marks"] = table_of(("mark", "whose"), _gang_marks())
    made["run limits"] = table_of(
        ("field", "of", "value"),
        ((f"`{one.path}`", one.objects, one.unit) for one in SOURCES),
    )
    made["policies"] = table_of(("plugin", "what it decides", "arguments and flags"), _policies())
    made["scoring rules"] = table_of(
        ("argument of `nodeorder`", "default weight", "what it prefers"), _scoring_rules()
    )
    made["filter rules"] = table_of(
        ("filter", "argument of `predicates` that switches it off", "what it refuses"),
        _filter_rules(),
    )
    for name, found in (
        ("policies left-out", unsupported.PLUGINS),
        ("actions left-out", unsupported.ACTIONS),
        ("flags left-out", unsupported.FLAGS),
    ):
        rows = ((f"`{one}`", reason) for one, reason in sorted(found.items()))
        made[name] = table_of(("name", "why it does nothing"), rows)
    return made


def _gang_marks() -> Iterable[tuple[str, ...]]:
    for reference in pod_vocabulary().references.unread:
        yield f"{reference.place} `{reference.key}`", reference.declared_by


def _policies() -> Iterable[tuple[str, ...]]:
    for name, build in discovered().items():
        module = inspect.getdoc(sys.modules[build.__module__]) or ""
        yield f"`{name}`", _first(module), _first(inspect.getdoc(build) or "")


def _scoring_rules() -> Iterable[tuple[str, ...]]:
    for rule in scoring_rules():
        module = inspect.getdoc(sys.modules[type(rule.score).__module__]) or ""
        yield f"`{rule.weight_argument}`", str(rule.default_weight), _first(module)


def _filter_rules() -> Iterable[tuple[str, ...]]:
    for rule in filter_rules():
        module = inspect.getdoc(sys.modules[type(rule.filter).__module__]) or ""
        switch = "none" if rule.switch is None else f"`{rule.switch}`"
        yield f"`{rule.filter.name}`", switch, _first(module)


def _first(text: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def with_tables(text: str) -> str:
    """The document with every table made again. Raises KeyError for a table of no known name."""
    made = tables()
    return _TABLE.sub(lambda found: f"{found[1]}{made[found[2]]}{found[3]}", text)


def named_in(text: str) -> list[str]:
    """Names of the tables that the document has."""
    return [found[2] for found in _TABLE.finditer(text)]


def _metrics_of() -> dict[str, Callable[[Metrics], object]]:
    silent = tracer_for("", service="documents", instance="documents-0")
    return {
        "watcher": lambda metrics: WatcherReporting(metrics, silent),
        "gang-planner": lambda metrics: PlannerReporting(metrics, lambda: 0),
        "binder": lambda metrics: BinderReporting(metrics, silent),
        "controller": lambda metrics: (
            ControllerReporting(metrics, silent),
            ControllerMetrics(metrics, lambda: 0),
        ),
        "admission-webhook": WebhookReporting,
        "api": ApiReporting,
        "observer": ObserverReporting,
    }


def _without(settings: list[Setting], others: list[Setting]) -> list[Setting]:
    known = {one.flag for one in others}
    return [one for one in settings if one.flag not in known]


def _settings(settings: Iterable[Setting]) -> str:
    return table_of(
        ("flag", "variable", "default", "rule", "what it is"),
        (
            (f"`{one.flag}`", f"`{one.variable}`", one.default, one.rule, one.description)
            for one in settings
        ),
    )


def _up() -> str:
    context = click.Context(up)
    rows = []
    for option in up.params:
        found = option.get_help_record(context)
        if found is not None:
            rows.append((f"`{found[0]}`", found[1]))
    return table_of(("option", "what it does"), rows)


def _metrics(metrics: Metrics) -> str:
    rows = []
    for family in metrics.registry.collect():
        if not family.name.startswith("process_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            rows.append((f"`{name}`", family.type, family.documentation.rstrip(".")))
    return table_of(("metric", "type", "what it measures"), rows)


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(with_tables(document.read_text()))
    for page, text in pages().items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text)
