"""What a CronJob of Volcano's dialect must be: a schedule, a zone and a name that can be used.

Its template is not held against it, as in Volcano: a queue may come later. What would be refused of
each of its Jobs is returned as a warning.
"""

import zoneinfo
from typing import Final

import msgspec

from services.admission_webhook.core import validate_job
from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_object, text_at
from shared.dialects.field_checks import Findings, shown
from shared.dialects.protocol import FieldError
from shared.kinds.cron_schedule import is_schedule

#: A Job's name is the CronJob's and eleven characters more.
NAME_MAX: Final = 52
_SUFFIX: Final = "-00000000"


def validate(case: Case) -> list[FieldError]:
    """Every violation."""
    findings = Findings()
    spec = findings.section(case.candidate, "spec")
    schedule = findings.text(spec, "spec.schedule") or ""
    if not schedule:
        findings.add("spec.schedule", "Required value: schedule is required, but got empty")
    elif "TZ=" in schedule:
        told = (
            "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
        )
        findings.add("spec.schedule", f"Invalid value: {shown(schedule)}: {told}")
    elif not is_schedule(schedule):
        told = "schedule is not a valid cron expression"
        findings.add("spec.schedule", f"Invalid value: {shown(schedule)}: {told}")
    zone = findings.text(spec, "spec.timeZone")
    if zone is not None and (objection := _zone_objection(zone)):
        findings.add("spec.timeZone", f"Invalid value: {shown(zone)}: {objection}")
    if case.operation == "CREATE" and len(case.name) > NAME_MAX:
        told = (
            f"cronJob name must be no more than {NAME_MAX} characters to accommodate "
            "job name suffix (max 63 total)"
        )
        findings.add("metadata.name", f"Invalid value: {shown(case.name)}: {told}")
    return findings.errors


def warnings(case: Case) -> tuple[str, ...]:
    """What each Job of a valid CronJob would be refused for."""
    template = as_object((as_object(case.candidate.get("spec")) or {}).get("jobTemplate")) or {}
    name = f"{case.name}{_SUFFIX}"
    candidate = {"metadata": {"name": name}, "spec": template.get("spec")}
    job = msgspec.structs.replace(case, operation="CREATE", name=name, candidate=candidate, old={})
    return tuple(
        f"tutti: every Job of this CronJob will be refused: {error.text}"
        for error in validate_job.validate(job)[:3]
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


def is_ours(case: Case) -> bool:
    """Whether its Jobs name one of our schedulers."""
    template = as_object((as_object(case.candidate.get("spec")) or {}).get("jobTemplate")) or {}
    named = text_at(as_object(template.get("spec")) or {}, "schedulerName") or "volcano"
    return named in case.known.scheduler_names
