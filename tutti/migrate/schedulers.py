"""What follows for scheduler names and for the schedulers that serve them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tutti.migrate.cluster_facts import ClusterFacts
from tutti.migrate.findings import Finding

if TYPE_CHECKING:
    from shared.model.objects import Pod

#: Served by kube-scheduler everywhere: no user expects Tutti to.
_DEFAULT: Final = "default-scheduler"
_HOLDS: Final = {"name": "scheduler", "suite": "tutti up", "podgroups": "controllers"}


def findings(facts: ClusterFacts) -> Iterator[Finding]:
    """All names that pods use or other schedulers serve, and all other schedulers."""
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in facts.pods:
        if pod.scheduler_name not in {"", _DEFAULT}:
            pods[pod.scheduler_name].append(pod)
    served: dict[str, list[str]] = defaultdict(list)
    for other in facts.others:
        if other.holding == "name":
            served[other.name].append(other.who)
    for name in sorted({*pods, *served}):
        waiting = sum(1 for pod in pods[name] if not pod.node)
        who = "; ".join(served[name]) or "no scheduler that was seen"
        ours = name in facts.scheduler_names
        told = "Tutti answers to it" if ours else "Tutti leaves it alone (--scheduler-name adds it)"
        yield Finding(
            level="tells",
            topic="scheduler name",
            what=name,
            message=f"{len(pods[name])} pods, {waiting} of them wait; served by {who}; {told}",
        )
    for other in facts.others:
        yield Finding(
            level="step", topic="rival", what=_HOLDS[other.holding], message=_stop(other.who)
        )


def _stop(who: str) -> str:
    return f"{who} lives: stop it before Tutti starts, or Tutti refuses to (without --take-over)"
