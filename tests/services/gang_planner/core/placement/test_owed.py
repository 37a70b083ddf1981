"""Where room is held for lost members, which pods fill it, and which gangs outrank it."""

from shared.model.objects import PriorityClass
from tests.services.gang_planner.core.losing import (
    WORKER,
    bound_of,
    closed,
    in_full_queue,
    opened,
    place_of,
    queue_up,
    running,
    successor,
)
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

SMALLER = make_shape({GPU: 1, "cpu": 500})


def test_seed_002_a_pod_that_dies_gets_its_place_back_while_others_wait() -> None:
    """kube-batch's documented flaw: "if a pod of the job dies when the job is still running, it
    might give other pods chance to occupy the resources and cause deadlock".
    """
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")

    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []
    (note,) = opened(scene)
    assert (note.reason, note.node, note.pod_uids) == ("PodFailed", place, ("job-worker-1",))
    assert note.until_ms - note.at_ms == 60_000
    scene.remove(scene.pods["job-worker-1"])
    assert scene.settle() == []

    scene.put(successor(1))
    decisions = scene.settle()
    assert bound_of(decisions) == {"job-worker-1-again": place}
    assert decisions[0].fills == ("job-worker-1",)
    assert closed(scene) == ["Filled"]
    scene.run(decisions[0])
    scene.settle()
    assert scene.verdict("job").phase == "Running"
    assert scene.verdict("rival").phase == "Inqueue"


def test_volcano_5805_a_drained_nodes_room_goes_back_to_the_gang_that_was_on_it() -> None:
    """A node is cordoned and drained and comes back; an older, equal pod must not take the room
    that the gang's own member stands in line for.
    """
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")
    drained = make_node(place, resource_version=2, unschedulable=True)
    scene.put(drained)
    scene.change("job-worker-1", disrupted=True, deleting=True)
    assert scene.settle() == []
    scene.put(successor(1))
    assert scene.settle() == []
    scene.remove(scene.pods["job-worker-1"])
    assert scene.settle() == []
    (note,) = opened(scene)
    assert (note.reason, note.node) == ("PodEvicted", "")

    scene.now_ms += 5_000
    scene.put(make_node(place, resource_version=3))
    assert bound_of(scene.settle()) == {"job-worker-1-again": place}
    assert closed(scene) == ["Filled"]


def test_a_gang_of_the_same_priority_does_not_get_held_room() -> None:
    scene = running()
    queue_up(scene)
    scene.change("job-worker-1", phase="Failed")
    for _ in range(5):
        assert scene.settle() == []
        scene.now_ms += 1_000


def test_a_gang_of_higher_priority_takes_held_room_and_the_hold_stays_first_in_line() -> None:
    scene = running()
    queue_up(scene, "older")
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []

    scene.put(
        PriorityClass(uid="pc", name="high", resource_version=1, value=100),
        make_group("urgent", 1, priority_class="high"),
        *make_pods("urgent", 1, WORKER),
    )
    decisions = scene.settle()
    assert bound_of(decisions) == {"urgent-worker-0": place}
    assert opened(scene)[-1].node == ""
    scene.run(decisions[0])
    scene.settle()

    scene.put(make_node("node-9"))
    assert scene.settle() == []
    assert opened(scene)[-1].node == "node-9"
    scene.put(successor(1))
    assert bound_of(scene.settle()) == {"job-worker-1-again": "node-9"}


def test_a_gang_of_higher_priority_leaves_the_room_that_it_does_not_need() -> None:
    scene = running(3)
    scene.change("job-worker-0", phase="Failed")
    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []
    scene.put(
        PriorityClass(uid="pc", name="high", resource_version=1, value=100),
        make_group("urgent", 1, priority_class="high"),
        *make_pods("urgent", 1, WORKER),
    )
    assert len(scene.settle()) == 1
    assert sorted(bool(one.node) for one in scene.holds()) == [False, True]


def test_a_member_whose_node_dies_gets_room_elsewhere() -> None:
    scene = running(nodes=3)
    queue_up(scene)
    lost = place_of(scene, "job-worker-1")
    spare = make_node("node-9")
    scene.remove(make_node(lost))
    assert scene.settle() == []
    (note,) = opened(scene)
    assert (note.reason, note.node, note.lost_on) == ("NodeLost", "", lost)
    scene.put(spare)
    assert scene.settle() == []
    assert opened(scene)[-1].node == "node-9"
    scene.remove(scene.pods["job-worker-1"])
    scene.put(successor(1))
    assert bound_of(scene.settle()) == {"job-worker-1-again": "node-9"}


def test_held_room_moves_when_its_node_is_cordoned() -> None:
    scene = running(nodes=4)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(make_node(place, resource_version=2, unschedulable=True))
    scene.settle()
    assert opened(scene)[-1].node not in {"", place}
    assert len(opened(scene)) == 2


def test_room_is_held_elsewhere_once_a_member_has_failed_twice_on_a_node() -> None:
    scene = running(nodes=4)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.remove(scene.pods["job-worker-1"])
    scene.put(successor(1))
    (again,) = scene.settle()
    assert bound_of([again]) == {"job-worker-1-again": place}
    scene.run(again)
    scene.settle()
    scene.change("job-worker-1-again", phase="Failed")
    scene.settle()
    assert opened(scene)[-1].node not in {"", place}


def test_a_new_pod_of_another_shape_gives_the_held_place_up_and_is_planned_first() -> None:
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(successor(1, shape=SMALLER))
    assert bound_of(scene.settle()) == {"job-worker-1-again": place}
    assert closed(scene) == ["Filled"]


def test_a_new_pod_of_a_shape_that_fits_nowhere_stands_first_in_line() -> None:
    scene = running()
    queue_up(scene)
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(successor(1, shape=make_shape({GPU: 1, "cpu": 64_000})))
    assert set(bound_of(scene.settle())) == {"rival-worker-0"}
    assert opened(scene)[-1].node == ""
    queue_up(scene, "third")
    scene.put(make_node("big", {"cpu": 64_000, GPU: 1, "pods": 10}))
    assert bound_of(scene.settle()) == {"job-worker-1-again": "big"}


def test_another_role_of_the_gang_does_not_take_the_held_place() -> None:
    scene = running(3, minimum=3)
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(*make_pods("job", 1, WORKER, role="extra"))
    assert scene.settle() == []
    assert len(scene.holds()) == 1


def test_the_queue_is_charged_for_held_room_as_it_was_for_the_pod() -> None:
    scene = in_full_queue()
    scene.put(make_group("rival", 1, queue="q"))
    scene.put(*make_pods("rival", 1, WORKER))
    assert scene.settle() == []
    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []
    scene.put(successor(1))
    assert set(bound_of(scene.settle())) == {"job-worker-1-again"}
    assert scene.settle() == []


def test_a_gang_of_which_nothing_is_left_is_placed_whole_on_its_held_room() -> None:
    scene = Scene([make_node("node-0", {GPU: 2, "cpu": 4000, "pods": 10})])
    scene.put(make_group("job", 2))
    scene.put(*make_pods("job", 2, WORKER))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    queue_up(scene)
    scene.remove(make_node("node-0"))
    scene.put(make_node("node-1", {GPU: 2, "cpu": 4000, "pods": 10}))
    assert scene.settle() == []
    assert [one.node for one in scene.holds()] == ["node-1", "node-1"]
    for index in range(2):
        scene.remove(scene.pods[f"job-worker-{index}"])
        scene.put(successor(index))
        if index == 0:
            assert scene.settle() == []
    (again,) = scene.settle()
    assert set(bound_of([again])) == {"job-worker-0-again", "job-worker-1-again"}
    assert len(again.fills) == 2
    assert closed(scene) == ["Filled", "Filled"]


def test_a_foreign_pod_on_the_held_place_makes_the_hold_look_elsewhere() -> None:
    scene = running()
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(
        *make_pods(
            "foreign", 1, WORKER, ours=False, group_name="", node=place, phase="Running", owner=None
        )
    )
    assert scene.settle() == []
    assert opened(scene)[-1].node == ""


def test_a_pod_on_a_dead_node_is_not_charged_beside_the_room_held_for_it() -> None:
    scene = in_full_queue()
    scene.remove(make_node(place_of(scene, "job-worker-1")))
    scene.settle()
    (note,) = opened(scene)
    assert note.node
