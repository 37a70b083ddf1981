"""What a pod asks of its node, counted as kube-scheduler counts it.

    sum of containers and sidecars, at least what any init container needs at its turn (with the
    sidecars started before it), replaced by pod-level resources where those are set, plus overhead,
    plus one pod.

During an in-place resize a container counts with the largest of what it asks for, what is set aside
for it and what is in force. Amounts are rounded up per container, where kube-scheduler adds first:
never less than it, and equal for all quantities that are whole milli-CPU and bytes, as the API
server asks for.
"""

from collections.abc import Iterable
from typing import Final

from shared.kube.objects import (
    Container,
    ContainerStatus,
    PodSpec,
    ResourceList,
    ResourceRequirements,
)
from shared.kube.quantities import INT64_MAX, QuantityError, amount
from shared.model.objects import HostPort, Resources

#: The name under which a node counts its pods.
PODS: Final = "pods"

Amounts = dict[str, int]


def effective_requests(spec: PodSpec, statuses: Iterable[ContainerStatus] = ()) -> Resources:
    """Everything the pod takes from a node, "pods": 1 included, sorted by name; resources of amount
    0 are left out.

    Args:
        spec: The pod's spec.
        statuses: Statuses of its containers and init containers; only an in-place resize makes a
            difference.

    Raises:
        QuantityError: An amount is malformed, negative or too large; the message names field, text
            and rule.
    """
    in_force = {
        status.name: status for status in statuses if status.allocated_resources or status.resources
    }
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _container(container, "containers", in_force))
    _include_init_containers(total, spec, in_force)
    if spec.resources is not None:
        _apply_pod_level(total, spec.resources)
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


def _include_init_containers(
    total: Amounts, spec: PodSpec, in_force: dict[str, ContainerStatus]
) -> None:
    """Raise `total` to what the neediest init container takes at its turn; sidecars stay, so they
    also add to it.
    """
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        asked = _container(container, "initContainers", in_force)
        if _is_sidecar(container):
            _add(total, asked)
            _add(sidecars, asked)
        else:
            _add(asked, sidecars)
            _raise_to(peak, asked)
    _raise_to(total, peak)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _container(container: Container, field: str, in_force: dict[str, ContainerStatus]) -> Amounts:
    asked = _requests(container.resources, f"spec.{field}[{container.name}].resources")
    status = in_force.get(container.name)
    if status is not None:
        _raise_to(asked, amounts(status.allocated_resources, "status.allocatedResources"))
        if status.resources is not None:
            _raise_to(asked, amounts(status.resources.requests, "status.resources.requests"))
    return asked


def _requests(resources: ResourceRequirements, field: str) -> Amounts:
    """Requests, with limits standing in where there is none. (The API server has done so already
    for real pods.)
    """
    asked = amounts(resources.limits, f"{field}.limits") if resources.limits else {}
    if resources.requests:
        asked.update(amounts(resources.requests, f"{field}.requests"))
    return asked


def _apply_pod_level(total: Amounts, resources: ResourceRequirements) -> None:
    """Pod-level requests replace the containers' sum; a pod-level limit stands in where neither
    asks for anything.
    """
    asked = amounts(resources.requests, "spec.resources.requests")
    limits = amounts(resources.limits, "spec.resources.limits")
    for name in {**limits, **asked}:
        if name in {"cpu", "memory"} or name.startswith("hugepages-"):
            if name in asked:
                total[name] = asked[name]
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
