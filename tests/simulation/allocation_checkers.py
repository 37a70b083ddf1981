"""Judges whether the allocation of a claim is legal: by the claim's own words and by what the
devices are (`device_features`), without asking any part of Tutti.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from tests.simulation.device_features import (
    COUNTERS,
    PARTS_DRIVER,
    Device,
    device_named,
    matches,
)
from tests.simulation.devices import results_of
from tests.simulation.kube_server import Obj

#: Kinds of constraints that a claim may have.
_CONSTRAINTS: Final = ("matchAttribute", "distinctAttribute")

Chosen = list[tuple[str, Device]]
"""Devices of a claim, each with the request, or "request/subrequest", that it is for."""


def wanted_devices(claim: Obj) -> int:
    """How many devices a claim requests; of an alternative that is not chosen yet, the first."""
    names = {one["request"] for one in results_of(claim)}
    return sum(
        request.get("count", 1) for _, request in (_served(one, names) for one in _requests(claim))
    )


def why_illegal(claim: Obj) -> str:
    """What is wrong with the allocation of a claim that has devices; "": nothing."""
    chosen: Chosen = []
    for result in results_of(claim):
        device = device_named(result["pool"], result["device"])
        if device is None or device.driver != result["driver"]:
            return f"{result['driver']} has no device {result['device']} on {result['pool']}"
        if ("shareID" in result) != (device.driver == PARTS_DRIVER):
            return f"{device.name} of {result['pool']} is given out as a part, or not as one"
        chosen.append((result["request"], device))
    if len({result["pool"] for result in results_of(claim)}) > 1:
        return "its devices are on several nodes"
    return _why_not_requested(claim, chosen) or _why_constrained(claim, chosen)


def _why_not_requested(claim: Obj, chosen: Chosen) -> str:
    """Every request, and of each with alternatives exactly one, has its number of devices."""
    names = {name for name, _ in chosen}
    for one in _requests(claim):
        name, request = _served(one, names)
        devices = [device for of, device in chosen if of == name]
        if len({device.name for device in devices}) != request.get("count", 1):
            return f"request {name} has {len(devices)} of {request.get('count', 1)} devices"
        for device in devices:
            if not matches(request, device):
                return f"{device.name} is not what request {name} selects"
        names.discard(name)
    return f"no request or subrequest is named {', '.join(sorted(names))}" if names else ""


def _why_constrained(claim: Obj, chosen: Chosen) -> str:
    for constraint in claim["spec"]["devices"].get("constraints") or ():
        concerned = constraint.get("requests") or ()
        devices = [
            device
            for name, device in chosen
            if not concerned or name in concerned or name.partition("/")[0] in concerned
        ]
        for kind in _CONSTRAINTS:
            attribute = constraint.get(kind)
            values = [device.attributes.get(attribute) for device in devices if attribute]
            number = len(values) if kind == "distinctAttribute" else 1
            if values and (None in values or len(set(values)) != number):
                return f"{kind} {attribute} is not honoured: {values}"
    return ""


def overdrawn(devices: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The counters of which these devices (pool and name) together consume more than there is."""
    used: Counter[tuple[str, str, str]] = Counter()
    for pool, name in sorted(set(devices)):
        device = device_named(pool, name)
        for counter, amount in device.consumes.items() if device is not None else ():
            assert device is not None
            used[pool, device.counter_set, counter] += amount
    for (pool, of, counter), amount in used.items():
        if amount > COUNTERS[counter]:
            yield f"{amount} of {COUNTERS[counter]} {counter} of {of} on {pool}"


def features_of(claim: Obj) -> Iterator[str]:
    """What the allocation of a claim shows: how often each is written is counted."""
    names = {one["request"] for one in results_of(claim)}
    for constraint in claim["spec"]["devices"].get("constraints") or ():
        concerned = constraint.get("requests") or names
        if any(name in concerned or name.partition("/")[0] in concerned for name in names):
            yield from (kind for kind in _CONSTRAINTS if kind in constraint)
    for one in _requests(claim):
        listed = [f"{one['name']}/{sub['name']}" for sub in one.get("firstAvailable") or ()]
        yield from (f"alternative {at}" for at, name in enumerate(listed, 1) if name in names)
    for result in results_of(claim):
        device = device_named(result["pool"], result["device"])
        if device is not None and device.consumes:
            yield f"partition of {device.consumes['slices']}"
        if "shareID" in result:
            yield "consumed capacity"


def shares_counters(claim: Obj, others: Iterable[Obj]) -> bool:
    """Whether one of these claims has a partition of a GPU of which the claim has another."""
    mine = set(_counter_sets(claim))
    uid = claim["metadata"]["uid"]
    return any(
        not mine.isdisjoint(_counter_sets(one)) for one in others if one["metadata"]["uid"] != uid
    )


def _counter_sets(claim: Obj) -> Iterator[tuple[str, str]]:
    for result in results_of(claim):
        device = device_named(result["pool"], result["device"])
        if device is not None and device.counter_set:
            yield result["pool"], device.counter_set


def request_named(claim: Obj, name: str) -> Obj:
    """The request, or subrequest ("request/subrequest"), that has this name."""
    return next(
        (
            request
            for one in _requests(claim)
            for found, request in (_served(one, {name}),)
            if found == name
        ),
        {},
    )


def _requests(claim: Obj) -> list[Obj]:
    return list(claim["spec"]["devices"]["requests"])


def _served(request: Obj, names: set[str]) -> tuple[str, Obj]:
    """A request by the name that its devices have; of alternatives the first one with a device, or
    the first one.
    """
    if "exactly" in request:
        return request["name"], request["exactly"]
    listed = [(f"{request['name']}/{one['name']}", one) for one in request["firstAvailable"]]
    return next((one for one in listed if one[0] in names), listed[0])
