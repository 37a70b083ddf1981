"""A full cluster, and gangs that want in: what the tests of preemption share."""

from typing import Any

from shared.contracts.decisions import EvictionDecision, GangDecision, NoteClosed, Victim
from shared.contracts.outcomes import Member
from shared.model.objects import Pod
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.services.gang_planner.core.story import Story

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


def cluster(nodes: int, conf: str = WHOLE_GANGS) -> Story:
    """Nodes of 4 CPUs."""
    return Story([make_node(f"n{i:02d}") for i in range(nodes)], conf=conf)


def submit(
    story: Story,
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
    story.put(make_group(name, least, **(group or {})), *made)
    return made


def running(story: Story, name: str, size: int, **fields: Any) -> list[Pod]:
    """A gang appears and runs."""
    made = submit(story, name, size, **fields)
    story.until_quiet()
    story.carry_out(phase="Running")
    story.until_quiet()
    assert story.bound(name) == size
    return made


def evictions(story: Story) -> list[EvictionDecision]:
    """What was decided for preemptors."""
    return [one for one in story.releases if one.via == "eviction"]


def names(victims: tuple[Victim, ...]) -> list[str]:
    return [one.name for one in victims]


def ends(story: Story) -> list[str]:
    """Reasons with which preemptions ended that no decision took over."""
    return [
        one.reason
        for _, one in story.records
        if isinstance(one, NoteClosed) and one.kind == "preemption"
    ]


def decided(story: Story, name: str) -> list[GangDecision]:
    return [one for _, one in story.decisions if one.gang == f"team/{name}"]


def refuse(story: Story, uids: set[str], words: str = "would violate the budget") -> None:
    """A binder finds that these victims may not be evicted, and evicts nobody."""
    seq, act = next(
        (seq, one)
        for seq, one in story.acts
        if isinstance(one, EvictionDecision) and seq not in story.done
    )
    story.done.add(seq)
    story.answer(
        seq,
        act,
        [
            Member(
                uid=one.uid,
                node="",
                result="refused" if one.uid in uids else "skipped",
                message=words if one.uid in uids else "",
            )
            for one in act.victims
        ],
        "PreflightFailed",
    )


def accept(story: Story) -> None:
    """A binder evicts the victims of what it has not carried out: they are leaving."""
    for seq, act in story.acts:
        if seq not in story.done and isinstance(act, EvictionDecision):
            story.done.add(seq)
            for victim in act.victims:
                if victim.uid in story.pods:
                    story.change(victim.uid, deleting=True, disrupted=True)
            story.answer(seq, act, evicted=len(act.victims))


def leave(story: Story) -> None:
    """Everybody who is leaving has left."""
    for pod in [one for one in story.pods.values() if one.deleting]:
        story.remove(pod)
