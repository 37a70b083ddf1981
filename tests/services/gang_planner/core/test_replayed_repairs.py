"""A replay runs only the cycles that wrote something, and repairs, pauses and releases come out
byte for byte.
"""

import random
from typing import Any

import pytest

from shared.contracts import annotations
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.outcomes import Member, MemberResult
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.replayed import NODES, Recorded, prove_replay
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

SHAPE = make_shape({"cpu": 2000})
RESULTS: tuple[MemberResult, ...] = ("bound",) * 6 + ("refused", "conflict", "unknown", "skipped")
SETTINGS = (
    (),
    ((annotations.START_DEADLINE_SECONDS, "20"),),
    ((annotations.DEGRADED_GRACE_SECONDS, "10"), (annotations.HOLD_SECONDS, "0")),
)
STEPS = 150


def live(seed: int, bounds: tuple[int, ...] = (0,)) -> Recorded:
    """Gangs come, are bound in part, repaired, released and made again."""
    chance = random.Random(seed)
    scene = Recorded(NODES)
    bound = random.Random(seed)
    made: list[Any] = []
    for serial in range(STEPS):
        scene.in_flight_max = bound.choice(bounds)
        scene.now_ms += chance.choice([1, 200, 1_500, 12_000])
        match chance.randrange(6):
            case 0 if len(scene.pods) < 20:
                size = chance.randint(2, 5)
                pods = make_pods(f"g{serial}", size, SHAPE)
                scene.put(make_group(f"g{serial}", size, settings=chance.choice(SETTINGS)), *pods)
                made += pods
            case 1:
                scene.make_again(made)
            case 2:
                name = f"node-{chance.randrange(6)}"
                cordoned = chance.random() < 0.5
                scene.put(make_node(name, unschedulable=cordoned, resource_version=serial + 2))
            case 3 if scene.pods:
                uid = chance.choice(sorted(scene.pods))
                if scene.pods[uid].node:
                    scene.change(uid, phase="Running")
            case _:
                pass
        for seq, act in scene.acts:
            if seq not in scene.done and chance.random() < 0.7:
                scene.done.add(seq)
                _answer(scene, seq, act, chance)
        scene.until_quiet()
    return scene


def _answer(
    scene: LoggedScene, seq: int, act: GangDecision | EvictionDecision, chance: random.Random
) -> None:
    if isinstance(act, EvictionDecision):
        for victim in act.victims:
            if victim.uid in scene.pods and chance.random() < 0.8:
                scene.remove(scene.pods[victim.uid])
        scene.answer(seq, act, evicted=len(act.victims))
        return
    members: list[Member] = []
    for one in act.bindings:
        result = chance.choice(RESULTS)
        if result == "bound" and one.uid in scene.pods and not scene.pods[one.uid].node:
            scene.change(one.uid, node=one.node)
        elif result != "bound":
            members.append(Member(uid=one.uid, node=one.node, result=result))
    scene.answer(seq, act, members, delivered=chance.randint(1, 2))


@pytest.mark.parametrize("seed", range(8))
def test_cycles_that_wait_for_binders_are_left_out_as_well(seed: int) -> None:
    prove_replay(live(seed, bounds=(1, 2, 4, 8)))


@pytest.mark.parametrize("seed", range(8))
def test_the_cycles_that_wrote_something_write_it_again(seed: int) -> None:
    scene = live(seed)
    kinds = {getattr(one, "kind", type(one).__name__) for _, one in scene.records}
    assert kinds >= {"repair", "release", "backoff", "EvictionDecision"}
    prove_replay(scene)
