"""CronJobs of Volcano's dialect: a valid schedule and time zone, and a name that is not too long.

As in Volcano, an invalid Job template is no violation, since its queue may be created later. The
violations that each of its Jobs would have are returned as warnings.
"""

import zoneinfo
from typing import Final

import msgspec

from shared.admission.jobs import validation
from shared.admission.parts import as_object, invalid, member, required, text_at
from shared.admission.rules import Case, KindRules, only_changes_of_spec
from shared.admission.scheduler_names import VOLCANO
from shared.dialects.field_checks import Findings
from shared.dialects.protocol import FieldError
from shared.kinds.cron_schedule import is_schedule
from shared.kube.resources import CRONJOBS_VOLCANO

#: A Job's name has eleven characters more than the CronJob's.
NAME_MAX: Final = 52
_SUFFIX: Final = "-00000000"


def _violations(case: Case) -> list[FieldError]:
    findings = Findings()
    spec = findings.section(case.candidate, "spec")
    schedule = findings.text(spec, "spec.schedule") or ""
    if not schedule:
        findings.errors.append(required("spec.schedule", "schedule is required, but got empty"))
    elif "TZ=" in schedule:
        rule = (
            "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
        )
        findings.errors.append(invalid("spec.schedule", schedule, rule))
    elif not is_schedule(schedule):
        rule = "schedule is not a valid cron expression"
        findings.errors.append(invalid("spec.schedule", schedule, rule))
    zone = findings.text(spec, "spec.timeZone")
    if zone is not None and (objection := _zone_objection(zone)):
        findings.errors.append(invalid("spec.timeZone", zone, objection))
    if case.operation == "CREATE" and len(case.name) > NAME_MAX:
        rule = (
            f"cronJob name must be no more than {NAME_MAX} characters to accommodate "
            "job name suffix (max 63 total)"
        )
        findings.errors.append(invalid("metadata.name", case.name, rule))
    return findings.errors


def _warnings(case: Case) -> tuple[str, ...]:
    """The violations that each Job of a valid CronJob would have."""
    spec = member(case.candidate, "spec", "jobTemplate", "spec")
    name = f"{case.name}{_SUFFIX}"
    candidate = {"metadata": {"name": name}, "spec": spec}
    job = msgspec.structs.replace(case, operation="CREATE", name=name, candidate=candidate, old={})
    return tuple(
        f"tutti: every Job of this CronJob will be refused: {error.text}"
        for error in validation.violations(job)[:3]
    )


def _zone_objection(zone: str) -> str:
    if not zone:
        return "timeZone must be nil or non-empty string, got empty string"
    if zone == "Local":
        return "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return "unknown timeZone: invalid timeZone" if zone != "UTC" else ""
    return ""


def _is_ours(case: Case) -> bool:
    spec = as_object(member(case.candidate, "spec", "jobTemplate", "spec")) or {}
    return (text_at(spec, "schedulerName") or VOLCANO) in case.known.scheduler_names


RULES = KindRules(
    resource=CRONJOBS_VOLCANO,
    violations=_violations,
    operations=("CREATE", "UPDATE"),
    is_ours=_is_ours,
    conditions=only_changes_of_spec,
    queue=lambda candidate: text_at(candidate, "spec", "jobTemplate", "spec", "queue"),
    warnings=_warnings,
)
