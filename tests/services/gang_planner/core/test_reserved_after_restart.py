"""A reservation of `minResources` outlives its planner, and a replay makes the same one."""

import random

import msgspec
import pytest

from shared.contracts.decisions import GangDecision
from shared.model.objects import PriorityClass
from tests.services.gang_planner.core.replayed import NODES, Recorded, prove_replay
from tests.services.gang_planner.core.scene import (
    GPU,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.story import Story
from tests.services.gang_planner.core.test_owed_after_restart import Killed

DRIVER = make_shape({"cpu": 100})
EXECUTOR = make_shape({"cpu": 500, GPU: 1})
OTHER = make_shape({GPU: 1})


def app(story: Story, name: str, executors: int = 4, important: str = "") -> None:
    whole = amounts(cpu=100 + 500 * executors, gpu=executors)
    story.put(make_group(name, 1, min_resources=whole, priority_class=important))
    story.put(*make_pods(name, 1, DRIVER, role="driver"))


@pytest.mark.parametrize("checkpoints", [False, True], ids=["from the log", "from a checkpoint"])
def test_every_prefix_of_the_log_leads_to_the_same_reservation(checkpoints: bool) -> None:
    story = Killed(make_node(f"node-{i}") for i in range(4))
    Killed.lives, story.checkpoints = 0, checkpoints
    app(story, "one")
    story.until_quiet()
    assert len(story.holds()) == 4
    story.carry_out(phase="Running")
    app(story, "two")
    story.until_quiet()
    for executor in make_pods("one", 3, EXECUTOR, role="executor"):
        story.put(executor)
        story.until_quiet()
        story.carry_out(phase="Running")
    # A node of the reservation dies, and another one comes.
    (unit,) = story.holds()
    story.remove(make_node(unit.node))
    story.until_quiet(within_ms=1_000)
    story.put(make_node("node-9"))
    story.until_quiet(within_ms=61_000)
    assert [one.node for one in story.holds() if one.reserving] == ["node-9"]
    story.until_quiet(within_ms=600_000)
    assert story.holds() == []
    assert ("closed", "Expired") in story.notes("hold")
    assert Killed.lives > 20


def test_a_planner_that_dies_right_after_the_decision_leaves_its_reservation_to_the_next() -> None:
    story = Story(make_node(f"node-{i}") for i in range(4))
    app(story, "one")
    story.until_quiet()
    end = next(
        number
        for number, (_, record) in enumerate(story.records, start=1)
        if isinstance(record, GangDecision)
    )
    story.records = story.records[:end]
    story.restart()
    story.carry_out(phase="Running")
    app(story, "two")
    story.until_quiet()
    assert [one.gang for _, one in story.decisions] == ["team/one"]
    assert len(story.holds()) == 4


@pytest.mark.parametrize("seed", range(8))
def test_applications_are_replayed_byte_for_byte(seed: int) -> None:
    prove_replay(live(seed))


def test_the_stories_are_about_reservations() -> None:
    stories = [live(seed) for seed in range(4)]
    decisions = [one for story in stories for _, one in story.decisions]
    assert sum(bool(one.reserves) for one in decisions) > 5
    assert sum(any("/" in uid for uid in one.fills) for one in decisions) > 2
    reasons = {reason for story in stories for kind, reason in story.notes("hold")}
    assert reasons >= {"Expired", "NotPlaced", "Filled"}


def live(seed: int) -> Recorded:
    """Applications come and grow, and lose pods and nodes."""
    chance = random.Random(seed)
    story = Recorded(NODES)
    story.put(PriorityClass(uid="pc", name="high", resource_version=1, value=9))
    for serial in range(80):
        story.now_ms += chance.choice([1, 200, 2_000, 20_000])
        _something_happens(story, chance, serial)
        if chance.random() < 0.7:
            story.until_quiet()
            story.carry_out(phase="Running")
    story.until_quiet(within_ms=700_000)
    return story


def _something_happens(story: Recorded, chance: random.Random, serial: int) -> None:
    pods = sorted(story.pods.values(), key=lambda one: one.uid)
    match chance.randrange(6):
        case 0 if len(pods) < 16:
            app(story, f"app{serial}", chance.randint(1, 5), chance.choice(["", "", "high"]))
        case 1 if len(pods) < 16:
            story.put(make_group(f"g{serial}", 2), *make_pods(f"g{serial}", 2, OTHER))
        case 2 | 3 if drivers := [one for one in pods if one.role == "driver" and one.node]:
            shape = chance.choice([EXECUTOR, EXECUTOR, OTHER])
            (pod,) = make_pods(chance.choice(drivers).group_name, 1, shape, role="executor")
            unique = f"{pod.uid}-{serial}"
            story.put(msgspec.structs.replace(pod, uid=unique, name=unique))
        case 4 if len(pods) > 4:
            pod = chance.choice(pods)
            if chance.random() < 0.3:
                story.change(pod.uid, phase=chance.choice(["Failed", "Succeeded"]))
            else:
                story.remove(pod)
        case _:
            node = chance.choice(NODES)
            if node.uid not in story.objects:
                story.put(node)
            elif chance.random() < 0.3:
                story.remove(node)
