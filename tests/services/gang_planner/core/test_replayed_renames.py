"""A replay runs only the cycles that wrote something. Groups that go before their pods and are made
again come out byte for byte.
"""

import random

import msgspec
import pytest

from services.gang_planner.core.state.gang_states import GangState
from tests.services.gang_planner.core.replayed import NODES, Recorded, prove_replay
from tests.services.gang_planner.core.scene import make_group, make_pods, make_shape

SHAPE = make_shape({"cpu": 1000})
STEPS = 120


def change(scene: Recorded, chance: random.Random, name: str, serial: int) -> None:
    """One event in the life of a gang's objects."""
    pods = scene.pods_of(name)
    groups = [one for one in scene.objects.values() if getattr(one, "name", "") == name]
    match chance.randrange(6):
        case 0 | 1 if groups:
            scene.remove(*groups)
        case 0 | 1:
            scene.put(make_group(name, 2, uid=f"{name}-{serial}"))
        case 2:
            names = {pod.name for pod in pods}
            made = (one for one in make_pods(name, 3, SHAPE) if one.name not in names)
            scene.put(*(msgspec.structs.replace(one, uid=f"{one.uid}-{serial}") for one in made))
        case 3:
            for one in chance.sample(pods, chance.randint(0, len(pods))):
                scene.change(one.uid, deleting=True)
        case 4:
            for one in pods:
                if one.node and chance.random() < 0.5:
                    scene.change(one.uid, phase=chance.choice(["Succeeded", "Failed"]))
        case _:
            scene.remove(*(one for one in pods if one.deleting))


def live(seed: int) -> Recorded:
    """Groups and pods of a few gangs come, run, are deleted and made again, in any order."""
    chance = random.Random(seed)
    scene = Recorded(NODES)
    for serial in range(STEPS):
        change(scene, chance, f"g{chance.randrange(4)}", serial)
        if chance.random() < 0.5:
            scene.carry_out(phase="Running")
        if chance.random() < 0.7:
            scene.until_quiet(within_ms=chance.choice([0, 300, 5_000]))
    return scene


@pytest.mark.parametrize("seed", range(12))
def test_gangs_that_are_renamed_are_replayed_byte_for_byte(seed: int) -> None:
    prove_replay(live(seed))


def test_the_start_of_a_gang_whose_last_pods_are_terminating_is_written_under_its_new_id() -> None:
    scene = Recorded(NODES)
    scene.put(make_group("a", 2), *make_pods("a", 2, SHAPE))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    for pod in scene.pods_of("a"):
        scene.change(pod.uid, deleting=True)
    # In a replay this cycle, which writes nothing, does not run.
    scene.until_quiet()
    (gang,) = scene.state.gangs.gangs.values()
    assert gang.history.state is GangState.DORMANT
    scene.remove(scene.objects["group-a"])
    scene.put(make_group("b", 1), *make_pods("b", 1, SHAPE))
    scene.until_quiet()
    prove_replay(scene)
