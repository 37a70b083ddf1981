"""Strategies for dynamic resource allocation: whole devices of three classes and of requests with
CEL selectors, on nodes that have some of them, pools whose slices are of an older generation or not
all there, claims that have devices or none, requests for more than there are.
"""

from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle import clusters
from tests.oracle.scheduler import Cluster

Json = dict[str, Any]
_DRIVERS: Final = {"gpu": "gpu.example.com", "nic": "nic.example.com"}
_CLASSES: Final = ("gpu", "gpu", "large", "nic", "no-such")
_SELECTED: Final = {
    **{name: f'device.driver == "{driver}"' for name, driver in _DRIVERS.items()},
    "large": (
        'device.driver == "gpu.example.com" && '
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
    ),
}
#: None fails on any device: kube-scheduler gives up at the first failure, Tutti does not.
_SELECTORS: Final = (
    'has(device.attributes["gpu.example.com"].model) && '
    'device.attributes["gpu.example.com"].model.startsWith("a")',
    'cel.bind(all, device.capacity[device.driver], all.memory.isLessThan(quantity("1e11")))',
    'device.attributes[device.driver].version.isGreaterThan(semver("1.9.0"))',
    'device.attributes[device.driver].exists(name, name == "even")',
)
CLAIMS: Final = ("d0", "d1", "d2", "d9")


def _meta(name: str, **fields: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **fields}


def _classes() -> list[Json]:
    return [
        {
            "metadata": _meta(name),
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        for name, expression in _SELECTED.items()
    ]


def _device(draw: st.DrawFn, index: int) -> Json:
    attributes: Json = {
        "model": {"string": draw(st.sampled_from(("a100", "b200")))},
        "version": {"version": draw(st.sampled_from(("1.2.0", "1.10.0")))},
    }
    if index % 2 == 0:
        attributes["even"] = {"bool": True}
    memory = draw(st.sampled_from(("20Gi", "80Gi")))
    return {
        "name": f"dev-{index}",
        "attributes": attributes,
        "capacity": {"memory": {"value": memory}},
    }


def _selectors(draw: st.DrawFn) -> list[Json]:
    chosen = draw(st.lists(st.sampled_from(_SELECTORS), max_size=2, unique=True))
    return [{"cel": {"expression": one}} for one in chosen]


@st.composite
def _slices(draw: st.DrawFn, node: str) -> list[Json]:
    """A pool per driver, at times with a slice left over from before, or with one that is not
    there yet.
    """
    found: list[Json] = []
    for driver in _DRIVERS.values():
        generation = draw(st.sampled_from((1, 1, 2)))
        for version in range(1, generation + 1):
            devices = [_device(draw, one) for one in range(draw(st.integers(0, 3)))]
            missing = draw(st.sampled_from((0, 0, 0, 0, 1)))
            pool = {
                "name": node,
                "generation": version,
                "resourceSliceCount": 1 + missing,
            }
            name = f"{node}-{driver}-{version}"
            spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": devices}
            found.append({"metadata": _meta(name), "spec": spec})
    return found


def _requests(draw: st.DrawFn, classes: tuple[str, ...]) -> list[Json]:
    return [
        {
            "name": f"r{index}",
            "exactly": {
                "deviceClassName": draw(st.sampled_from(classes)),
                "allocationMode": "ExactCount",
                "count": draw(st.integers(1, 2)),
                "selectors": _selectors(draw),
            },
        }
        for index in range(draw(st.integers(1, 2)))
    ]


def _open_claim(draw: st.DrawFn, name: str) -> Json:
    metadata = _meta(name, namespace="team")
    if draw(st.integers(0, 9)) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        metadata["finalizers"] = ["example.com/kept"]
    requests = _requests(draw, _CLASSES)
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}, "status": {}}


def _allocated_claim(draw: st.DrawFn, name: str, node: str, device: str) -> Json:
    """A claim with a device of the node that no other claim has."""
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    result = {"request": "r0", "driver": _DRIVERS["gpu"], "pool": node, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    users = [{"resource": "pods", "name": "other", "uid": "pod-other"}]
    return {
        "metadata": _meta(name, namespace="team"),
        "spec": {"devices": {"requests": [{"name": "r0", "exactly": request}]}},
        "status": {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
            },
            "reservedFor": draw(st.sampled_from((users, []))),
        },
    }


@st.composite
def pod(draw: st.DrawFn, name: str, claims: tuple[str, ...] = CLAIMS) -> Json:
    """A small pod with one or two of these claims; at times it waits for one to be made."""
    found = draw(clusters.pod(name))
    for container in (*found["spec"]["containers"], *found["spec"]["initContainers"]):
        container["resources"] = {"requests": {"cpu": "10m"}}
        container.pop("ports", None)
    chosen = draw(st.lists(st.sampled_from(claims), min_size=1, max_size=2, unique=True))
    wanted: list[Json] = [
        {"name": f"c{index}", "resourceClaimName": claim} for index, claim in enumerate(chosen)
    ]
    if draw(st.integers(0, 19)) == 0:
        wanted.append({"name": "made", "resourceClaimTemplateName": "template"})
    found["spec"]["resourceClaims"] = wanted
    return found


@st.composite
def cluster(draw: st.DrawFn) -> Cluster:
    """Nodes that take 110 pods, devices, and claims, some of which have devices."""
    drawn = draw(clusters.roomy_clusters())
    names = [one["metadata"]["name"] for one in drawn["nodes"]]
    free = [(node, f"dev-{index}") for node in names for index in range(3)]
    claims: list[Json] = []
    for name in CLAIMS[:3]:
        if draw(st.booleans()):
            node, device = free.pop(draw(st.integers(0, len(free) - 1)))
            claims.append(_allocated_claim(draw, name, node, device))
        else:
            claims.append(_open_claim(draw, name))
    return {
        "nodes": drawn["nodes"],
        "pods": [],
        "namespaces": [],
        "deviceClasses": _classes(),
        "resourceSlices": [one for node in names for one in draw(_slices(node))],
        "resourceClaims": claims,
    }
