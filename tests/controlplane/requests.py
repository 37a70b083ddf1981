"""What a pod asks of its node, as Kubernetes documents it and apart from the product's code.

Amounts are integers: milli-CPUs for ``cpu``, bytes or counts for everything else, rounded up.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from tests.controlplane.client import Object

Requests = dict[str, int]
Port = tuple[str, int]

_SCALES = {
    **{suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate(["", *"kMGTPE"])},
    **{suffix: Fraction(10) ** (-3 * power) for power, suffix in enumerate("mun", start=1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([A-Za-z]*))")


def quantity(resource: str, text: str) -> int:
    """Return a quantity in the resource's unit, rounded up.

    Raises:
        ValueError: it is no quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{resource}: {text!r} is no quantity")
    number, exponent, suffix = match.groups()
    scale = Fraction(10) ** int(exponent) if exponent else _SCALES.get(suffix or "")
    if scale is None:
        raise ValueError(f"{resource}: {text!r} has an unknown suffix")
    unit = 1000 if resource == "cpu" else 1
    return math.ceil(Fraction(number) * scale * unit)


def node_allocatable(node: Object) -> Requests:
    """Return what a node offers to pods."""
    return _amounts(node["status"].get("allocatable", {}))


def pod_requests(pod: Object) -> Requests:
    """Return what a pod asks for: containers and sidecars, init containers, overhead, one pod.

    An init container runs beside the sidecars started before it, and before all main containers.
    Where the pod itself states requests, these replace the sum of its containers for their
    resources. Extended resources that devices serve, as the pod's status says, do not count.
    """
    spec = pod["spec"]
    claimed: Object = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
    by_devices = {
        (one["containerName"], one["resourceName"]) for one in claimed.get("requestMappings", ())
    }
    running: Requests = {}
    peak: Requests = {}
    for container in spec.get("initContainers", []):
        asked = _container_requests(container, by_devices)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, asked)
            asked = {}
        peak = _max(peak, _sum(running, asked))
    for container in spec["containers"]:
        running = _sum(running, _container_requests(container, by_devices))
    total = _max(peak, running) | _amounts(spec.get("resources", {}).get("requests", {}))
    return _sum(_sum(total, _amounts(spec.get("overhead", {}))), {"pods": 1})


def host_ports(pod: Object) -> set[Port]:
    """Return the (protocol, number) pairs a pod occupies on its node, whatever the address."""
    return {
        (port.get("protocol", "TCP"), port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
        if port.get("hostPort")
    }


def _container_requests(container: Object, by_devices: set[tuple[str, str]]) -> Requests:
    resources = container.get("resources", {})
    found = _amounts({**resources.get("limits", {}), **resources.get("requests", {})})
    return {
        resource: amount
        for resource, amount in found.items()
        if (container.get("name", ""), resource) not in by_devices
    }


def _amounts(quantities: Mapping[str, str]) -> Requests:
    return {resource: quantity(resource, str(text)) for resource, text in quantities.items()}


def _sum(left: Requests, right: Requests) -> Requests:
    return {key: left.get(key, 0) + right.get(key, 0) for key in left.keys() | right.keys()}


def _max(left: Requests, right: Requests) -> Requests:
    return {key: max(left.get(key, 0), right.get(key, 0)) for key in left.keys() | right.keys()}
