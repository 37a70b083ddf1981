"""No gang that has a reservation is delayed by one behind it, whatever comes and ends."""

import functools
from typing import Final

import pytest

from services.gang_planner.core.foresight.reservations import RESERVED
from tests.services.gang_planner.core.foresight.lives import Life, Manner
from tests.services.gang_planner.core.replayed import prove_replay

MANNERS: Final = {
    "plain": Manner(),
    "nodes of two sizes": Manner(mixed=True),
    "members above the minimum": Manner(extras=True, mixed=True),
    "three queues": Manner(queues=3),
    "priorities": Manner(priorities=3),
    "preemption": Manner(priorities=3, preempts=True),
    "gangs without a limit": Manner(endless=4),
}
#: Each gang gets a reservation, and nodes are lost: an instant may move then.
UNSETTLED: Final = {
    "conservative": Manner(reservations=100, mixed=True, extras=True, minutes=60),
    "losses": Manner(losses=True, queues=2, endless=4),
    "all": Manner(
        reservations=100,
        queues=3,
        priorities=3,
        preempts=True,
        mixed=True,
        extras=True,
        endless=6,
        losses=True,
        minutes=60,
    ),
}


@functools.cache
def lived(name: str, seed: int) -> Life:
    return Life({**MANNERS, **UNSETTLED}[name], seed).run()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", sorted(MANNERS))
def test_a_gang_starts_by_the_first_instant_that_was_reserved(name: str, seed: int) -> None:
    assert lived(name, seed).late() == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", sorted({**MANNERS, **UNSETTLED}))
def test_holds_and_evictions_are_bounded_and_a_replay_decides_the_same(
    name: str, seed: int
) -> None:
    life = lived(name, seed)
    assert life.unbounded_holds() == []
    assert life.evictions <= sum(len(pods) for pods in life.pods.values())
    prove_replay(life.scene)


@pytest.mark.parametrize("name", sorted({**MANNERS, **UNSETTLED}))
def test_those_lives_are_about_reservations(name: str) -> None:
    reserved = [
        gang
        for seed in range(2)
        for gang in lived(name, seed).gangs.values()
        if any(reason == RESERVED for _, reason in gang.notes)
    ]
    assert len(reserved) > 5


@pytest.mark.certify
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", ["members above the minimum", "nodes of two sizes", "plain", "priorities"]
)
def test_no_gang_is_delayed_in_many_lives(name: str) -> None:
    for seed in range(100, 120):
        life = Life(MANNERS[name], seed).run()
        assert life.late() == [], seed
        assert life.unbounded_holds() == [], seed
