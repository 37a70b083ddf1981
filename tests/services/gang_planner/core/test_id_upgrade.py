"""A planner of the present version takes over from one whose ids of owners' gangs were their UIDs
alone (ADR 0100): what is open stays open, and goes to no gang of another namespace.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from shared.contracts import annotations
from shared.contracts.decisions import EvictionDecision, NoteClosed, NoteOpened
from shared.contracts.identity import id_of_key
from shared.model.objects import Pod
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_node
from tests.services.gang_planner.core.test_forged_owners import (
    JOB,
    by_annotation,
    by_budget,
)

OLD, NEW = JOB.uid, id_of_key(("owner", "prod", JOB.uid))

RESTARTS = pytest.mark.parametrize("checkpoint", [True, False], ids=["checkpoint", "log"])
ORDERS = pytest.mark.parametrize("snapshot_first", [True, False], ids=["snapshot", "log first"])
DECLARED = pytest.mark.parametrize("declare", [by_budget, by_annotation])
Declare = Callable[..., list[Any]]


def before_the_upgrade(declare: Declare, *, nodes: int = 5, **fields: Any) -> LoggedScene:
    """Prod's gang of four, decided by a planner of the former version."""
    scene = LoggedScene(make_node(f"n{index}", None) for index in range(nodes))
    scene.put(*declare("prod", 4, 4, **fields))
    (decision,) = scene.settle()
    assert decision.gang_id == OLD
    return scene


def upgrade(scene: LoggedScene, *, checkpoint: bool, snapshot_first: bool) -> None:
    """Evil's pods come, which the snapshot has first; and a new planner takes over."""
    ours = scene.pods
    scene.pods = {}
    evil = by_annotation("evil", 3, 9)
    scene.pods.update({one.uid: one for one in evil}, **ours)
    scene.namespaced_ids = True
    scene.restart(checkpoint=checkpoint, snapshot_first=snapshot_first, verdicts=True)


def again(scene: LoggedScene) -> None:
    """Another planner of the present version takes over."""
    scene.settle()
    scene.restart(checkpoint=False)
    scene.settle()


def state_of(scene: LoggedScene, namespace: str) -> Any:
    (gang,) = [one for one in scene.state.gangs.gangs.values() if one.namespace == namespace]
    return gang


@ORDERS
@RESTARTS
@DECLARED
def test_a_decision_in_flight_is_not_made_again(
    declare: Declare, checkpoint: bool, snapshot_first: bool
) -> None:
    scene = before_the_upgrade(declare)
    upgrade(scene, checkpoint=checkpoint, snapshot_first=snapshot_first)
    assert scene.settle() == []
    assert len(scene.state.open) == 1
    scene.carry_out(phase="Running")
    again(scene)
    assert state_of(scene, "prod").history.has_started
    assert len(scene.decisions) == 1
    scene.step(after_ms=25_000)
    assert scene.verdicts[NEW].phase == "Running"


@ORDERS
@RESTARTS
@DECLARED
def test_a_started_gang_stays_started_and_its_hold_is_kept(
    declare: Declare, checkpoint: bool, snapshot_first: bool
) -> None:
    scene = before_the_upgrade(declare)
    scene.carry_out(phase="Pending")
    scene.settle()
    lost = scene.pods["prod-train-worker-0"]
    scene.change(lost.uid, phase="Failed", reason="Evicted")
    scene.settle()
    assert [hold.gang_id for hold in scene.holds()] == [OLD]
    (reserved,) = [hold.node for hold in scene.holds()]
    upgrade(scene, checkpoint=checkpoint, snapshot_first=snapshot_first)
    scene.settle()
    assert state_of(scene, "prod").history.has_started
    assert not state_of(scene, "evil").history.has_started
    assert [(one.gang_id, one.node) for one in scene.holds()] == [(NEW, reserved)]
    assert scene.verdicts[OLD].phase == "Gone"
    again(scene)
    assert [(one.gang_id, one.node) for one in scene.holds()] == [(NEW, reserved)]
    scene.put(msgspec.structs.replace(lost, uid="again", node="", phase="Pending"))
    (filled,) = scene.settle()
    assert [one.uid for one in filled.bindings] == ["again"]


@ORDERS
@RESTARTS
@DECLARED
def test_a_repair_keeps_its_deadline(
    declare: Declare, checkpoint: bool, snapshot_first: bool
) -> None:
    scene = before_the_upgrade(declare)
    scene.refuses = lambda one: one.uid == "prod-train-worker-3"
    scene.carry_out()
    scene.settle()
    scene.step(after_ms=2_000)
    opened = [one for _, one in scene.records if isinstance(one, NoteOpened)]
    assert {one.gang_id for one in opened} == {OLD}
    kinds = {one.kind: one.until_ms for one in opened}
    upgrade(scene, checkpoint=checkpoint, snapshot_first=snapshot_first)
    scene.settle()
    notes = state_of(scene, "prod").history.notes
    assert {note.kind: note.until_ms for note in notes} == kinds
    assert not state_of(scene, "evil").history.notes.any_open
    closed = [one for _, one in scene.records if isinstance(one, NoteClosed)]
    assert {(one.gang_id, one.reason) for one in closed} == {(OLD, "Renamed")}
    again(scene)
    assert {note.kind: note.until_ms for note in notes} == kinds


@ORDERS
@RESTARTS
def test_a_release_ends_as_it_began(checkpoint: bool, snapshot_first: bool) -> None:
    scene = before_the_upgrade(by_budget, settings=((annotations.START_DEADLINE_SECONDS, "5"),))
    scene.carry_out()
    scene.settle()
    scene.step(after_ms=6_000)
    scene.step()
    (release,) = scene.releases
    assert release.gang_id == OLD
    upgrade(scene, checkpoint=checkpoint, snapshot_first=snapshot_first)
    scene.settle()
    assert len(scene.releases) == 1
    assert state_of(scene, "prod").history.releasing
    scene.carry_out()
    scene.settle()
    again(scene)
    scene.step(after_ms=60_000)
    victims = {one.namespace for each in scene.releases for one in each.victims}
    assert victims == {"prod"}
    assert {pod.namespace for pod in scene.pods.values()} == {"evil"}


@ORDERS
@RESTARTS
def test_what_the_log_has_of_another_namespace_is_not_taken(
    checkpoint: bool, snapshot_first: bool
) -> None:
    """Prod's gang is gone; evil writes its UID into its own pods before the upgrade."""
    scene = before_the_upgrade(by_annotation)
    scene.carry_out(phase="Running")
    scene.settle()
    gone = [pod for pod in scene.pods.values() if isinstance(pod, Pod)]
    for pod in gone:
        del scene.pods[pod.uid]
    upgrade(scene, checkpoint=checkpoint, snapshot_first=snapshot_first)
    scene.settle()
    history = state_of(scene, "evil").history
    assert (history.has_started, history.attempt, list(history.notes)) == (False, 0, [])
    assert scene.holds() == []


def test_a_planner_that_follows_an_old_one_applies_the_old_ones_records() -> None:
    """In a rolling upgrade the standby may be the newer one."""
    scene = before_the_upgrade(by_budget)
    scene.restart(snapshot_first=True)
    scene.carry_out(phase="Running")
    scene.settle()
    assert state_of(scene, "prod").gang_id == OLD
    assert state_of(scene, "prod").history.has_started
    scene.namespaced_ids = True
    scene.decision_seq += 1
    scene.take_over(scene.planner)
    scene.settle()
    assert state_of(scene, "prod").gang_id == NEW
    assert state_of(scene, "prod").history.has_started
    assert not [one for _, one in scene.acts if isinstance(one, EvictionDecision)]
