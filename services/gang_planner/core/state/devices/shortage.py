"""Why a node has no devices for a shape's claims, as a phrase for verdicts."""

from dataclasses import replace

from services.gang_planner.core.state.devices.allocation_search import (
    STEPS_MAX,
    DevicesOfNode,
    blocking_taint,
    search,
)
from services.gang_planner.core.state.devices.demand import (
    Alternative,
    ClaimNeed,
    DeviceDemand,
    RequestNeed,
)
from services.gang_planner.core.state.devices.device_table import DeviceEntry
from services.gang_planner.core.state.devices.ledger import Devices
from services.gang_planner.core.state.devices.selection import described, quoted
from shared.model.devices import DeviceConstraint

#: Alternatives of a request that a phrase explains.
_EXPLAINED_MAX = 3


def shortage(devices: Devices, demand: DeviceDemand, slot: int) -> str:
    """The first request of a claim that the node cannot serve; "": each claim alone could be served
    there.
    """
    node = devices.searches.on_node(slot)
    for claim, whole in demand.open:
        if devices.grants.find((claim.namespace, claim.name)) is not None:
            continue
        (need,) = devices.searches.needed_on(slot, (whole,))
        of_claim = f"of resourceclaim {claim.name}"
        for request in need.requests:
            if search((ClaimNeed((request,)),), node).picks is None:
                what = request.resource or f"request {request.name} {of_claim}"
                return f"{what}: {_of_request(request, node)}"
        result = search((need,), node)
        if result.picks is None:
            resources = sorted({request.resource for request in need.requests if request.resource})
            what = " and ".join(resources) or f"requests {of_claim}"
            return f"{what}: {_of_claim(need, node, exhausted=result.exhausted)}"
    result = search(devices.searches.needed_on(slot, devices.unsolved(demand)), node)
    return _NOT_SEARCHED if result.exhausted else ""


_NOT_SEARCHED = f"the search for devices ended after {STEPS_MAX} steps"


def _of_claim(need: ClaimNeed, node: DevicesOfNode, *, exhausted: bool) -> str:
    if exhausted:
        return _NOT_SEARCHED
    for constraint in need.constraints:
        rest = tuple(other for other in need.constraints if other is not constraint)
        if search((replace(need, constraints=rest),), node).picks is not None:
            return f"no devices satisfy {_named(constraint)}"
    if need.constraints and search((replace(need, constraints=()),), node).picks is not None:
        return f"no devices satisfy {' and '.join(map(_named, need.constraints))}"
    return "too few free devices for all of them together"


def _named(constraint: DeviceConstraint) -> str:
    kind = "distinctAttribute" if constraint.distinct else "matchAttribute"
    return f"{kind} {constraint.attribute}"


def _of_request(request: RequestNeed, node: DevicesOfNode) -> str:
    causes = [
        _of_alternative(alternative, node) for alternative in request.alternatives[:_EXPLAINED_MAX]
    ]
    if len(request.alternatives) == 1:
        return causes[0]
    more = ["…"] if len(request.alternatives) > _EXPLAINED_MAX else []
    explained = [
        f"{alternative.name}: {cause}"
        for alternative, cause in zip(request.alternatives, causes, strict=False)
    ]
    return "; ".join([*explained, *more])


def _of_alternative(alternative: Alternative, node: DevicesOfNode) -> str:
    failure = node.failure(alternative.requirement)
    if failure is not None:
        return f"selector {quoted(failure.selector)} failed: {failure.cause}"
    if alternative.number is None and node.unsettled_pool:
        return f"allocationMode All, and resource pool {node.unsettled_pool} is incomplete"
    matching = node.matching(alternative.requirement)
    free = [entry for entry in matching if alternative.admin or not node.is_taken(entry.id)]
    cause = _obstacle(alternative, free, node)
    if alternative.number is None and len(free) < len(matching):
        cause = f"allocationMode All, and {len(matching) - len(free)} are in use"
    return (
        f"too few free devices match {described(alternative.requirement)}{cause and f' ({cause})'}"
    )


def _obstacle(alternative: Alternative, free: list[DeviceEntry], node: DevicesOfNode) -> str:
    """The first thing beside its use that keeps a matching device from the request; "": none."""
    for entry in free:
        taint = blocking_taint(entry.taints, alternative.tolerations)
        if taint is not None:
            value = f"={taint.value}" if taint.value else ""
            return f"taint {taint.key}{value}:{taint.effect} is not tolerated"
        if entry.consumes:
            left = node.counters(entry.pool)
            for (of, name), amount in entry.consumes:
                if left[of, name] < amount:
                    return f"counter {name} of {of} is used up"
    if free and alternative.capacity:
        return f"requested capacity: {', '.join(name for name, _ in alternative.capacity)}"
    return ""
