"""A reservation of `minResources` outlives its planner, and a replay makes the same one."""

import random

import msgspec
import pytest

from shared.contracts.decisions import GangDecision
from shared.model.objects import PriorityClass
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.replayed import NODES, Recorded, prove_replay
from tests.services.gang_planner.core.scene import (
    GPU,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.test_owed_after_restart import Killed

DRIVER = make_shape({"cpu": 100})
EXECUTOR = make_shape({"cpu": 500, GPU: 1})
OTHER = make_shape({GPU: 1})


def app(scene: LoggedScene, name: str, executors: int = 4, important: str = "") -> None:
    whole = amounts(cpu=100 + 500 * executors, gpu=executors)
    scene.put(make_group(name, 1, min_resources=whole, priority_class=important))
    scene.put(*make_pods(name, 1, DRIVER, role="driver"))


@pytest.mark.parametrize("checkpoints", [False, True], ids=["from the log", "from a checkpoint"])
def test_every_prefix_of_the_log_leads_to_the_same_reservation(checkpoints: bool) -> None:
    scene = Killed(make_node(f"node-{i}") for i in range(4))
    Killed.lives, scene.checkpoints = 0, checkpoints
    app(scene, "one")
    scene.until_quiet()
    assert len(scene.holds()) == 4
    scene.carry_out(phase="Running")
    app(scene, "two")
    scene.until_quiet()
    for executor in make_pods("one", 3, EXECUTOR, role="executor"):
        scene.put(executor)
        scene.until_quiet()
        scene.carry_out(phase="Running")
    # A node of the reservation dies, and another one comes.
    (unit,) = scene.holds()
    scene.remove(make_node(unit.node))
    scene.until_quiet(within_ms=1_000)
    scene.put(make_node("node-9"))
    scene.until_quiet(within_ms=61_000)
    assert [one.node for one in scene.holds() if one.reserving] == ["node-9"]
    scene.until_quiet(within_ms=600_000)
    assert scene.holds() == []
    assert ("closed", "Expired") in scene.notes("hold")
    assert Killed.lives > 20


def test_a_planner_that_dies_right_after_the_decision_leaves_its_reservation_to_the_next() -> None:
    scene = LoggedScene(make_node(f"node-{i}") for i in range(4))
    app(scene, "one")
    scene.until_quiet()
    end = next(
        number
        for number, (_, record) in enumerate(scene.records, start=1)
        if isinstance(record, GangDecision)
    )
    scene.records = scene.records[:end]
    scene.restart()
    scene.carry_out(phase="Running")
    app(scene, "two")
    scene.until_quiet()
    assert [one.gang for _, one in scene.decisions] == ["team/one"]
    assert len(scene.holds()) == 4


@pytest.mark.parametrize("seed", range(8))
def test_applications_are_replayed_byte_for_byte(seed: int) -> None:
    prove_replay(live(seed))


def test_the_stories_are_about_reservations() -> None:
    stories = [live(seed) for seed in range(4)]
    decisions = [one for scene in stories for _, one in scene.decisions]
    assert sum(bool(one.reserves) for one in decisions) > 5
    assert sum(any("/" in uid for uid in one.fills) for one in decisions) > 2
    reasons = {reason for scene in stories for kind, reason in scene.notes("hold")}
    assert reasons >= {"Expired", "NotPlaced", "Filled"}


def live(seed: int) -> Recorded:
    """Applications come and grow, and lose pods and nodes."""
    chance = random.Random(seed)
    scene = Recorded(NODES)
    scene.put(PriorityClass(uid="pc", name="high", resource_version=1, value=9))
    for serial in range(80):
        scene.now_ms += chance.choice([1, 200, 2_000, 20_000])
        _something_happens(scene, chance, serial)
        if chance.random() < 0.7:
            scene.until_quiet()
            scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=700_000)
    return scene


def _something_happens(scene: Recorded, chance: random.Random, serial: int) -> None:
    pods = sorted(scene.pods.values(), key=lambda one: one.uid)
    match chance.randrange(6):
        case 0 if len(pods) < 16:
            app(scene, f"app{serial}", chance.randint(1, 5), chance.choice(["", "", "high"]))
        case 1 if len(pods) < 16:
            scene.put(make_group(f"g{serial}", 2), *make_pods(f"g{serial}", 2, OTHER))
        case 2 | 3 if drivers := [one for one in pods if one.role == "driver" and one.node]:
            shape = chance.choice([EXECUTOR, EXECUTOR, OTHER])
            (pod,) = make_pods(chance.choice(drivers).group_name, 1, shape, role="executor")
            unique = f"{pod.uid}-{serial}"
            scene.put(msgspec.structs.replace(pod, uid=unique, name=unique))
        case 4 if len(pods) > 4:
            pod = chance.choice(pods)
            if chance.random() < 0.3:
                scene.change(pod.uid, phase=chance.choice(["Failed", "Succeeded"]))
            else:
                scene.remove(pod)
        case _:
            node = chance.choice(NODES)
            if node.uid not in scene.objects:
                scene.put(node)
            elif chance.random() < 0.3:
                scene.remove(node)
