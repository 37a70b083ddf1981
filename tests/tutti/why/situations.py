"""Builders of what `tutti why` finds in a cluster: pods, groups with verdicts, and its answer."""

from typing import Any, Final

import msgspec

from shared.contracts.verdicts import GangPhase, Verdict, Why
from shared.model.objects import Owner, Pod, PodPhase
from tutti.why.explanation import Answer, explain
from tutti.why.facts import Facts, Group, MemberPod

NAMES: Final = ("tutti", "volcano")


def member(
    name: str,
    *,
    node: str = "",
    phase: PodPhase = "Pending",
    waiting: str = "",
    reason: str = "",
    group: str = "g",
    scheduler: str = "volcano",
    owner: str = "",
    unscheduled: str = "",
    deleting: bool = False,
    declared: int = 0,
    awaited_queue: str = "",
) -> MemberPod:
    return MemberPod(
        pod=Pod(
            uid=f"uid-{name}",
            namespace="ns",
            name=name,
            resource_version=1,
            shape=b"",
            ours=scheduler in NAMES,
            scheduler_name=scheduler,
            group_name=group,
            owner=Owner(api_version="v1", kind="Owner", name=owner, uid=owner) if owner else None,
            node=node,
            phase=phase,
            waiting=waiting,
            reason=reason,
            deleting=deleting,
            group_self_declared=declared > 0,
            group_min_member=declared,
        ),
        unscheduled=unscheduled,
        awaited_queue=awaited_queue,
    )


def gang(phase: GangPhase | None, sentence: str = "", *, least: int = 2, name: str = "g") -> Group:
    why = Why(reason="NotEnoughResources", sentence=sentence, since_ms=1_000) if sentence else None
    verdict = None
    if phase is not None:
        verdict = Verdict(
            gang_id="id",
            epoch=0,
            at_ms=0,
            dialect="volcano",
            namespace="ns",
            name=name,
            phase=phase,
            min_member=least,
            succeeded=2,
            why=why,
        )
    return Group(
        title="podgroups.scheduling.volcano.sh",
        kind="PodGroup",
        namespace="ns",
        name=name,
        uid=f"uid-{name}",
        min_member=least,
        verdict=verdict,
    )


def answer(*pods: MemberPod, groups: tuple[Group, ...] = (), **more: Any) -> Answer:
    facts = Facts(kind="TFJob", namespace="ns", name="train", uid="u", pods=pods, groups=groups)
    return explain(msgspec.structs.replace(facts, **more))


def owned(group: Group, kind: str, name: str) -> Group:
    owner = Owner(api_version="v1", kind=kind, name=name, uid=f"uid-{name}")
    return msgspec.structs.replace(group, owner=owner)
