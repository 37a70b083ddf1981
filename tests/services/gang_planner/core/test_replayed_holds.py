"""A replay runs only the cycles that wrote something, and yet has the same holds, byte for byte."""

import random

import msgspec
import pytest

from shared.contracts.decisions import GangDecision, NoteOpened
from shared.model.objects import Owner, PriorityClass
from tests.services.gang_planner.core.replayed import NODES, Recorded, prove_replay
from tests.services.gang_planner.core.scene import GPU, make_group, make_pods, make_shape

SHAPES = (make_shape({GPU: 1}), make_shape({GPU: 1, "cpu": 500}), make_shape({"cpu": 2000}))
STEPS = 120


def live(seed: int, bounds: tuple[int, ...] = (0,), *, of_jobs: bool = False) -> Recorded:
    """Gangs, which Jobs make or not, come and lose members and get them back."""
    chance = random.Random(seed)
    scene = Recorded(NODES)
    bound = random.Random(seed)
    scene.put(PriorityClass(uid="pc", name="high", resource_version=1, value=9))
    for serial in range(STEPS):
        scene.in_flight_max = bound.choice(bounds)
        scene.now_ms += chance.choice([1, 200, 2_000, 20_000])
        _something_happens(scene, chance, serial, of_jobs=of_jobs)
        if chance.random() < 0.7:
            scene.until_quiet()
            scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=70_000)
    return scene


def _something_happens(
    scene: Recorded, chance: random.Random, serial: int, *, of_jobs: bool
) -> None:
    pods = sorted(scene.pods.values(), key=lambda pod: pod.uid)
    match chance.randrange(7):
        case 0 | 1 if len(pods) < 12:
            size = chance.randint(1, 4)
            important = "high" if chance.random() < 0.3 else ""
            scene.put(make_group(f"g{serial}", size, priority_class=important))
            owner = Owner(api_version="batch/v1", kind="Job", name="j", uid=f"job-{serial}")
            made = make_pods(f"g{serial}", size, chance.choice(SHAPES))
            if of_jobs:
                made = [msgspec.structs.replace(pod, owner=owner) for pod in made]
            scene.put(*made)
        case 2 | 3 if pods:
            pod = chance.choice(pods)
            scene.change(pod.uid, phase=chance.choice(["Failed", "Failed", "Succeeded"]))
        case 4 if pods:
            pod = chance.choice(pods)
            if chance.random() < 0.5:
                scene.change(pod.uid, deleting=True, disrupted=chance.random() < 0.5)
            else:
                scene.remove(pod)
        case 5 if pods:
            pod = chance.choice(pods)
            again = msgspec.structs.replace(
                pod, uid=f"{pod.uid}-{serial}", node="", phase="Pending", deleting=False
            )
            scene.put(msgspec.structs.replace(again, shape=chance.choice(SHAPES)))
        case _:
            node = chance.choice(NODES)
            known = node.uid in scene.objects
            if known:
                scene.remove(node)
            else:
                scene.put(node)


@pytest.mark.parametrize("seed", range(12))
def test_cycles_that_wait_for_binders_are_left_out_as_well(seed: int) -> None:
    prove_replay(live(seed, bounds=(1, 2, 4, 8)))


@pytest.mark.parametrize("seed", range(25))
def test_the_cycles_that_wrote_something_write_it_again(seed: int) -> None:
    prove_replay(live(seed))


@pytest.mark.parametrize("seed", range(25))
def test_cycles_in_which_a_run_is_interrupted_write_nothing_that_counts(seed: int) -> None:
    """Some members of Jobs succeed, and some are lost and made again."""
    prove_replay(live(seed, of_jobs=True))


def test_the_stories_are_about_holds() -> None:
    reasons: set[str] = set()
    filled = 0
    for seed in range(25):
        for _, record in live(seed).records:
            if isinstance(record, NoteOpened) and record.kind == "hold":
                reasons.add(record.reason)
            if isinstance(record, GangDecision):
                filled += len(record.fills)
    assert reasons >= {"PodFailed", "PodEvicted", "PodDeleted", "NodeLost"}
    assert filled > 10
