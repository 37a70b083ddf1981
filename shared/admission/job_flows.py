"""JobFlows: steps depend only on existing steps, and not on each other in a ring."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from shared.admission.parts import as_list, as_object, invalid, text_at
from shared.admission.rules import Case, KindRules, only_changes_of_spec
from shared.admission.suggestions import Hints
from shared.dialects.field_checks import Findings
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.resources import JOBFLOWS


def _violations(case: Case) -> list[FieldError]:
    findings = Findings()
    spec = findings.section(case.candidate, "spec")
    dependencies: dict[str, list[str]] = {}
    flows = findings.items(spec, "spec.flows")
    for _, flow in flows:
        dependencies.setdefault(text_at(flow, "name"), []).extend(_targets(flow))
    hints = Hints()
    for path, flow in flows:
        for target in sorted({name for name in _targets(flow) if name not in dependencies}):
            near = hints.near(target, dependencies)
            rule = f"jobflow Flow is not DAG: vertex is not defined: {target[:100]}{near}"
            findings.errors.append(invalid(f"{path}.dependsOn.targets", target, rule))
    ring = find_ring(dependencies)
    if ring:
        way = " -> ".join(ring[:20])
        findings.add("spec.flows", f"Invalid value: {way}: jobflow Flow is not DAG")
    return findings.errors


def _targets(flow: JsonObject) -> list[str]:
    depends = as_object(flow.get("dependsOn")) or {}
    return [target for target in as_list(depends.get("targets")) if isinstance(target, str)]


def find_ring(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """A ring of names of which each needs the next, with the first repeated at the end; [] when
    there is none. A name without an entry in `needs` needs nothing.
    """
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        # In its list each name is needed by the next.
        return list(reversed(error.args[1]))
    return []


RULES = KindRules(
    resource=JOBFLOWS,
    violations=_violations,
    operations=("CREATE", "UPDATE"),
    conditions=only_changes_of_spec,
)
