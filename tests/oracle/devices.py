"""Strategies for dynamic resource allocation: whole devices of two classes, on nodes that have some
of them, pools whose slices are of an older generation or not all there, claims that have devices
or none, requests for more than there are.
"""

from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle import clusters
from tests.oracle.scheduler import Cluster

Json = dict[str, Any]
_DRIVERS: Final = {"gpu": "gpu.example.com", "nic": "nic.example.com"}
_CLASSES: Final = ("gpu", "gpu", "nic", "no-such")
CLAIMS: Final = ("d0", "d1", "d2", "d9")


def _meta(name: str, **fields: Any) -> Json:
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **fields}


def _classes() -> list[Json]:
    return [
        {
            "metadata": _meta(name),
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
        }
        for name, driver in _DRIVERS.items()
    ]


@st.composite
def _slices(draw: st.DrawFn, node: str) -> list[Json]:
    """A pool per driver, at times with a slice left over from before, or with one that is not
    there yet.
    """
    found: list[Json] = []
    for driver in _DRIVERS.values():
        generation = draw(st.sampled_from((1, 1, 2)))
        for version in range(1, generation + 1):
            devices = [{"name": f"dev-{one}"} for one in range(draw(st.integers(0, 3)))]
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
