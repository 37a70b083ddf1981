"""Messages for gangs whose members have requests or constraints that are not supported."""

from typing import Final

from services.gang_planner.core.lifecycle.assessment import unsupported_fields
from services.gang_planner.core.state.gangs import Gang

#: Maximum number of fields named in one sentence.
_FIELDS_MAX: Final = 20
#: Maximum number of declarations named in one sentence, each with its remedy.
_DECLARATIONS_MAX: Final = 2


def unsupported_words(gang: Gang) -> str:
    """The message for the gang's unsupported requests or constraints."""
    fields = unsupported_fields(gang)
    if fields.declarations:
        named = "; ".join(fields.declarations[:_DECLARATIONS_MAX])
        return f"Tutti does not bind the members one by one: {named}"
    if fields.devices:
        named = ", ".join(fields.devices[:_FIELDS_MAX])
        return f"members request parts of devices, which Tutti does not place by count: {named}"
    named = ", ".join(fields.constraints[:_FIELDS_MAX])
    return f"members have constraints that Tutti does not support: {named}"
