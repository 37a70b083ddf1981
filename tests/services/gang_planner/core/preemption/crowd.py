"""A full cluster, and gangs that want in: what the tests of preemption share."""

from collections.abc import Iterable
from typing import Any

from shared.contracts.decisions import Binding, EvictionDecision, GangDecision, NoteClosed, Victim
from shared.contracts.outcomes import Member
from shared.model.objects import Pod
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

WHOLE_NODE = make_shape({"cpu": 4000})
QUARTER = make_shape({"cpu": 1000})


def configured(
    actions: str = "enqueue, allocate, preempt, backfill", gang: str = "name: gang", more: str = ""
) -> str:
    """A configuration; `gang` is the entry of that policy, `more` further entries."""
    return f"""
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - {{{gang}}}
  - name: conformance
- plugins:
  - name: predicates
  - name: nodeorder
{more}"""


WHOLE_GANGS = configured(gang="name: gang, enablePreemptable: false, enableReclaimable: false")


def cluster(nodes: int, conf: str = WHOLE_GANGS) -> LoggedScene:
    """Nodes of 4 CPUs."""
    return LoggedScene([make_node(f"n{i:02d}") for i in range(nodes)], conf=conf)


def submit(
    scene: LoggedScene,
    name: str,
    size: int,
    *,
    minimum: int | None = None,
    priority: int = 0,
    shape: bytes = WHOLE_NODE,
    group: dict[str, Any] | None = None,
    **pods: Any,
) -> list[Pod]:
    """A gang appears."""
    made = make_pods(name, size, shape, priority=priority, **pods)
    least = size if minimum is None else minimum
    scene.put(make_group(name, least, **(group or {})), *made)
    return made


def running(scene: LoggedScene, name: str, size: int, **fields: Any) -> list[Pod]:
    """A gang appears and runs."""
    made = submit(scene, name, size, **fields)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound(name) == size
    return made


def evictions(scene: LoggedScene) -> list[EvictionDecision]:
    """What was decided for preemptors."""
    return [one for one in scene.releases if one.via == "eviction"]


def names(pods: Iterable[Binding | Victim]) -> list[str]:
    return [one.name for one in pods]


def ends(scene: LoggedScene) -> list[str]:
    """Reasons with which preemptions ended that no decision took over."""
    return [
        one.reason
        for _, one in scene.records
        if isinstance(one, NoteClosed) and one.kind == "preemption"
    ]


def decided(scene: LoggedScene, name: str) -> list[GangDecision]:
    return [one for _, one in scene.decisions if one.gang == f"team/{name}"]


def refuse(
    scene: LoggedScene,
    uids: set[str],
    words: str = "would violate the budget",
    *,
    code: int = 429,
    reason: str = "TooManyRequests",
) -> None:
    """A binder finds that these victims may not be evicted, and evicts no pod."""
    seq, act = next(
        (seq, one)
        for seq, one in scene.acts
        if isinstance(one, EvictionDecision) and seq not in scene.done
    )
    scene.done.add(seq)
    scene.answer(
        seq,
        act,
        [
            Member(
                uid=one.uid,
                node="",
                result="refused" if one.uid in uids else "skipped",
                code=code if one.uid in uids else 0,
                reason=reason if one.uid in uids else "",
                message=words if one.uid in uids else "",
            )
            for one in act.victims
        ],
        "PreflightFailed",
    )


def accept(scene: LoggedScene) -> None:
    """A binder evicts the victims of what it has not carried out: they are leaving."""
    for seq, act in scene.acts:
        if seq not in scene.done and isinstance(act, EvictionDecision):
            scene.done.add(seq)
            for victim in act.victims:
                if victim.uid in scene.pods:
                    scene.change(victim.uid, deleting=True, disrupted=True)
            scene.answer(seq, act, evicted=len(act.victims))


def leave(scene: LoggedScene) -> None:
    """All terminating pods have left."""
    for pod in [one for one in scene.pods.values() if one.deleting]:
        scene.remove(pod)
