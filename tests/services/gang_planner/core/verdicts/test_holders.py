"""What a waiting gang waits for: the gangs that hold what it lacks, or no gang at all, because it
would not fit on empty nodes either.
"""

import msgspec

from shared.contracts.verdicts import Why
from shared.model.objects import Queue, SubGroup
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.topology.racks import ONE_RACK
from tests.support.golden import Golden

ONE_GPU = make_shape({GPU: 1})
NINE_GPUS = make_shape({GPU: 9})
CPU = make_shape({"cpu": 1000})


def why(scene: Scene, name: str = "job") -> Why:
    """The pending reason of a gang a while after it was refused."""
    assert scene.settle() == []
    scene.step(after_ms=3_000)
    found = scene.verdict(name).why
    assert found is not None
    return found


def a_queue(name: str, **fields: object) -> Queue:
    return Queue(uid=name, dialect="volcano", name=name, resource_version=1, **fields)  # type: ignore[arg-type]  # fields of a Queue, by name


def a_busy_node(queue: str = "") -> Scene:
    """A node whose GPU a gang of the queue holds."""
    scene = Scene([make_node("n-0")])
    scene.put(a_queue("other"))
    scene.put(make_group("first", 1, queue=queue), *make_pods("first", 1, ONE_GPU))
    scene.settle()
    return scene


def test_gangs_of_other_queues_that_hold_the_nodes_are_named() -> None:
    scene = a_busy_node("other")
    scene.put(make_group("job", 1), *make_pods("job", 1, ONE_GPU))
    found = why(scene)
    assert (found.holders, found.holders_count) == (("team/tfjob/first",), 1)
    assert "even when empty" not in found.sentence


def test_pods_that_no_node_would_hold_wait_for_no_gang() -> None:
    scene = a_busy_node()
    scene.put(make_group("job", 1), *make_pods("job", 1, NINE_GPUS))
    found = why(scene)
    assert (found.holders, found.holders_count) == ((), 0)
    assert found.sentence.endswith("would hold one of them, even when empty")


def test_a_gang_that_all_nodes_together_would_not_hold_waits_for_no_gang() -> None:
    scene = a_busy_node()
    scene.put(make_group("job", 2), *make_pods("job", 2, ONE_GPU))
    found = why(scene)
    assert (found.holders, found.holders_count) == ((), 0)
    assert found.sentence.endswith(
        "all nodes of this cluster together would not hold it, even when empty"
    )
    scene.put(make_node("n-1"))
    found = why(scene)
    assert found.holders == ("team/tfjob/first",)
    assert "even when empty" not in found.sentence


def test_a_cordoned_node_may_return() -> None:
    scene = Scene([make_node("n-0", unschedulable=True)])
    scene.put(make_group("job", 1), *make_pods("job", 1, ONE_GPU))
    assert "even when empty" not in why(scene).sentence


def test_a_gang_above_the_capability_of_its_queue_waits_for_no_gang(golden: Golden) -> None:
    scene = Scene([make_node("n-0")])
    scene.put(a_queue("small", capability=amounts(cpu=1000)))
    scene.put(make_group("first", 1, queue="small"), *make_pods("first", 1, CPU))
    assert len(scene.settle()) == 1
    scene.put(make_group("job", 2, queue="small"), *make_pods("job", 2, CPU))
    found = why(scene)
    assert (found.reason, found.holders) == ("NotEnoughQuota", ())
    (condition,) = scene.verdict("job").conditions
    assert condition.reason == found.reason
    golden(found.sentence)


def test_never_more_pods_fit_than_are_needed() -> None:
    """Its sub-gang of two is placed whole, and its minimum is one. No HyperNode exists yet."""
    scene = Scene([make_node("n-0")])
    stages = SubGroup(name="stage", size=2, match_label_keys=("stage",))
    scene.put(make_group("job", 1, topology=ONE_RACK, sub_groups=(stages,)))
    labels = msgspec.msgpack.encode((("stage", "a"),))
    scene.put(*make_pods("job", 2, CPU, role="stage-a", labels=labels))
    assert "apart from that 1 of 1 pods fit" in why(scene).sentence


def test_a_gang_that_grows_waits_for_its_owners_other_gang_and_not_for_itself() -> None:
    """Gangs of one owner have the same title."""
    scene = Scene([make_node("n-0"), make_node("n-1")])
    scene.put(make_group("first", 1), *make_pods("first", 1, ONE_GPU))
    scene.settle()
    owner = scene.pods_of("first")[0].owner
    scene.put(make_group("job", 1), *make_pods("job", 2, ONE_GPU, owner=owner))
    assert len(scene.settle()) == 1
    scene.put(make_node("n-2", unschedulable=True))
    scene.step(after_ms=3_000)
    found = scene.verdict("job").why
    assert found is not None
    assert (found.holders, found.holders_count) == (("team/tfjob/first",), 1)


def test_a_gang_that_holds_none_of_what_it_lacks_is_not_counted_among_the_holders() -> None:
    scene = a_busy_node()
    pods = [*make_pods("job", 1, CPU, role="a"), *make_pods("job", 1, ONE_GPU, role="b")]
    scene.put(make_group("job", 1), *pods)
    assert len(scene.settle()) == 1
    scene.put(make_node("n-2", unschedulable=True))
    scene.step(after_ms=3_000)
    found = scene.verdict("job").why
    assert found is not None
    assert (found.holders, found.holders_count) == (("team/tfjob/first",), 1)
