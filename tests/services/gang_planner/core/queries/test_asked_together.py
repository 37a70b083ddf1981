"""Gangs that are asked about together: each is placed beside those before it."""

from typing import Any

from shared.contracts.questions import (
    AskedQueue,
    EarlierGang,
    EqualPods,
    FitAnswer,
    FitRequest,
)
from shared.model.reference_objects import ResourceQuota
from tests.services.gang_planner.core.claims import make_claim, make_class, make_volume
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

FULL = make_shape({"cpu": 4000})


def earlier(name: str, count: int, shape: bytes = FULL, **group: Any) -> EarlierGang:
    (pod,) = make_pods(name, 1, shape)
    return EarlierGang(
        group=make_group(name, count, **group), pods=(EqualPods(pod=pod, count=count),)
    )


def ask(
    scene: Scene, size: int, *before: EarlierGang, shape: bytes = FULL, **group: Any
) -> FitAnswer:
    queues = group.pop("queues", ())
    return scene.planner.would_fit(
        FitRequest(
            group=make_group("q", size, **group),
            pods=tuple(make_pods("q", size, shape)),
            earlier=before,
            queues=queues,
        )
    )


def test_two_gangs_that_fit_alone_do_not_fit_together() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    assert ask(scene, 2).fits
    answer = ask(scene, 2, earlier("first", 1))
    assert (answer.fits, answer.ever) == (False, True)
    assert answer.sentence.startswith("with team/first placed before it: 1 of 2 pods fit")
    assert ask(scene, 1, earlier("first", 1)).where in {(("n0", 1),), (("n1", 1),)}


def test_a_gang_before_it_that_does_not_fit_takes_nothing() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    assert ask(scene, 2, earlier("large", 3)).fits


def test_gangs_of_one_queue_share_its_capability() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    small = (AskedQueue(name="fresh", capability=amounts(cpu=5000)),)
    assert ask(scene, 1, queue="fresh", queues=small).fits
    answer = ask(scene, 1, earlier("first", 1, queue="fresh"), queue="fresh", queues=small)
    assert (answer.fits, answer.ever) == (False, True)
    assert "queue fresh is at its capability: job needs 3 cpu more" in answer.sentence


def test_queues_that_would_be_created_below_each_other_share_the_upper_ones_capability() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    queues = (
        AskedQueue(name="left", parent="above"),
        AskedQueue(name="above", capability=amounts(cpu=5000)),
        AskedQueue(name="right", parent="above"),
    )
    assert ask(scene, 1, queue="left", queues=queues).fits
    before = earlier("first", 1, queue="right")
    assert not ask(scene, 1, before, queue="left", queues=queues).fits


def test_gangs_of_one_namespace_share_its_quota(golden: Golden) -> None:
    """One that has too little left of it takes nothing."""
    scene = Scene([make_node(f"n{number}") for number in range(4)])
    hard, used = (("requests.cpu", 12_000),), (("requests.cpu", 3_000),)
    quota = ResourceQuota(
        uid="u", namespace="team", name="a", resource_version=1, hard=hard, used=used
    )
    scene.put(quota)
    assert ask(scene, 2).fits
    answer = ask(scene, 2, earlier("first", 1))
    assert (answer.fits, answer.ever) == (False, True)
    golden(answer.sentence)
    assert ask(scene, 2, earlier("large", 3)).fits
    assert ask(scene, 2, earlier("first", 1, namespace="other")).fits


def test_a_queue_that_is_its_own_ancestor_ends_no_planner() -> None:
    scene = Scene([make_node("n0")])
    queues = (AskedQueue(name="a", parent="b"), AskedQueue(name="b", parent="a"))
    assert ask(scene, 1, queue="a", queues=queues).fits


def test_resources_that_no_node_of_the_question_has_yet_are_counted_for_earlier_gangs() -> None:
    scene = Scene([make_node("n0", {GPU: 1, "pods": 9})])
    gpu = make_shape({GPU: 1})
    assert ask(scene, 1, shape=gpu).fits
    assert not ask(scene, 1, earlier("first", 1, gpu), shape=gpu).fits


def test_nothing_of_earlier_gangs_stays_in_the_planner() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_class(), make_volume("v0", "n0"), make_claim("c0"))
    before = scene.planner.checkpoint(0), scene.planner.ledger()
    ask(scene, 2, earlier("first", 1), earlier("second", 1))
    assert (scene.planner.checkpoint(0), scene.planner.ledger()) == before
    validate(scene.planner)


def test_too_many_gangs_or_pods_before_it_are_named_by_the_rule(golden: Golden) -> None:
    scene = Scene([make_node("n0")])
    many = tuple(earlier(f"g{number}", 1) for number in range(50))
    assert ask(scene, 1, *many).failure == "invalid"
    answer = ask(scene, 1, earlier("a", 15_000), earlier("b", 15_000))
    golden(answer.sentence)
