"""A planner that starts from the log has the holds of the one before it, wherever the log was cut.

The scene below is played once. After every cycle the planner is killed at each record of that
cycle, and another one starts from what is in the log by then.
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
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import GPU, make_group, make_node, make_pods, make_shape

WORKER = make_shape({GPU: 1})
OTHER = make_shape({GPU: 1, "cpu": 100})


def replacements(scene: LoggedScene) -> dict[str, tuple[Any, ...]]:
    return {
        hold.uid: (
            *(hold.gang_id, hold.role, hold.shape.encoded, hold.reason, hold.node),
            *(hold.at_ms, hold.until_ms, hold.message, hold.lost_on),
        )
        for hold in scene.holds()
    }


class Killed(LoggedScene):
    """A scene whose planner is killed after every record, in another life."""

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
        validate(other.planner)
        if whole:
            assert replacements(other) == replacements(self)
            failed_on = {
                key: list(gang.history.failed_on)
                for key, gang in state_of(self.planner).gangs.gangs.items()
                if gang.history.failed_on
            }
            for key, nodes in failed_on.items():
                assert list(other.state.gangs.gangs[key].history.failed_on) == nodes
        filled = {
            uid
            for _, record in self.records[:end]
            if isinstance(record, GangDecision)
            for uid in record.fills
        }
        LoggedScene.step(other)
        assert not filled & set(replacements(other)), "room is held that a decision has given"

    def another_life(self, end: int) -> LoggedScene:
        """The same world, with a log that ends at record `end`."""
        other = LoggedScene(conf="")
        for name, value in vars(self).items():
            if name != "planner":
                setattr(other, name, copy.copy(value))
        other.records = self.records[:end]
        if self.checkpoints:
            other.planner = self.planner
        return other


@pytest.mark.parametrize("checkpoints", [False, True], ids=["from the log", "from a checkpoint"])
def test_every_prefix_of_the_log_leads_to_the_same_holds(checkpoints: bool) -> None:
    scene = Killed(make_node(f"node-{i}") for i in range(4))
    Killed.lives, scene.checkpoints = 0, checkpoints
    scene.put(make_group("job", 4), *make_pods("job", 4, WORKER))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    scene.put(make_group("rival", 1), *make_pods("rival", 1, WORKER))
    scene.until_quiet()

    # Two are lost at once, in two ways, and one of them comes back at once in another shape.
    scene.change("job-worker-0", phase="Failed")
    scene.change("job-worker-1", deleting=True, disrupted=True)
    scene.until_quiet()
    scene.remove(scene.pods["job-worker-1"])
    scene.until_quiet(within_ms=1_000)
    scene.remove(scene.pods["job-worker-0"])
    (again,) = make_pods("job", 1, OTHER)
    scene.put(msgspec.structs.replace(again, uid="job-worker-0-again"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()

    # A more important gang takes what is held; a node more lets it be held there.
    scene.put(
        PriorityClass(uid="pc", name="high", resource_version=1, value=9),
        make_group("urgent", 1, priority_class="high"),
        *make_pods("urgent", 1, WORKER),
    )
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.put(make_node("node-9"))
    scene.until_quiet()

    # A node dies, and the first hold expires.
    scene.remove(make_node("node-2"))
    scene.until_quiet(within_ms=61_000)
    assert scene.notes("hold").count(("closed", "Filled")) == 1
    assert ("closed", "Expired") in scene.notes("hold")
    assert ("opened", "NodeLost") in scene.notes("hold")
    assert Killed.lives > 20


def test_a_planner_that_finds_a_filled_hold_open_in_the_log_closes_it_once() -> None:
    scene = LoggedScene(make_node(f"node-{i}") for i in range(2))
    scene.put(make_group("job", 2), *make_pods("job", 2, WORKER))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    scene.change("job-worker-0", phase="Failed")
    scene.until_quiet()
    scene.remove(scene.pods["job-worker-0"])
    (again,) = make_pods("job", 1, WORKER)
    scene.put(msgspec.structs.replace(again, uid="job-worker-0-again"))
    scene.until_quiet()
    end = next(
        number
        for number, (_, record) in enumerate(scene.records, start=1)
        if isinstance(record, GangDecision) and record.fills
    )

    # The planner died between the decision and the note of the hold's end.
    scene.records = scene.records[:end]
    scene.restart()
    assert scene.notes("hold") == [("opened", "PodFailed")]
    scene.until_quiet()
    assert scene.notes("hold") == [("opened", "PodFailed"), ("closed", "Filled")]

    # The next planner reads the note, and has nothing to say.
    scene.restart()
    scene.until_quiet()
    assert scene.notes("hold") == [("opened", "PodFailed"), ("closed", "Filled")]


@pytest.mark.parametrize("snapshot_first", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("known_before", [False, True])
def test_held_room_keeps_others_away_as_the_lost_pod_did(
    known_before: bool, restarted: bool, snapshot_first: bool
) -> None:
    """Its successor will have its labels: a pod that avoids it must avoid its room, too,
    whether that was asked before the pod was lost or later, by the same planner or the next one.
    """
    scene = LoggedScene([make_node("n0", labels=(("hostname", "n0"),))])
    labelled: dict[str, Any] = {"labels": msgspec.msgpack.encode([("app", "db")])}
    scene.put(
        make_group("db", 2),
        *make_pods("db", 1, make_shape({"cpu": 2000}), role="store", **labelled),
        *make_pods("db", 1, make_shape({"cpu": 100}), role="proxy"),
    )
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
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
        scene.put(make_group("first", 1), *make_pods("first", 1, shy))
        scene.until_quiet()
    scene.change("db-store-0", phase="Failed")
    scene.until_quiet()
    assert [one.node for one in scene.holds()] == ["n0"]
    if restarted:
        scene.restart(snapshot_first=snapshot_first)
    scene.put(make_group("other", 1), *make_pods("other", 1, shy))
    scene.until_quiet()
    assert [one.gang for _, one in scene.decisions if one.gang != "team/db"] == []
    scene.until_quiet(within_ms=600_000)
    assert [one.gang for _, one in scene.decisions if one.gang != "team/db"] != []
