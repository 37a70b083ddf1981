"""A planner that starts from the log owes what the one before it owed, wherever the log was cut.

The story below is told once. After every cycle the planner is killed at each record of that cycle,
and another one starts from what is in the log by then.
"""

import copy
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from services.gang_planner.core.cycle import Step
from shared.contracts.decisions import GangDecision
from shared.model.objects import PriorityClass
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector
from tests.services.gang_planner.core.scene import GPU, make_group, make_node, make_pods, make_shape
from tests.services.gang_planner.core.story import Story

WORKER = make_shape({GPU: 1})
OTHER = make_shape({GPU: 1, "cpu": 100})


def replacements(story: Story) -> dict[str, tuple[Any, ...]]:
    return {
        hold.uid: (
            *(hold.gang_id, hold.role, hold.shape.encoded, hold.reason, hold.node),
            *(hold.at_ms, hold.until_ms, hold.message, hold.lost_on),
        )
        for hold in story.holds()
    }


class Killed(Story):
    """A story whose planner is killed after every record, in another life."""

    checkpoints = False
    lives = 0

    @override
    def step(self, *, after_ms: int = 0, fresh: bool = True) -> Step:
        before = len(self.records)
        step = super().step(after_ms=after_ms, fresh=fresh)
        for end in range(before, len(self.records) + 1):
            self.live_on(end, whole=end == len(self.records))
        return step

    def live_on(self, end: int, *, whole: bool) -> None:
        Killed.lives += 1
        other = self.another_life(end)
        other.restart(checkpoint=self.checkpoints and whole)
        other.planner.validate()
        if whole:
            assert replacements(other) == replacements(self)
            failed_on = {
                key: list(gang.history.failed_on)
                for key, gang in self.planner._state.gangs.gangs.items()
                if gang.history.failed_on
            }
            for key, nodes in failed_on.items():
                assert list(other.planner._state.gangs.gangs[key].history.failed_on) == nodes
        filled = {
            uid
            for _, record in self.records[:end]
            if isinstance(record, GangDecision)
            for uid in record.fills
        }
        Story.step(other)
        assert not filled & set(replacements(other)), "room is owed that a decision has given"

    def another_life(self, end: int) -> Story:
        """The same world, with a log that ends at record `end`."""
        other = Story(conf="")
        for name, value in vars(self).items():
            if name != "planner":
                setattr(other, name, copy.copy(value))
        other.records = self.records[:end]
        if self.checkpoints:
            other.planner = self.planner
        return other


@pytest.mark.parametrize("checkpoints", [False, True], ids=["from the log", "from a checkpoint"])
def test_every_prefix_of_the_log_leads_to_the_same_holds(checkpoints: bool) -> None:
    story = Killed(make_node(f"node-{i}") for i in range(4))
    Killed.lives, story.checkpoints = 0, checkpoints
    story.put(make_group("job", 4), *make_pods("job", 4, WORKER))
    story.until_quiet()
    story.carry_out(phase="Running")
    story.until_quiet()
    story.put(make_group("rival", 1), *make_pods("rival", 1, WORKER))
    story.until_quiet()

    # Two are lost at once, in two ways, and one of them comes back at once in another shape.
    story.change("job-worker-0", phase="Failed")
    story.change("job-worker-1", deleting=True, disrupted=True)
    story.until_quiet()
    story.remove(story.pods["job-worker-1"])
    story.until_quiet(within_ms=1_000)
    story.remove(story.pods["job-worker-0"])
    (again,) = make_pods("job", 1, OTHER)
    story.put(msgspec.structs.replace(again, uid="job-worker-0-again"))
    story.until_quiet()
    story.carry_out(phase="Running")
    story.until_quiet()

    # Somebody more important takes what is held; a node more lets it be held there.
    story.put(
        PriorityClass(uid="pc", name="high", resource_version=1, value=9),
        make_group("urgent", 1, priority_class="high"),
        *make_pods("urgent", 1, WORKER),
    )
    story.until_quiet()
    story.carry_out(phase="Running")
    story.put(make_node("node-9"))
    story.until_quiet()

    # A node dies, and the first hold expires.
    story.remove(make_node("node-2"))
    story.until_quiet(within_ms=61_000)
    assert story.notes("hold").count(("closed", "Filled")) == 1
    assert ("closed", "Expired") in story.notes("hold")
    assert ("opened", "NodeLost") in story.notes("hold")
    assert Killed.lives > 20


def test_who_finds_a_hold_filled_and_not_closed_in_the_log_closes_it_once() -> None:
    story = Story(make_node(f"node-{i}") for i in range(2))
    story.put(make_group("job", 2), *make_pods("job", 2, WORKER))
    story.until_quiet()
    story.carry_out(phase="Running")
    story.until_quiet()
    story.change("job-worker-0", phase="Failed")
    story.until_quiet()
    story.remove(story.pods["job-worker-0"])
    (again,) = make_pods("job", 1, WORKER)
    story.put(msgspec.structs.replace(again, uid="job-worker-0-again"))
    story.until_quiet()
    end = next(
        number
        for number, (_, record) in enumerate(story.records, start=1)
        if isinstance(record, GangDecision) and record.fills
    )

    # The planner died between the decision and the note of the hold's end.
    story.records = story.records[:end]
    story.restart()
    assert story.notes("hold") == [("opened", "PodFailed")]
    story.until_quiet()
    assert story.notes("hold") == [("opened", "PodFailed"), ("closed", "Filled")]

    # The next planner reads the note, and has nothing to say.
    story.restart()
    story.until_quiet()
    assert story.notes("hold") == [("opened", "PodFailed"), ("closed", "Filled")]


@pytest.mark.parametrize("picture_first", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("known_before", [False, True])
def test_held_room_keeps_others_away_as_the_lost_pod_did(
    known_before: bool, restarted: bool, picture_first: bool
) -> None:
    """Its successor will have its labels: who must not be beside it must not be beside its room,
    whether that was asked before the pod was lost or later, by the same planner or the next one.
    """
    story = Story([make_node("n0", labels=(("hostname", "n0"),))])
    labelled: dict[str, Any] = {"labels": msgspec.msgpack.encode([("app", "db")])}
    story.put(
        make_group("db", 2),
        *make_pods("db", 1, make_shape({"cpu": 2000}), role="store", **labelled),
        *make_pods("db", 1, make_shape({"cpu": 100}), role="proxy"),
    )
    story.until_quiet()
    story.carry_out(phase="Running")
    story.until_quiet()
    away = PodAffinity(
        anti_affinity=(
            PodTerm(
                selector=Selector(
                    requirements=(Requirement(key="app", operator="In", values=("db",)),)
                ),
                namespaces=("team",),
                topology_key="hostname",
            ),
        )
    )
    shy = make_shape({"cpu": 1500}, pod_affinity=away)
    if known_before:
        story.put(make_group("first", 1), *make_pods("first", 1, shy))
        story.until_quiet()
    story.change("db-store-0", phase="Failed")
    story.until_quiet()
    assert [one.node for one in story.holds()] == ["n0"]
    if restarted:
        story.restart(picture_first=picture_first)
    story.put(make_group("other", 1), *make_pods("other", 1, shy))
    story.until_quiet()
    assert [one.gang for _, one in story.decisions if one.gang != "team/db"] == []
    story.until_quiet(within_ms=600_000)
    assert [one.gang for _, one in story.decisions if one.gang != "team/db"] != []
