"""A gang has started, and is not degraded, only with all its minima: in all, of each role, and of
its sub-groups.
"""

from shared.contracts import annotations
from shared.contracts.decisions import GangDecision
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.sub_groups import group, part, pods

CPU = make_shape({"cpu": 1000})
NO_HOLD = ((annotations.HOLD_SECONDS, "0"),)


def placed(scene: Scene) -> GangDecision:
    (decision,) = scene.settle()
    return decision


def test_a_gang_that_lacks_a_role_is_degraded_though_it_has_enough_members() -> None:
    scene = Scene([make_node("n")])
    roles = (("server", 1), ("worker", 1))
    scene.put(make_group("job", 2, min_task_member=roles, settings=NO_HOLD))
    scene.put(*make_pods("job", 1, CPU, role="server"), *make_pods("job", 2, CPU))
    scene.run(placed(scene))
    scene.settle()
    assert scene.verdict("job").phase == "Running"
    scene.remove(scene.pods["job-server-0"])
    scene.settle()
    assert scene.verdict("job").phase == "Unknown"


def test_a_gang_that_lacks_a_sub_group_is_degraded_though_it_has_enough_members() -> None:
    scene = Scene([make_node("n", {"cpu": 9000, "memory": 64 << 30, "pods": 110})])
    scene.put(group(part("a", 2), part("b", 2), settings=NO_HOLD), *pods("a", 3), *pods("b", 2))
    scene.run(placed(scene))
    scene.settle()
    assert scene.verdict("job").phase == "Running"
    scene.remove(scene.pods["job-b-0"])
    scene.settle()
    assert scene.verdict("job").phase == "Unknown"


def test_a_gang_starts_with_the_last_of_its_sub_groups() -> None:
    scene = Scene([make_node("n", {"cpu": 9000, "memory": 64 << 30, "pods": 110})])
    scene.put(group(part("a", 2), part("b", 2)), *pods("a", 3), *pods("b", 2))
    decision = placed(scene)
    last = "job-b-1"
    for one in decision.bindings:
        if one.uid != last:
            scene.change(one.uid, node=one.node)
    scene.settle()
    gang = scene.state.gangs.by_id["group-job"]
    assert not gang.history.started
    scene.change(last, node="n")
    scene.settle()
    assert gang.history.started
