"""Strategies for everything that claims for devices can request beyond a number of whole devices of
one node: all devices, admin access, constraints, alternatives, tolerations, capacities; and for
devices with taints, shared counters and several allocations, on one node or on the network.

Not drawn, because kube-scheduler 1.36 differs from the API's own description there:

* `distinctAttribute` for a request of several devices: it compares with the last one only;
* a constraint of a request for all devices and other requests: it gives up where the other requests
  could have other devices;
* a pool that names a device twice: it counts as invalid only where both can be used;
* a pool with counters that is not complete: no claim gets all devices of any node then;
* alternatives of which one is all devices, on a node with a pool that is not complete: it gives up
  where another alternative fits;
* a request with admin access before one without: its devices count as in use for the rest of the
  pod, but not for other pods. So these requests are the last ones of the last claim.
"""

from collections import Counter
from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle import clusters
from tests.oracle.scheduler import Cluster

Json = dict[str, Any]
GPU: Final = "gpu.example.com"
FABRIC: Final = "fabric.example.com"
_ROOT: Final = "resource.kubernetes.io/pcieRoot"
_CLASSES: Final = ("gpu", "gpu", "gpu", "large", "fabric")
_SELECTED: Final = {
    "gpu": f'device.driver == "{GPU}"',
    "large": (
        f'device.driver == "{GPU}" && '
        f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
    ),
    "fabric": f'device.driver == "{FABRIC}"',
}
_SELECTORS: Final = (
    f'has(device.attributes["{GPU}"].numa) && device.attributes["{GPU}"].numa == 0',
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
)
_TAINTS: Final = (
    {"key": "broken", "effect": "NoExecute"},
    {"key": "slow", "value": "yes", "effect": "NoSchedule"},
    {"key": "odd", "effect": "None"},
)
_TOLERATIONS: Final = (
    {"operator": "Exists"},
    {"key": "broken", "operator": "Exists", "effect": "NoExecute"},
    {"key": "slow", "operator": "Equal", "value": "yes"},
    {"key": "slow", "operator": "Equal", "value": "no", "effect": "NoSchedule"},
)
_POLICIES: Final[tuple[Json | None, ...]] = (
    None,
    {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]},
    {"default": "4Gi", "validRange": {"min": "4Gi", "step": "4Gi", "max": "32Gi"}},
    {"default": "8Gi", "validRange": {"min": "8Gi"}},
)
_CLAIMS: Final = ("d0", "d1")
#: A resource that a class has; its nodes may have it from a device plugin, too.
_RESOURCE: Final = "example.com/gpu"
_RESOURCES: Final = (_RESOURCE, "deviceclass.resource.kubernetes.io/large", "example.com/other")
_ZONES: Final = st.lists(st.sampled_from("ab"), min_size=1, max_size=3)


def _meta(name: str, **fields: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **fields}


def _device(draw: st.DrawFn, name: str) -> Json:
    attributes: Json = {}
    if draw(st.integers(0, 5)):
        attributes["numa"] = {"int": draw(st.integers(0, 1))}
    if draw(st.integers(0, 5)):
        attributes[_ROOT] = {"string": draw(st.sampled_from(("pci0", "pci1")))}
    found: Json = {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": draw(st.sampled_from(("20Gi", "80Gi")))}},
    }
    if draw(st.integers(0, 5)) == 0:
        found["taints"] = [draw(st.sampled_from(_TAINTS))]
    if draw(st.integers(0, 5)) == 0:
        found["bindingConditions"] = ["Attached"]
        found["bindingFailureConditions"] = ["Broken"]
        found["bindsToNode"] = draw(st.booleans())
    return found


def _shared(draw: st.DrawFn, name: str) -> Json:
    """A device that several claims may have."""
    found = _device(draw, name)
    found["allowMultipleAllocations"] = True
    policy = draw(st.sampled_from(_POLICIES))
    if policy is not None:
        found["capacity"]["memory"]["requestPolicy"] = policy
    return found


def _partitions(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """A GPU and its parts, and the counters that they share."""
    sets = [{"name": "gpu", "counters": {"slices": {"value": str(draw(st.integers(2, 4)))}}}]
    found: list[Json] = []
    for name, slices in (("dev-0", 2), ("dev-1", 1), ("dev-2", 1)):
        one = _shared(draw, name) if draw(st.integers(0, 7)) == 0 else _device(draw, name)
        counters = {"slices": {"value": str(slices)}}
        one["consumesCounters"] = [{"counterSet": "gpu", "counters": counters}]
        found.append(one)
    return found, sets


def _slice(name: str, driver: str, pool: str, slices: int, **spec: Any) -> Json:
    found = {"name": pool, "generation": 1, "resourceSliceCount": slices}
    return {"metadata": _meta(name), "spec": {"driver": driver, "pool": found, **spec}}


@st.composite
def _local(draw: st.DrawFn, node: str) -> list[Json]:
    """The pool of a node's GPUs: whole ones, shared ones, or parts of one."""
    kind = draw(st.sampled_from(("whole", "whole", "shared", "parts")))
    if kind == "parts":
        found, sets = _partitions(draw)
        where = {"nodeName": node}
        return [
            _slice(f"{node}-gpus", GPU, node, 2, devices=found, **where),
            _slice(f"{node}-counters", GPU, node, 2, sharedCounters=sets, **where),
        ]
    make = _shared if kind == "shared" else _device
    number = draw(st.sampled_from((1, 2, 2) if kind == "shared" else (1, 2, 3, 4, 4)))
    found = [make(draw, f"dev-{index}") for index in range(number)]
    missing = draw(st.sampled_from((*(0,) * 9, 1)))
    return [_slice(f"{node}-gpus", GPU, node, 1 + missing, nodeName=node, devices=found)]


def _in_zone(zone: str) -> Json:
    requirement = {"key": clusters.ZONE, "operator": "In", "values": [zone]}
    return {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}


@st.composite
def _network(draw: st.DrawFn) -> list[Json]:
    """Pools of devices that several nodes can use."""
    found: list[Json] = []
    if draw(st.booleans()):
        found += [
            _slice(
                f"zone-{zone}",
                FABRIC,
                "zones",
                2,
                nodeSelector=_in_zone(zone),
                devices=[
                    _device(draw, f"{zone}-{index}") for index in range(draw(st.integers(0, 2)))
                ],
            )
            for zone in "ab"
        ]
    if draw(st.booleans()):
        everywhere = [_device(draw, "any-0")]
        found.append(_slice("any", FABRIC, "any", 1, allNodes=True, devices=everywhere))
    if draw(st.booleans()):
        places: tuple[Json, ...] = (
            {"nodeName": "n0"},
            {"nodeSelector": _in_zone("b")},
            {"allNodes": True},
        )
        each = [{**_device(draw, f"each-{index}"), **place} for index, place in enumerate(places)]
        found.append(_slice("each", FABRIC, "each", 1, perDeviceNodeSelection=True, devices=each))
    return found


# --- claims


def _exactly(draw: st.DrawFn, *, admin: bool) -> Json:
    found: Json = {"deviceClassName": draw(st.sampled_from(_CLASSES))}
    if draw(st.integers(0, 6)) == 0:
        found["allocationMode"] = "All"
    else:
        found["allocationMode"] = "ExactCount"
        found["count"] = draw(st.sampled_from((1, 1, 1, 2, 3)))
    if draw(st.integers(0, 5)) == 0:
        found["selectors"] = [{"cel": {"expression": draw(st.sampled_from(_SELECTORS))}}]
    if draw(st.integers(0, 2)) == 0:
        found["tolerations"] = [draw(st.sampled_from(_TOLERATIONS))]
    if draw(st.integers(0, 5)) == 0:
        amount = draw(st.sampled_from(("1Gi", "10Gi", "13Gi", "30Gi", "90Gi")))
        found["capacity"] = {"requests": {draw(st.sampled_from(("memory",) * 7 + ("x",))): amount}}
    if admin and draw(st.integers(0, 7)) == 0:
        found["adminAccess"] = True
    return found


def _request(draw: st.DrawFn, name: str, *, admin: bool) -> Json:
    if draw(st.integers(0, 3)):
        return {"name": name, "exactly": _exactly(draw, admin=admin)}
    number = draw(st.integers(1, 3))
    subs = [{"name": f"s{index}", **_exactly(draw, admin=False)} for index in range(number)]
    return {"name": name, "firstAvailable": subs}


def _counts(request: Json) -> set[int | None]:
    """The number of devices in each alternative; None: all."""
    found = [request["exactly"]] if "exactly" in request else request["firstAvailable"]
    return {one.get("count") for one in found}


def _constraints(draw: st.DrawFn, requests: list[Json]) -> list[Json]:
    found: list[Json] = []
    for attribute in draw(st.lists(st.sampled_from((f"{GPU}/numa", _ROOT)), max_size=2)):
        kind = draw(st.sampled_from(("matchAttribute", "distinctAttribute")))
        numbers = {1} if kind == "distinctAttribute" else {1, 2, 3}
        allowed = [one["name"] for one in requests if _counts(one) <= numbers]
        every = [one["name"] for one in requests if "exactly" in one and _counts(one) == {None}]
        if every and kind == "matchAttribute" and draw(st.booleans()):
            found.append({kind: attribute, "requests": [draw(st.sampled_from(every))]})
        elif allowed:
            concerned = draw(st.lists(st.sampled_from(allowed), min_size=1, unique=True))
            found.append({kind: attribute, "requests": concerned})
    return found


def _open_claim(draw: st.DrawFn, name: str) -> Json:
    number, last = draw(st.sampled_from((1, 1, 2, 2, 3))), name == _CLAIMS[-1]
    requests = [_request(draw, f"r{index}", admin=last) for index in range(number)]
    requests.sort(key=lambda one: one.get("exactly", {}).get("adminAccess", False))
    spec = {"requests": requests, "constraints": _constraints(draw, requests)}
    return {
        "metadata": _meta(name, namespace="team"),
        "spec": {"devices": spec},
        "status": {},
    }


def _result(draw: st.DrawFn, spec: Json, device: Json) -> Json:
    found = {
        "request": "r0",
        "driver": spec["driver"],
        "pool": spec["pool"]["name"],
        "device": device["name"],
    }
    if device.get("allowMultipleAllocations"):
        found["shareID"] = "1a2b3c4d-0000-4000-8000-000000000000"
        found["consumedCapacity"] = {"memory": draw(st.sampled_from(("4Gi", "8Gi", "20Gi")))}
    elif draw(st.integers(0, 4)) == 0:
        found["adminAccess"] = True
    return found


def _allocated_claim(draw: st.DrawFn, name: str, spec: Json, device: Json) -> Json:
    """A claim of other pods that has this device."""
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return {
        "metadata": _meta(name, namespace="team"),
        "spec": {"devices": {"requests": [{"name": "r0", "exactly": request}]}},
        "status": {
            "allocation": {"devices": {"results": [_result(draw, spec, device)]}},
            "reservedFor": [{"resource": "pods", "name": "other", "uid": "pod-other"}],
        },
    }


@st.composite
def _rule(draw: st.DrawFn, index: int) -> Json:
    selector: Json = {
        field: value
        for field, value in (
            ("driver", draw(st.sampled_from((None, GPU, FABRIC)))),
            ("pool", draw(st.sampled_from((None, "n0", "any")))),
            ("device", draw(st.sampled_from((None, "dev-0", "dev-1")))),
        )
        if value is not None
    }
    spec: Json = {"taint": draw(st.sampled_from(_TAINTS))}
    if draw(st.integers(0, 5)):
        spec["deviceSelector"] = selector
    return {"metadata": _meta(f"rule-{index}"), "spec": spec}


@st.composite
def pod(draw: st.DrawFn, name: str) -> Json:
    """A small pod with one or two of the open claims, which every node takes."""
    chosen = sorted(draw(st.sets(st.sampled_from(_CLAIMS), min_size=1)))
    claims = [{"name": f"c{index}", "resourceClaimName": one} for index, one in enumerate(chosen)]
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
    return {
        "metadata": _meta(name, namespace="team"),
        "spec": {"containers": [container], "initContainers": [], "resourceClaims": claims},
        "status": {"phase": "Pending"},
    }


@st.composite
def requesting_pod(draw: st.DrawFn, name: str) -> Json:
    """A pod that requests extended resources, and perhaps has a claim, too: one without admin
    access, because the claim for extended resources is the last one.
    """
    found: Json = draw(pod(name))
    spec = found["spec"]
    spec["resourceClaims"] = []
    if draw(st.integers(0, 3)) == 0:
        spec["resourceClaims"] = [{"name": "c", "resourceClaimName": _CLAIMS[0]}]
    spec["containers"] = [_requesting(draw, f"c{index}") for index in range(draw(_ONE_OR_TWO))]
    init = [_requesting(draw, f"i{index}") for index in range(draw(st.sampled_from((0, 0, 1, 2))))]
    for one in init:
        if draw(st.integers(0, 2)) == 0:
            one["restartPolicy"] = "Always"
    spec["initContainers"] = init
    return found


_ONE_OR_TWO: Final = st.sampled_from((1, 1, 2))


def _requesting(draw: st.DrawFn, name: str) -> Json:
    chosen = draw(st.sets(st.sampled_from(_RESOURCES[:2]), max_size=2))
    chosen |= {_RESOURCES[2]} if draw(st.integers(0, 9)) == 0 else set()
    amounts = {one: str(draw(st.sampled_from((0, 1, 1, 1, 2)))) for one in sorted(chosen)}
    resources = {"requests": {"cpu": "10m", **amounts}, "limits": amounts}
    return {"name": name, "image": "none", "resources": resources}


@st.composite
def mixed_cluster(draw: st.DrawFn) -> Cluster:
    """A cluster in which a class has an extended resource that some nodes have by a plugin.

    One class: of two, kube-scheduler forgets the implicit resource of the older one if it sees that
    last.
    """
    found: Cluster = draw(cluster())
    for one in found["nodes"]:
        for resource in _RESOURCES:
            number = draw(st.sampled_from((None, None, 0, 1, 2)))
            if number is not None:
                for field in ("allocatable", "capacity"):
                    one["status"][field] = {**one["status"][field], resource: str(number)}
    named = draw(st.sampled_from(found["deviceClasses"]))
    named["spec"]["extendedResourceName"] = _RESOURCE
    return found


def _node(name: str, zone: str) -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "metadata": _meta(name, labels={clusters.HOSTNAME: name, clusters.ZONE: zone}),
        "spec": {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _complete(slices: list[Json]) -> None:
    """Let every pool state the number of its slices that exist."""
    pools = Counter((one["spec"]["driver"], one["spec"]["pool"]["name"]) for one in slices)
    for one in slices:
        pool = one["spec"]["pool"]
        pool["resourceSliceCount"] = pools[one["spec"]["driver"], pool["name"]]


def _has_all_among_alternatives(claims: list[Json]) -> bool:
    found = [one for claim in claims for one in claim["spec"]["devices"]["requests"]]
    return any(len(one.get("firstAvailable", ())) > 1 and None in _counts(one) for one in found)


@st.composite
def cluster(draw: st.DrawFn, *, rules: bool = False) -> Cluster:
    """Nodes with devices of every kind, two open claims, and claims of others."""
    nodes = [_node(f"n{index}", zone) for index, zone in enumerate(draw(_ZONES))]
    names = [one["metadata"]["name"] for one in nodes]
    slices = [one for node in names for one in draw(_local(node))]
    slices += draw(_network())
    claims = [_open_claim(draw, name) for name in _CLAIMS]
    if _has_all_among_alternatives(claims):
        _complete(slices)
    specs = [one["spec"] for one in slices]
    every = [(spec, device) for spec in specs for device in spec.get("devices", ())]
    taken = (
        draw(st.lists(st.sampled_from(range(len(every))), max_size=4, unique=True)) if every else []
    )
    claims += [
        _allocated_claim(draw, f"other-{index}", *every[place])
        for index, place in enumerate(sorted(taken))
    ]
    label = {"resource.kubernetes.io/admin-access": "true"}
    found: Cluster = {
        "nodes": nodes,
        "pods": [],
        "namespaces": [{"metadata": _meta("team", labels=label)}],
        "deviceClasses": [
            {"metadata": _meta(name), "spec": {"selectors": [{"cel": {"expression": expression}}]}}
            for name, expression in _SELECTED.items()
        ],
        "resourceSlices": slices,
        "resourceClaims": claims,
    }
    if rules:
        found["deviceTaintRules"] = [draw(_rule(index)) for index in range(draw(st.integers(1, 2)))]
    return found


def only_these(cluster: Cluster, kept: set[tuple[str, str, str]]) -> Cluster:
    """The same cluster without the devices that no claim has and that are not among these."""
    results = [
        one
        for claim in cluster["resourceClaims"]
        for one in claim["status"].get("allocation", {}).get("devices", {}).get("results", ())
    ]
    kept = kept | {(one["driver"], one["pool"], one["device"]) for one in results}
    slices = []
    for one in cluster["resourceSlices"]:
        spec = dict(one["spec"])
        if "devices" in spec:
            pool = spec["driver"], spec["pool"]["name"]
            spec["devices"] = [two for two in spec["devices"] if (*pool, two["name"]) in kept]
        slices.append({**one, "spec": spec})
    return {**cluster, "resourceSlices": slices}
