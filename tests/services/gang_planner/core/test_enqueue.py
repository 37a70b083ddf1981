"""Groups whose pods exist only after they have left Pending are admitted before that."""

from typing import Any

from shared.model.objects import PodGroup, Queue
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


def volcano_group(name: str, minimum: int = 1, **fields: Any) -> PodGroup:
    defaults: dict[str, Any] = {
        "dialect": "volcano",
        "waits_for_inqueue": True,
        "min_resources": amounts(cpu=1000 * minimum),
    }
    return make_group(name, minimum, **{**defaults, **fields})


def limited(cpu: int, **fields: Any) -> Queue:
    return Queue(
        uid="q",
        dialect="volcano",
        name="q",
        resource_version=1,
        capability=amounts(cpu=cpu),
        **fields,
    )


def phases(scene: Scene, *names: str) -> list[str]:
    return [scene.verdict(name).phase for name in names]


def test_a_group_is_admitted_before_its_pods_exist_and_whatever_room_there_is() -> None:
    scene = Scene([make_node("n0")])
    scene.put(volcano_group("small"), volcano_group("huge", 1000))
    scene.settle()
    assert phases(scene, "small", "huge") == ["Inqueue", "Inqueue"]
    why = scene.verdict("small").why
    assert why is not None
    assert why.reason == "NotEnoughPods"


def test_a_group_with_pods_is_admitted_and_placed_in_one_cycle() -> None:
    scene = Scene([make_node("n0")])
    scene.put(volcano_group("a"), *make_pods("a", 1, CPU, scheduler_name="volcano"))
    assert len(scene.step().decisions) == 1
    assert dict(scene.planner.gangs_by_phase())["Starting"] == 1


def test_what_is_promised_to_admitted_gangs_counts_and_a_small_one_behind_still_gets_in(
    golden: Golden,
) -> None:
    scene = Scene([make_node("n0")])
    scene.put(limited(3000))
    scene.put(
        volcano_group("a", 2, queue="q", created_ms=1),
        volcano_group("b", 2, queue="q", created_ms=2),
        volcano_group("c", 1, queue="q", created_ms=3),
    )
    scene.settle()
    assert phases(scene, "a", "b", "c") == ["Inqueue", "Pending", "Inqueue"]
    why = scene.verdict("b").why
    assert why is not None
    assert why.reason == "NotEnoughQuota"
    golden(why.sentence)
    assert why.quota[0].short == 2000


def test_a_refused_group_is_admitted_when_the_promise_in_front_is_withdrawn() -> None:
    scene = Scene([make_node("n0")])
    scene.put(limited(2000))
    scene.put(
        volcano_group("a", 2, queue="q", created_ms=1),
        volcano_group("b", 2, queue="q", created_ms=2),
    )
    scene.settle()
    scene.remove(volcano_group("a"))
    scene.settle()
    assert scene.verdict("b").phase == "Inqueue"


def test_a_started_gang_holds_what_it_uses_and_no_longer_its_promise() -> None:
    scene = Scene([make_node("n0")])
    scene.put(limited(3000))
    scene.put(volcano_group("a", 2, queue="q", created_ms=1))
    scene.put(*make_pods("a", 2, CPU, scheduler_name="volcano"))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.put(volcano_group("b", 1, queue="q", created_ms=2))
    scene.settle()
    assert scene.verdict("b").phase == "Inqueue"


def test_a_group_stored_as_inqueue_stays_admitted_and_keeps_its_promise_after_a_restart() -> None:
    scene = Scene([make_node("n0")])
    scene.put(limited(2000))
    scene.put(volcano_group("a", 2, queue="q", phase="Inqueue"), volcano_group("b", 1, queue="q"))
    scene.settle()
    assert phases(scene, "a", "b") == ["Inqueue", "Pending"]


def test_a_closed_queue_admits_no_gang() -> None:
    scene = Scene([make_node("n0")])
    scene.put(limited(9000, state="Closed"), volcano_group("a", queue="q"))
    scene.settle()
    verdict = scene.verdict("a")
    assert verdict.phase == "Pending"
    assert verdict.why is not None
    assert verdict.why.reason == "QueueNotOpen"


def test_without_the_enqueue_action_allocate_admits_by_itself() -> None:
    scene = Scene([make_node("n0")], conf="actions: allocate")
    scene.put(limited(1000), volcano_group("a", 2, queue="q"))
    scene.settle()
    assert scene.verdict("a").phase == "Inqueue"


def test_without_a_declared_minimum_a_group_is_admitted_at_once() -> None:
    scene = Scene([make_node("n0")])
    scene.put(limited(0), volcano_group("a", 2, queue="q", min_resources=None))
    scene.settle()
    assert scene.verdict("a").phase == "Inqueue"
