"""Usage of pods in a ResourceQuota, as Kubernetes' quota evaluator computes it. Pure.

Requests count under their plain name and under `requests.`, limits (of cpu, memory and ephemeral
storage) under `limits.`, the pod itself as `pods` and `count/pods`. A container with a limit and no
request has the limit as its request, as the API server sets it.
"""

import msgspec

from shared.kube.objects import Container, PodSpec, ResourceRequirements
from shared.kube.quantities import DIVISIBLE, format_quantity
from shared.kube.requests import effective_requests

Usage = dict[str, int]


def usage_of(spec: PodSpec) -> Usage:
    """The usage of one pod: cpu in milli-CPU, everything else in whole units.

    Raises:
        QuantityError: An amount is malformed; the message names field and rule.
    """
    requests = dict(effective_requests(spec))
    pods = requests.pop("pods")
    usage = {"pods": pods, "count/pods": pods}
    for name, value in requests.items():
        usage[name] = usage[f"requests.{name}"] = value
    for name, value in effective_requests(_by_limits(spec)):
        if name in DIVISIBLE:
            usage[f"limits.{name}"] = value
    return usage


def add(total: Usage, usage: Usage, times: int) -> None:
    for name, value in usage.items():
        total[name] = total.get(name, 0) + value * times


def written(usage: Usage) -> dict[str, str]:
    """The usage as quantities, by name."""
    return {name: format_quantity(_plain(name), usage[name]) for name in sorted(usage)}


def _plain(name: str) -> str:
    return name.removeprefix("requests.").removeprefix("limits.")


def _by_limits(spec: PodSpec) -> PodSpec:
    """The pod with each container's limits as its requests."""
    return msgspec.structs.replace(
        spec,
        containers=tuple(_limit(container) for container in spec.containers),
        init_containers=tuple(_limit(container) for container in spec.init_containers),
        resources=None,
        overhead={},
    )


def _limit(container: Container) -> Container:
    limits = container.resources.limits
    return msgspec.structs.replace(container, resources=ResourceRequirements(requests=limits))
