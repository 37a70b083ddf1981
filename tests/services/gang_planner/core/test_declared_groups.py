"""Gangs that their pods declare completely: they come and go with their members."""

from typing import Any

import msgspec

from shared.contracts.identity import nameless_gang_id
from shared.model.objects import Pod, PodGroup
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})
#: Longer than capacity is held for lost members.
HOLD_MS = 120_000
ID = nameless_gang_id("kueue", "team", "a")


def declared(size: int, **fields: Any) -> PodGroup:
    return PodGroup(
        uid="",
        dialect="kueue",
        namespace="team",
        name="a",
        scope="kueue",
        resource_version=0,
        min_member=size,
        **fields,
    )


def members(
    count: int, group: PodGroup | None, *, role: str = "worker", **fields: Any
) -> list[Pod]:
    return make_pods(
        "a",
        count,
        CPU,
        role=role,
        group_scope="kueue",
        group_self_declared=True,
        declared_group=group,
        **fields,
    )


def test_the_gang_waits_for_all_its_pods_and_is_gone_with_the_last() -> None:
    scene = Scene([make_node("n0")])
    pods = members(3, declared(3))
    scene.put(*pods[:2])
    assert not scene.settle()
    verdict = scene.verdicts[ID]
    why = verdict.why
    assert why is not None
    assert (why.reason, verdict.min_member, verdict.dialect, verdict.uid) == (
        "NotEnoughPods",
        3,
        "kueue",
        "",
    )
    scene.put(pods[2])
    (decision,) = scene.settle()
    assert (decision.gang_id, len(decision.bindings), decision.scope) == (ID, 3, "kueue")
    scene.run(decision)
    scene.settle()
    assert scene.verdicts[ID].phase == "Running"
    scene.remove_together(*(scene.pods[pod.uid] for pod in pods))
    scene.settle()
    scene.step(after_ms=HOLD_MS)
    scene.settle()
    assert ("kueue", "team", "a") not in scene.state.gangs.gangs
    assert scene.verdicts[ID].phase == "Gone"


def test_gates_keep_the_whole_gang_waiting(golden: Golden) -> None:
    scene = Scene([make_node("n0")])
    scene.put(*members(2, declared(2), gates=("kueue.x-k8s.io/admission",)))
    assert not scene.settle()
    why = scene.verdicts[ID].why
    assert why is not None
    assert why.reason == "Gated"
    golden(why.sentence)
    scene.change("a-worker-0", gates=())
    assert not scene.settle()
    scene.change("a-worker-1", gates=())
    (decision,) = scene.settle()
    assert len(decision.bindings) == 2


def test_of_different_declarations_the_largest_counts_and_errors_are_reported() -> None:
    scene = Scene([make_node("n0")])
    scene.put(*members(2, declared(2)), *members(1, declared(4), role="big"))
    assert not scene.settle()
    assert scene.verdicts[ID].min_member == 4
    scene.change("a-big-0", declared_group=declared(4, errors=("no number",)))
    assert not scene.settle()
    why = scene.verdicts[ID].why
    assert why is not None
    assert (why.reason, why.sentence) == ("InvalidGroup", "no number")


def test_the_declaration_stays_while_there_are_members() -> None:
    scene = Scene([make_node("n0")])
    first, rest = members(1, declared(3), role="first"), members(1, None)
    scene.put(*first, *rest)
    assert not scene.settle()
    scene.remove(*first)
    assert not scene.settle()
    assert scene.verdicts[ID].min_member == 3
    scene.put(*members(2, None, role="more"))
    (decision,) = scene.settle()
    assert len(decision.bindings) == 3


def test_the_order_of_gangs_is_that_of_their_oldest_pods() -> None:
    scene = Scene([make_node("n0", {"cpu": 1000, "memory": 8 << 30, "pods": 10})])
    young = msgspec.structs.replace(declared(1), name="b")
    scene.put(
        *make_pods("b", 1, CPU, group_scope="kueue", declared_group=young, created_ms=500),
        *members(1, declared(1), created_ms=400),
    )
    (decision,) = scene.settle()
    assert decision.gang_id == ID


def test_a_restarted_planner_continues_with_the_gang() -> None:
    scene = LoggedScene([make_node("n0"), make_node("n1")])
    scene.put(*members(3, declared(3)))
    scene.step()
    scene.restart()
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.verdicts[ID].phase == "Running"
    assert len(scene.decisions) == 1


def test_pods_wait_until_one_of_them_declares_their_gang(golden: Golden) -> None:
    scene = Scene([make_node("n0")])
    scene.put(*make_pods("a", 1, CPU, group_scope="yunikorn"))
    assert not scene.settle()
    (verdict,) = scene.verdicts.values()
    assert verdict.why is not None
    golden(verdict.why.sentence)
    group = msgspec.structs.replace(declared(1), dialect="yunikorn", scope="yunikorn")
    scene.put(*make_pods("a", 1, CPU, role="first", group_scope="yunikorn", declared_group=group))
    assert sum(len(one.bindings) for one in scene.settle()) == 2


def test_resources_of_pods_that_do_not_exist_yet_are_reserved_for_them() -> None:
    scene = Scene([make_node("n0", {"cpu": 3000, "memory": 8 << 30, "pods": 10})])
    group = declared(1, min_resources=(("cpu", 3000),))
    scene.put(*members(1, group, role="driver"))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.put(make_group("other", 1), *make_pods("other", 1, CPU))
    assert not scene.settle(), "the rest is reserved"
    scene.put(*members(2, None, role="executor"))
    assert sum(len(one.bindings) for one in scene.settle()) == 2
