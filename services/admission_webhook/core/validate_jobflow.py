"""What a JobFlow must be: every step waits for steps that there are, and for none that waits for
it.
"""

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.dependencies import ring
from services.admission_webhook.core.parts import as_list, as_object, text_at
from services.admission_webhook.core.suggestions import did_you_mean
from shared.dialects.checking import Findings, shown
from shared.dialects.protocol import FieldError


def validate(case: Case) -> list[FieldError]:
    """Every violation."""
    findings = Findings()
    spec = findings.section(case.candidate, "spec")
    needs: dict[str, list[str]] = {}
    flows = findings.items(spec, "spec.flows")
    for _, flow in flows:
        depends = as_object(flow.get("dependsOn")) or {}
        targets = [one for one in as_list(depends.get("targets")) if isinstance(one, str)]
        needs.setdefault(text_at(flow, "name"), []).extend(targets)
    for path, flow in flows:
        for target in sorted(set(needs[text_at(flow, "name")]) - needs.keys()):
            near = did_you_mean(target, needs)
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
