"""What follows for scheduler names and for those who answer to them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tutti.migrate.findings import Finding
from tutti.migrate.seen import Seen

if TYPE_CHECKING:
    from shared.model.objects import Pod

#: Answered by kube-scheduler everywhere: nobody expects Tutti to.
_DEFAULT: Final = "default-scheduler"
_HOLDS: Final = {"name": "scheduler", "suite": "tutti up", "podgroups": "controllers"}


def findings(seen: Seen) -> Iterator[Finding]:
    """All names that pods use or rivals serve, and all rivals."""
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in seen.pods:
        if pod.scheduler_name not in {"", _DEFAULT}:
            pods[pod.scheduler_name].append(pod)
    served: dict[str, list[str]] = defaultdict(list)
    for rival in seen.rivals:
        if rival.holding == "name":
            served[rival.name].append(rival.who)
    for name in sorted({*pods, *served}):
        waiting = sum(1 for pod in pods[name] if not pod.node)
        who = "; ".join(served[name]) or "nobody that was seen"
        ours = name in seen.scheduler_names
        told = "Tutti answers to it" if ours else "Tutti leaves it alone (--scheduler-name adds it)"
        yield Finding(
            level="tells",
            topic="scheduler name",
            what=name,
            message=f"{len(pods[name])} pods, {waiting} of them wait; served by {who}; {told}",
        )
    for rival in seen.rivals:
        yield Finding(
            level="step", topic="rival", what=_HOLDS[rival.holding], message=_stop(rival.who)
        )


def _stop(who: str) -> str:
    return f"{who} lives: stop it before Tutti starts, or Tutti refuses to (without --take-over)"
