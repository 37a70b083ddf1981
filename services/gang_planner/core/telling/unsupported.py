"""Members that ask for what nothing here judges: their gang's reason, and what is said of it."""

from typing import Final

from services.gang_planner.core.tables.gangs import Gang
from services.gang_planner.core.tables.members import UNSUPPORTED
from shared.model.objects import DEVICE_PREFIX

#: A constraint that is not judged.
CONSTRAINT: Final = "Unsupported"
#: A part of a device, which is shared out by an agreement that we are no party to.
DEVICE: Final = "UnsupportedDevice"
#: Fields named in one sentence.
_FIELDS_MAX: Final = 20


def reason(gang: Gang) -> str:
    """The reason of a gang that waits for such members: devices are named before the rest."""
    return DEVICE if any(one.startswith(DEVICE_PREFIX) for one in _fields(gang)) else CONSTRAINT


def sentence(gang: Gang) -> str:
    """What its members ask for."""
    fields = _fields(gang)
    devices = [one.removeprefix(DEVICE_PREFIX) for one in fields if one.startswith(DEVICE_PREFIX)]
    if devices:
        named = ", ".join(devices[:_FIELDS_MAX])
        return f"members ask for parts of devices, which are not placed by count: {named}"
    return f"members have constraints that are not supported: {', '.join(fields[:_FIELDS_MAX])}"


def _fields(gang: Gang) -> list[str]:
    return sorted(
        {
            field
            for member in gang.members.values()
            if member.state == UNSUPPORTED
            for field in member.shape.shape.unsupported
        }
    )
