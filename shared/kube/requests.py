"""What a pod asks of its node, counted as kube-scheduler counts it.

    sum of containers and sidecars, at least what any init container needs at its turn (with the
    sidecars started before it), replaced by pod-level resources where those are set, plus overhead,
    plus one pod.

During an in-place resize a container, or a pod with resources of its own, counts with the largest
of what it asks for, what is set aside for it and what is in force; what its node has called
infeasible does not count. Amounts are rounded up per container, where kube-scheduler adds first:
never less than it, and equal for all quantities that are whole milli-CPU and bytes, as the API
server asks for.
"""

from typing import Final

import msgspec

from shared.kube.objects import (
    Container,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
)
from shared.kube.quantities import INT64_MAX, QuantityError, amount
from shared.model.objects import HostPort, Resources

#: The name under which a node counts its pods.
PODS: Final = "pods"

Amounts = dict[str, int]


class InForce(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a container, or (name "") the pod as a whole, has at this moment."""

    name: str
    allocated: ResourceList
    resources: ResourceRequirements


class Resize(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What of a pod's status can change its requests: empty until a kubelet has taken it."""

    parts: tuple[InForce, ...] = ()
    #: The node has said that it will never have room for what the spec asks for.
    infeasible: bool = False


_NO_RESIZE: Final = Resize()


def resize_of(status: PodStatus) -> Resize:
    """The part of a status that `effective_requests` looks at."""
    if status.resources is None and not status.container_statuses:
        return _NO_RESIZE
    parts = [
        InForce(one.name, one.allocated_resources, one.resources)
        for one in (*status.container_statuses, *status.init_container_statuses)
        if one.resources is not None
    ]
    if status.resources is not None:
        parts.append(InForce("", status.allocated_resources, status.resources))
    if not parts:
        return _NO_RESIZE
    pending = next((one for one in status.conditions if one.type == "PodResizePending"), None)
    return Resize(tuple(parts), pending is not None and pending.reason == "Infeasible")


def effective_requests(spec: PodSpec, resize: Resize = _NO_RESIZE) -> Resources:
    """Everything the pod takes from a node, "pods": 1 included, sorted by name; resources of amount
    0 are left out.

    Args:
        spec: The pod's spec.
        resize: What is in force of it (`resize_of`).

    Raises:
        QuantityError: An amount is malformed, negative or too large; the message names field, text
            and rule.
    """
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _container(container, "containers", resize))
    _include_init_containers(total, spec, resize)
    if spec.resources is not None:
        _apply_pod_level(total, spec.resources, resize)
    _add(total, amounts(spec.overhead, "overhead"))
    total[PODS] = 1
    for name, value in total.items():
        if value > INT64_MAX:
            raise QuantityError(
                f"spec: requests of {name} add up to {value}: a sum must fit in 63 bits"
            )
    return tuple(sorted((name, value) for name, value in total.items() if value))


def amounts(resources: ResourceList, field: str) -> Amounts:
    """Every quantity of a resource list in our units. Raises QuantityError that names `field` and
    the resource.
    """
    return {name: _amount(name, text, field) for name, text in resources.items()}


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The ports the pod claims on its node, sorted, each once.

    Those of containers and sidecars; with hostNetwork every container port is one (the API server
    copies them).
    """
    claimed = set()
    for container in (*spec.containers, *filter(_is_sidecar, spec.init_containers)):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                claimed.add((number, port.protocol or "TCP", port.host_ip))
    return tuple(
        HostPort(port=port, protocol=protocol, ip=ip) for port, protocol, ip in sorted(claimed)
    )


def _include_init_containers(total: Amounts, spec: PodSpec, resize: Resize) -> None:
    """Raise `total` to what the neediest init container takes at its turn; sidecars stay, so they
    also add to it.
    """
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        # Only what keeps running is resized.
        asked = _container(
            container, "initContainers", resize if _is_sidecar(container) else _NO_RESIZE
        )
        if _is_sidecar(container):
            _add(total, asked)
            _add(sidecars, asked)
        else:
            _add(asked, sidecars)
            _raise_to(peak, asked)
    _raise_to(total, peak)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _container(container: Container, field: str, resize: Resize) -> Amounts:
    asked = _requests(container.resources, f"spec.{field}[{container.name}].resources")
    return _resized(asked, container.name, resize)


def _resized(asked: Amounts, name: str, resize: Resize) -> Amounts:
    """The largest of what is asked for, set aside and in force; without resize, what is asked."""
    for part in resize.parts:
        if part.name == name:
            largest = {} if resize.infeasible else asked
            _raise_to(largest, amounts(part.allocated, "status.allocatedResources"))
            _raise_to(largest, amounts(part.resources.requests, "status.resources.requests"))
            return largest
    return asked


def _requests(resources: ResourceRequirements, field: str) -> Amounts:
    """Requests, with limits standing in where there is none. (The API server has done so already
    for real pods.)
    """
    asked = amounts(resources.limits, f"{field}.limits") if resources.limits else {}
    if resources.requests:
        asked.update(amounts(resources.requests, f"{field}.requests"))
    return asked


def _apply_pod_level(total: Amounts, resources: ResourceRequirements, resize: Resize) -> None:
    """Pod-level requests replace the containers' sum; a pod-level limit stands in where neither
    asks for anything.
    """
    asked = amounts(resources.requests, "spec.resources.requests")
    limits = amounts(resources.limits, "spec.resources.limits")
    in_force = _resized(dict(asked), "", resize)
    for name in {**limits, **asked}:
        if name in {"cpu", "memory"} or name.startswith("hugepages-"):
            if name in asked:
                total[name] = in_force.get(name, 0)
            else:
                total.setdefault(name, limits[name])


def _amount(name: str, text: str | float, field: str) -> int:
    try:
        return amount(name, text)
    except QuantityError as error:
        raise QuantityError(f"{field}.{name}: {error}") from None


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, value in least.items():
        if value > total.get(name, 0):
            total[name] = value
