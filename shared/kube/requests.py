"""A pod's requests, counted as kube-scheduler counts them.

    the sum of containers and sidecars, or the largest init container (with the sidecars started
    before it) if that is more; replaced by pod-level resources where those are set; plus overhead;
    plus one pod.

During an in-place resize a container, or a pod with resources of its own, counts with the largest
of its requested, allocated and current resources; a request that the node has called infeasible
does not count. Amounts are rounded up per container, while kube-scheduler adds first: the result is
never less, and equal for quantities in whole milli-CPU and bytes, which the API server requires.
"""

from collections.abc import Iterator
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
from shared.model.devices import CLASS_RESOURCE_PREFIX
from shared.model.objects import ContainerDevices, HostPort, Resources

#: Annotation ("true") of a ResourceClaim that a scheduler made for a pod's extended resources.
EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
#: The name under which a node counts its pods.
PODS: Final = "pods"

Amounts = dict[str, int]


class InForce(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Resources that a container, or (name "") the whole pod, has at this moment."""

    name: str
    allocated: ResourceList
    resources: ResourceRequirements


class Resize(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The part of a pod's status that can change its requests: empty until a kubelet runs it."""

    parts: tuple[InForce, ...] = ()
    #: Whether the kubelet reported that the node can never satisfy the spec's requests.
    infeasible: bool = False


_NO_RESIZE: Final = Resize()


def resize_of(status: PodStatus) -> Resize:
    """The part of a status that `effective_requests` reads."""
    if status.resources is None and not status.container_statuses:
        return _NO_RESIZE
    parts = [
        InForce(container.name, container.allocated_resources, container.resources)
        for container in (*status.container_statuses, *status.init_container_statuses)
        if container.resources is not None
    ]
    if status.resources is not None:
        parts.append(InForce("", status.allocated_resources, status.resources))
    if not parts:
        return _NO_RESIZE
    pending = next(
        (condition for condition in status.conditions if condition.type == "PodResizePending"), None
    )
    return Resize(tuple(parts), pending is not None and pending.reason == "Infeasible")


def effective_requests(spec: PodSpec, resize: Resize = _NO_RESIZE) -> Resources:
    """The pod's requests in total, with "pods": 1, sorted by name and without amounts of 0. cpu is
    in milli-CPU, everything else in whole units. `resize` is the state of an in-place resize
    (`resize_of`).

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
    """The amounts of a resource list, cpu in milli-CPU and everything else in whole units.

    Raises:
        QuantityError: An amount is malformed; the message names `field` and the resource.
    """
    read: Amounts = {}
    for name, text in resources.items():
        try:
            read[name] = amount(name, text)
        except QuantityError as error:
            raise QuantityError(f"{field}.{name}: {error}") from None
    return read


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


def extended_requests(spec: PodSpec) -> tuple[ContainerDevices, ...]:
    """The containers that request extended resources, in order; none if an amount is malformed,
    which `effective_requests` reports.
    """
    try:
        return tuple(_extended_requests(spec))
    except QuantityError:
        return ()


def _extended_requests(spec: PodSpec) -> Iterator[ContainerDevices]:
    for index, container in enumerate((*spec.init_containers, *spec.containers)):
        init = index < len(spec.init_containers)
        if not any(map(_is_extended, (*container.resources.requests, *container.resources.limits))):
            continue
        field = f"spec.{'initContainers' if init else 'containers'}[{container.name}].resources"
        requested = _requests(container.resources, field)
        extended = tuple(
            (name, position, requested[name])
            for position, name in enumerate(sorted(requested))
            if _is_extended(name) and requested[name]
        )
        if extended:
            yield ContainerDevices(
                container=container.name,
                index=index,
                short_lived=init and not _is_sidecar(container),
                requests=extended,
            )


def _is_extended(name: str) -> bool:
    """Whether a resource is none of Kubernetes' own, or that of a DeviceClass."""
    if name.startswith(CLASS_RESOURCE_PREFIX):
        return True
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def _include_init_containers(total: Amounts, spec: PodSpec, resize: Resize) -> None:
    """Raise `total` to the requests of the largest init container, with the sidecars that run
    beside it; add those of all sidecars.
    """
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        # Only containers that keep running are resized.
        requested = _container(
            container, "initContainers", resize if _is_sidecar(container) else _NO_RESIZE
        )
        if _is_sidecar(container):
            _add(total, requested)
            _add(sidecars, requested)
        else:
            _add(requested, sidecars)
            _raise_to(peak, requested)
    _raise_to(total, peak)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _container(container: Container, field: str, resize: Resize) -> Amounts:
    requested = _requests(container.resources, f"spec.{field}[{container.name}].resources")
    return _resized(requested, container.name, resize)


def _resized(requested: Amounts, name: str, resize: Resize) -> Amounts:
    """The largest of requested, allocated and current resources; without resize, the requested."""
    for part in resize.parts:
        if part.name == name:
            largest = {} if resize.infeasible else requested
            _raise_to(largest, amounts(part.allocated, "status.allocatedResources"))
            _raise_to(largest, amounts(part.resources.requests, "status.resources.requests"))
            return largest
    return requested


def _requests(resources: ResourceRequirements, field: str) -> Amounts:
    """Requests, with limits as requests where there are none, as the API server sets them for
    stored pods.
    """
    requested = amounts(resources.limits, f"{field}.limits") if resources.limits else {}
    if resources.requests:
        requested.update(amounts(resources.requests, f"{field}.requests"))
    return requested


def _apply_pod_level(total: Amounts, resources: ResourceRequirements, resize: Resize) -> None:
    """Pod-level requests replace the containers' sum; a pod-level limit counts where neither has a
    request.
    """
    requested = amounts(resources.requests, "spec.resources.requests")
    limits = amounts(resources.limits, "spec.resources.limits")
    in_force = _resized(dict(requested), "", resize)
    for name in {**limits, **requested}:
        if name in {"cpu", "memory"} or name.startswith("hugepages-"):
            if name in requested:
                total[name] = in_force.get(name, 0)
            else:
                total.setdefault(name, limits[name])


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, value in least.items():
        if value > total.get(name, 0):
            total[name] = value
