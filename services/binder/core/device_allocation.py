"""The allocation of a ResourceClaim: the devices that the planner chose, with everything that their
drivers and kubelets read of the claim and of its classes. Pure.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from shared.contracts.decisions import DeviceChoice
from shared.model.terms import Requirement, SelectorTerm

Object: TypeAlias = dict[str, Any]
"""An object of the API server, as JSON."""


def allocation_of(claim: Object, choice: DeviceChoice, classes: Mapping[str, Object]) -> Object:
    """`status.allocation` for a claim without one. `classes`: by name, those of `choice.classes`
    that exist.
    """
    of_claim: Object = claim.get("spec") or {}
    spec: Object = of_claim.get("devices") or {}
    chosen = {name: request for name, request in _alternatives(spec) if name in _requests(choice)}
    devices: Object = {"results": list(_results(claim["metadata"]["uid"], choice, chosen))}
    config = [*_of_classes(chosen, classes), *_of_claim(spec, chosen)]
    if config:
        devices["config"] = config
    allocation: Object = {"devices": devices}
    selector = _node_selector(choice)
    if selector is not None:
        allocation["nodeSelector"] = selector
    return allocation


def _requests(choice: DeviceChoice) -> set[str]:
    return {request for request, *_ in choice.devices}


def _alternatives(spec: Object) -> Iterator[tuple[str, Object]]:
    """Requests by name, and alternatives as "request/subrequest"."""
    for request in spec.get("requests") or ():
        name = request["name"]
        if request.get("exactly") is not None:
            yield name, request["exactly"]
        for alternative in request.get("firstAvailable") or ():
            yield f"{name}/{alternative['name']}", alternative


def _results(
    claim_uid: str, choice: DeviceChoice, chosen: Mapping[str, Object]
) -> Iterator[Object]:
    shares = {share.index: share for share in choice.shares}
    conditions = {condition.index: condition for condition in choice.conditions}
    for index, (request, driver, pool, device) in enumerate(choice.devices):
        result: Object = {"request": request, "driver": driver, "pool": pool, "device": device}
        if request in choice.admin:
            result["adminAccess"] = True
        tolerations = chosen.get(request, {}).get("tolerations")
        if tolerations:
            result["tolerations"] = tolerations
        waited_for = conditions.get(index)
        if waited_for is not None:
            result["bindingConditions"] = list(waited_for.binding)
            result["bindingFailureConditions"] = list(waited_for.failure)
        share = shares.get(index)
        if share is not None:
            result["shareID"] = _share_id(claim_uid, index)
            if share.capacity:
                result["consumedCapacity"] = dict(share.capacity)
        yield result


def _share_id(claim_uid: str, index: int) -> str:
    """A UUID that every binder derives alike, so that a repeated write allocates the same share."""
    digest = hashlib.sha256(f"{claim_uid}/{index}".encode()).hexdigest()
    # Version 8 of RFC 9562: a value of one's own.
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def _of_classes(chosen: Mapping[str, Object], classes: Mapping[str, Object]) -> Iterator[Object]:
    """The configuration of each class once, for all requests that were served from it."""
    requests: dict[str, list[str]] = {}
    for name, request in chosen.items():
        requests.setdefault(request.get("deviceClassName", ""), []).append(name)
    for name, of in requests.items():
        spec: Object = classes.get(name, {}).get("spec") or {}
        for config in spec.get("config") or ():
            yield {**config, "source": "FromClass", "requests": of}


def _of_claim(spec: Object, chosen: Mapping[str, Object]) -> Iterator[Object]:
    names = {*chosen, *(name.partition("/")[0] for name in chosen)}
    for config in spec.get("config") or ():
        requests: list[str] = config.get("requests") or []
        if not requests or not names.isdisjoint(requests):
            yield {**config, "source": "FromClaim"}


def _node_selector(choice: DeviceChoice) -> Object | None:
    """Where the claim can be used; None: on all nodes."""
    if choice.node_affinity is None:
        there = {"key": "metadata.name", "operator": "In", "values": [choice.node]}
        return {"nodeSelectorTerms": [{"matchFields": [there]}]}
    if not choice.node_affinity:
        return None
    return {"nodeSelectorTerms": [_term(term) for term in choice.node_affinity]}


def _term(term: SelectorTerm) -> Object:
    selector_term: Object = {}
    if term.expressions:
        selector_term["matchExpressions"] = list(_requirements(term.expressions))
    if term.fields:
        selector_term["matchFields"] = list(_requirements(term.fields))
    return selector_term


def _requirements(requirements: Iterable[Requirement]) -> Iterator[Object]:
    for requirement in requirements:
        expression: Object = {"key": requirement.key, "operator": requirement.operator}
        if requirement.values:
            expression["values"] = list(requirement.values)
        yield expression
