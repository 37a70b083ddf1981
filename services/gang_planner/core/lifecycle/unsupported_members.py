"""Members with requests or constraints that the planner does not support: reason and message."""

from collections.abc import Iterable
from typing import Final

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import UNSUPPORTED
from shared.model.objects import DEVICE_PREFIX, GANG_PREFIX

#: A constraint that the planner does not evaluate.
CONSTRAINT: Final = "Unsupported"
#: A part of a device, which another component allocates by its own protocol.
DEVICE: Final = "UnsupportedDevice"
#: A gang declaration that is not read: if Tutti bound the pods singly, the gang could start partly.
GANG: Final = "UnsupportedGang"
#: Maximum number of fields named in one sentence.
_FIELDS_MAX: Final = 20
#: Maximum number of declarations named in one sentence, each with its remedy.
_DECLARATIONS_MAX: Final = 2


def reason(gang: Gang) -> str:
    """The pending reason of a gang that waits for such members: declarations before devices."""
    fields = _fields(gang)
    if _with_prefix(fields, GANG_PREFIX):
        return GANG
    return DEVICE if _with_prefix(fields, DEVICE_PREFIX) else CONSTRAINT


def sentence(gang: Gang) -> str:
    """The message for the gang's unsupported requests or constraints."""
    fields = _fields(gang)
    declarations = _with_prefix(fields, GANG_PREFIX)
    if declarations:
        return f"members are not bound one by one: {'; '.join(declarations[:_DECLARATIONS_MAX])}"
    devices = _with_prefix(fields, DEVICE_PREFIX)
    if devices:
        named = ", ".join(devices[:_FIELDS_MAX])
        return f"members ask for parts of devices, which are not placed by count: {named}"
    return f"members have constraints that are not supported: {', '.join(fields[:_FIELDS_MAX])}"


def _with_prefix(fields: Iterable[str], prefix: str) -> list[str]:
    return [one.removeprefix(prefix) for one in fields if one.startswith(prefix)]


def _fields(gang: Gang) -> list[str]:
    return sorted(
        {
            field
            for member in gang.members.values()
            if member.state == UNSUPPORTED
            for field in member.shape.shape.unsupported
        }
    )
