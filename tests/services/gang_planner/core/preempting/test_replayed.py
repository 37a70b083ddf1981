"""Random lives of gangs that evict each other: what holds after every step, and replays of them
byte for byte.
"""

import random
from typing import Any

import pytest
from typing_extensions import override

from shared.contracts import codec
from shared.contracts.decisions import EvictionDecision, GangDecision
from tests.services.gang_planner.core.preempting.crowd import (
    WHOLE_GANGS,
    accept,
    ends,
    evictions,
    leave,
    refuse,
    submit,
)
from tests.services.gang_planner.core.scene import make_node, make_shape
from tests.services.gang_planner.core.story import Story

NODES = [make_node(f"n{i:02d}") for i in range(5)]
SEEDS = range(6)


class Recorded(Story):
    """A story that keeps the records of CLUSTER as a standby does."""

    def __init__(self) -> None:
        self.cluster: list[tuple[int, Any]] = []
        super().__init__(NODES, conf=WHOLE_GANGS)

    @override
    def _apply(self, record: Any) -> None:
        super()._apply(record)
        self.cluster.append((self.cluster_seq, record))


def lived(seed: int) -> Recorded:
    """Gangs come and go, victims leave, budgets refuse, pods fail; each step checks all
    invariants.
    """
    chance = random.Random(seed)
    story = Recorded()
    for number in range(40):
        match chance.randrange(8):
            case 0 | 1 | 2:
                size = chance.randint(1, 4)
                submit(
                    story,
                    f"g{number}",
                    size,
                    minimum=chance.randint(0, size),
                    priority=chance.randint(0, 3),
                    shape=make_shape({"cpu": chance.choice([1000, 2000, 4000])}),
                )
            case 3:
                open_ones = [
                    one
                    for seq, one in story.acts
                    if seq not in story.done and isinstance(one, EvictionDecision)
                ]
                if open_ones:
                    refuse(story, {open_ones[0].victims[0].uid})
            case 4 | 5:
                accept(story)
                story.step(after_ms=100)
                leave(story)
            case 6:
                story.carry_out(phase="Running")
            case _:
                bound = sorted(uid for uid, pod in story.pods.items() if pod.node)
                if bound:
                    story.change(chance.choice(bound), phase="Succeeded")
        story.until_quiet(within_ms=chance.choice([0, 500, 5_000]))
    return story


def prove_replay(story: Recorded) -> None:
    """Run only the cycles that wrote something, on a new planner; they write it again."""
    planner = Story(NODES, conf=WHOLE_GANGS).planner
    cluster, outcomes = list(story.cluster), list(story.outcomes)
    waiting: list[Any] = []
    for seq, record in story.records:
        cycle = record.cycle
        assert cycle is not None
        if not waiting:
            while cluster and cluster[0][0] <= cycle.cluster_seq:
                planner.apply_cluster(*cluster.pop(0))
            while outcomes and outcomes[0][0] <= cycle.outcomes_seq:
                planner.apply_outcome(*outcomes.pop(0))
            step = planner.step(cycle.now_ms)
            waiting = [*step.decisions, *step.notes]
        assert waiting, f"nothing was decided where the log has {record}"
        again = waiting.pop(0)
        planner.decided(seq, again)
        assert codec.encode(again) == codec.encode(record)
    planner.validate()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cycles_that_wrote_something_write_it_again(seed: int) -> None:
    prove_replay(lived(seed))


def test_the_lives_are_about_evictions_of_every_kind() -> None:
    stories = [lived(seed) for seed in SEEDS]
    found = {reason for story in stories for reason in ends(story)}
    assert "EvictionRefused" in found
    taken_over = [
        one
        for story in stories
        for _, one in story.acts
        if isinstance(one, GangDecision) and one.preemption
    ]
    assert len(taken_over) >= 5
    assert sum(len(evictions(story)) for story in stories) >= 15
