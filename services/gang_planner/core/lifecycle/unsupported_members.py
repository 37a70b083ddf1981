"""Members with requests or constraints that the planner does not support."""

from typing import NamedTuple

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import UNSUPPORTED
from shared.contracts.pending_reasons import PendingReason
from shared.model.objects import DEVICE_PREFIX, GANG_PREFIX


class UnsupportedFields(NamedTuple):
    """What a gang's members declare and the planner does not support, each sorted."""

    #: Gang declarations that are not read, each with its remedy.
    declarations: list[str]
    #: Requests for parts of devices.
    devices: list[str]
    #: Constraints that the planner does not evaluate.
    constraints: list[str]


def unsupported_fields(gang: Gang) -> UnsupportedFields:
    """The unsupported fields of the gang's members."""
    found = UnsupportedFields([], [], [])
    fields = {
        field
        for member in gang.members.values()
        if member.state == UNSUPPORTED
        for field in member.shape.shape.unsupported
    }
    for field in sorted(fields):
        if field.startswith(GANG_PREFIX):
            found.declarations.append(field.removeprefix(GANG_PREFIX))
        elif field.startswith(DEVICE_PREFIX):
            found.devices.append(field.removeprefix(DEVICE_PREFIX))
        else:
            found.constraints.append(field)
    return found


def reason(gang: Gang) -> PendingReason:
    """The pending reason of a gang that waits for such members: declarations before devices."""
    fields = unsupported_fields(gang)
    if fields.declarations:
        return PendingReason.UNSUPPORTED_GANG
    return PendingReason.UNSUPPORTED_DEVICE if fields.devices else PendingReason.UNSUPPORTED
