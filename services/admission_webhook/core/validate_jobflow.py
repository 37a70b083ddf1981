"""What a JobFlow must be: every step waits for steps that there are, and for none that waits for
it.
"""

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.dependencies import ring
from services.admission_webhook.core.parts import as_list, as_object, text_at
from services.admission_webhook.core.suggestions import Hints
from shared.dialects.field_checks import Findings, shown
from shared.dialects.protocol import FieldError, JsonObject


def validate(case: Case) -> list[FieldError]:
    """Every violation."""
    findings = Findings()
    spec = findings.section(case.candidate, "spec")
    needs: dict[str, list[str]] = {}
    flows = findings.items(spec, "spec.flows")
    for _, flow in flows:
        needs.setdefault(text_at(flow, "name"), []).extend(_targets(flow))
    hints = Hints()
    for path, flow in flows:
        for target in sorted({one for one in _targets(flow) if one not in needs}):
            near = hints.near(target, needs)
            findings.add(
                f"{path}.dependsOn.targets",
                f"Invalid value: {shown(target)}: "
                f"jobflow Flow is not DAG: vertex is not defined: {target[:100]}{near}",
            )
    circle = ring(needs)
    if circle:
        way = " -> ".join(circle[:20])
        findings.add("spec.flows", f"Invalid value: {way}: jobflow Flow is not DAG")
    return findings.errors


def _targets(flow: JsonObject) -> list[str]:
    depends = as_object(flow.get("dependsOn")) or {}
    return [one for one in as_list(depends.get("targets")) if isinstance(one, str)]
