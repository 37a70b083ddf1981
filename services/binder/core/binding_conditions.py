"""Whether the devices of a claim are attached: their binding conditions, as drivers write them into
the claim's status. Pure.
"""

from collections.abc import Iterator

import msgspec

from services.binder.core.device_allocation import Object


class Attachment(msgspec.Struct, frozen=True, gc=False):
    """The state of a claim's devices. Pods may be bound if it has neither text."""

    #: The first condition that is not true yet, with its device.
    missing: str = ""
    #: The first failure, with its device, reason and message.
    failed: str = ""


def attachment_of(claim: Object) -> Attachment:
    """The state of the devices that a claim has."""
    status: Object = claim.get("status") or {}
    missing = ""
    for result in _results(status):
        name = result["device"]
        conditions = {one["type"]: one for one in _conditions(status, result)}
        for kind in result.get("bindingFailureConditions") or ():
            found = conditions.get(kind, {})
            if found.get("status") == "True":
                words = ": ".join(filter(None, (found.get("reason"), found.get("message"))))
                return Attachment(failed=f"device {name} has the condition {kind} ({words})")
        for kind in result.get("bindingConditions") or ():
            if conditions.get(kind, {}).get("status") != "True":
                missing = missing or f"device {name} waits for the condition {kind}"
    return Attachment(missing=missing)


def is_attached(claim: Object) -> bool:
    """Whether the claim has devices with conditions, and all of them are attached."""
    results = _results(claim.get("status") or {})
    return (
        any(one.get("bindingConditions") for one in results)
        and attachment_of(claim) == Attachment()
    )


def _results(status: Object) -> list[Object]:
    allocation: Object = status.get("allocation") or {}
    devices: Object = allocation.get("devices") or {}
    found: list[Object] = devices.get("results") or []
    return found


def _conditions(status: Object, result: Object) -> Iterator[Object]:
    """The conditions of a device of the claim."""
    for one in status.get("devices") or ():
        same = (one.get(field) == result.get(field) for field in ("driver", "pool", "device"))
        if all(same) and one.get("shareID") == result.get("shareID"):
            yield from one.get("conditions") or ()
