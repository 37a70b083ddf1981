"""What a verdict says of held room."""

from tests.services.gang_planner.core.losing import place_of, running, successor
from tests.services.gang_planner.core.scene import Scene, make_node
from tests.support.golden import Golden


def conditions(scene: Scene, name: str = "job") -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.message) for one in scene.verdict(name).conditions}


def reason_of(scene: Scene, type_: str, name: str = "job") -> str:
    return next(one.reason for one in scene.verdict(name).conditions if one.type == type_)


def test_the_verdict_names_the_member_the_node_and_the_end_of_a_hold(golden: Golden) -> None:
    scene = running()
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed", reason="OOMKilled")
    scene.settle()
    said = (
        f"job-worker-1 failed on {place} (OOMKilled): capacity for its successor is reserved on "
        f"{place} until 00:01:10 UTC"
    )
    assert conditions(scene)["RoomHeld"] == ("True", said)
    assert "Degraded" not in conditions(scene)
    why = scene.verdict("job").why
    assert why is not None
    assert why.reason == "NotEnoughPods"
    golden(why.sentence)

    scene.now_ms += 60_000
    scene.settle()
    assert conditions(scene)["RoomHeld"] == ("False", "")
    assert reason_of(scene, "RoomHeld") == "Expired"
    status, message = conditions(scene)["Degraded"]
    assert status == "True"
    golden(message)
    scene.put(successor(1))
    (again,) = scene.settle()
    scene.run(again)
    scene.settle()
    assert conditions(scene)["Degraded"][0] == "False"


def test_room_of_a_pod_that_still_terminates_is_said_to_be_held_only_later(golden: Golden) -> None:
    scene = running()
    scene.change("job-worker-1", deleting=True)
    scene.settle()
    status, message = conditions(scene)["Degraded"]
    assert status == "True"
    golden(message)
    scene.remove(scene.pods["job-worker-1"])
    scene.settle()
    assert conditions(scene)["Degraded"][0] == "False"
    assert conditions(scene)["RoomHeld"][0] == "True"


def test_a_gang_for_which_no_node_has_room_is_degraded_and_first_in_line(golden: Golden) -> None:
    scene = running()
    lost = place_of(scene, "job-worker-1")
    scene.remove(make_node(lost))
    scene.settle()
    assert "RoomHeld" not in conditions(scene)
    status, message = conditions(scene)["Degraded"]
    assert status == "True"
    golden(message)
