"""Findings about scheduler names and the schedulers that serve them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tutti.migrate.cluster_facts import ClusterFacts
from tutti.migrate.findings import Finding

if TYPE_CHECKING:
    from shared.model.objects import Pod

#: Served by kube-scheduler in every cluster.
_DEFAULT: Final = "default-scheduler"
_HOLDS: Final = {"name": "scheduler", "suite": "tutti up", "podgroups": "controllers"}


def findings(facts: ClusterFacts) -> Iterator[Finding]:
    """Findings about names that pods use or other schedulers serve, and about other schedulers."""
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in facts.pods:
        if pod.scheduler_name not in {"", _DEFAULT}:
            pods[pod.scheduler_name].append(pod)
    served: dict[str, list[str]] = defaultdict(list)
    for other in facts.others:
        if other.holding == "name":
            served[other.name].append(other.description)
    for name in sorted({*pods, *served}):
        waiting = sum(1 for pod in pods[name] if not pod.node)
        owners = "; ".join(served[name]) or "no known scheduler"
        effect = (
            "Tutti would serve it"
            if name in facts.scheduler_names
            else "Tutti would not serve it (--scheduler-name adds it)"
        )
        yield Finding(
            level="tells",
            topic="scheduler name",
            what=name,
            message=f"{len(pods[name])} pods, {waiting} of them wait; served by {owners}; {effect}",
        )
    for other in facts.others:
        yield Finding(
            level="step",
            topic="rival",
            what=_HOLDS[other.holding],
            message=_stop(other.description),
        )


def _stop(description: str) -> str:
    return (
        f"{description} is active: stop it first; Tutti refuses to start beside it without "
        "--take-over"
    )
