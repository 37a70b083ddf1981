"""A question that has all pods which would be created: a gang that lacks members would wait."""

from typing import Any

import msgspec

from shared.contracts.questions import EarlierGang, EqualPods, FitAnswer, FitRequest
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})


def ask(scene: Scene, size: int, minimum: int, *earlier: EarlierGang, **group: Any) -> FitAnswer:
    return scene.planner.would_fit(
        FitRequest(
            group=make_group("q", minimum, **group),
            pods=tuple(make_pods("q", size, CPU)),
            earlier=earlier,
            complete=True,
        )
    )


def test_members_that_are_not_asked_for_are_missing() -> None:
    scene = Scene([make_node("n0")])
    assert ask(scene, 3, 3).fits
    answer = ask(scene, 1, 3)
    assert (answer.fits, answer.ever, answer.where) == (False, True, ())
    words = "members are missing from what was asked"
    assert answer.sentence == f"2 of 3 {words}"
    assert ask(scene, 0, 3).sentence == f"3 of 3 {words}"
    assert ask(scene, 0, 3, min_resources=amounts(cpu=1)).sentence == f"3 of 3 {words}"
    assert ask(scene, 3, 3, min_task_member=(("a", 2), ("b", 1))).sentence == f"3 of 3 {words}"
    assert ask(scene, 1, 1).sentence == ""
    # A Deployment of no replicas.
    assert ask(scene, 0, 0).fits


def test_what_can_never_run_is_said_first(golden: Golden) -> None:
    scene = Scene([make_node("n0")])
    answer = ask(scene, 0, 9, min_resources=amounts(cpu=99_000))
    assert answer.ever is False
    golden(answer.sentence)


def test_pods_that_exist_are_not_missing() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("q", 3), *make_pods("q", 1, CPU, role="first"))
    scene.settle()
    assert ask(scene, 1, 3).sentence.startswith("1 of 3 members")
    assert ask(scene, 2, 3).fits
    scene.put(*make_pods("q", 2, CPU, role="second"))
    for decision in scene.settle():
        scene.run(decision)
    scene.settle()
    assert ask(scene, 0, 3).fits


def test_an_earlier_gang_that_lacks_members_takes_nothing() -> None:
    scene = Scene([make_node("n0", {"cpu": 2000, "pods": 10})])
    (pod,) = make_pods("first", 1, CPU)
    first = EarlierGang(group=make_group("first", 2), pods=(EqualPods(pod=pod),))
    assert ask(scene, 2, 2, first).fits
    whole = msgspec.structs.replace(first, group=make_group("first", 1))
    assert not ask(scene, 2, 2, whole).fits


def test_pods_that_name_a_group_that_does_not_exist_wait_for_it(golden: Golden) -> None:
    """A pod that names none is a gang of its own."""
    scene = Scene([make_node("n0")])
    golden(ask(scene, 1, 1, dialect="").sentence)
    (pod,) = make_pods("q", 1, CPU)
    alone = msgspec.structs.replace(pod, group_name="")
    group = make_group("q", 1, dialect="")
    assert scene.planner.would_fit(FitRequest(group=group, pods=(alone,), complete=True)).fits
    scene.put(make_group("q", 1))
    assert ask(scene, 1, 1, dialect="").fits
