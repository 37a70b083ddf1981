"""Evictions end: evicted pods are made again and want their room back, round after round, and
after a while no pod is evicted any more (volcano#3729, #4947).
"""

import functools
import random

import pytest

from shared.model.objects import Pod, Queue
from tests.services.gang_planner.core.preemption.crowd import (
    accept,
    cluster,
    configured,
    evictions,
    leave,
    submit,
)
from tests.services.gang_planner.core.scene import make_shape

WHOLE = "name: gang, enablePreemptable: false, enableReclaimable: false"
CONFIGURATIONS = {
    "reclaim": configured("enqueue, allocate, reclaim, backfill", WHOLE, "  - name: proportion\n"),
    "both": configured(
        "enqueue, allocate, preempt, reclaim, backfill", WHOLE, "  - name: proportion\n"
    ),
    "gangs": configured(
        "enqueue, allocate, gangpreempt, gangreclaim, backfill",
        "name: gang",
        "  - name: proportion\n",
    ),
    "shares": configured("enqueue, allocate, preempt", "name: drf"),
}
"""By which actions; "shares": without priorities."""

ROUNDS = 60
#: One comes in each round.
GANGS = 12
#: By then shares are settled.
SETTLED = 30


@functools.cache
def lived(name: str, seed: int) -> tuple[list[int], int]:
    """So many rounds of one crowd: evictions up to each of them, and pods."""
    chance = random.Random(seed)
    conf = CONFIGURATIONS[name]
    if name == "shares":
        conf = conf.replace("  - name: priority\n", "")
    scene = cluster(5, conf)
    queues = ["q"] if name == "shares" else ["a", "b", "c"]
    for queue in queues:
        weight = chance.randint(1, 3)
        scene.put(
            Queue(uid=queue, dialect="volcano", name=queue, resource_version=1, weight=weight)
        )
    pods: list[Pod] = []
    evicted: list[int] = []
    for number in range(ROUNDS):
        if number < GANGS:
            size = chance.randint(1, 4)
            pods += submit(
                scene,
                f"g{number}",
                size,
                minimum=chance.randint(1, size),
                priority=chance.randint(0, 3) if name in {"both", "gangs"} else 0,
                shape=make_shape({"cpu": chance.choice([1000, 2000, 4000])}),
                group={"queue": chance.choice(queues)},
            )
        scene.until_quiet(within_ms=10_000)
        accept(scene)
        leave(scene)
        scene.carry_out(phase="Running")
        scene.make_again(pods)
        evicted.append(sum(len(one.victims) for one in evictions(scene)))
    return evicted, len(pods)


def prove_end(name: str, seed: int) -> None:
    evicted, pods = lived(name, seed)
    assert evicted[-1] == evicted[SETTLED - 1], "evictions go on when shares are settled"
    assert evicted[-1] <= pods


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", sorted(CONFIGURATIONS))
def test_gangs_do_not_evict_each_other_for_ever(name: str, seed: int) -> None:
    prove_end(name, seed)


@pytest.mark.parametrize("name", sorted(CONFIGURATIONS))
def test_those_lives_are_about_evictions(name: str) -> None:
    assert any(lived(name, seed)[0][-1] for seed in range(2))


@pytest.mark.certify
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", sorted(CONFIGURATIONS))
def test_gangs_do_not_evict_each_other_in_thousands_of_rounds(name: str) -> None:
    for seed in range(100, 130):
        prove_end(name, seed)
