"""The steps of a release and of a repair, and what their records and notes contain."""

from collections.abc import Iterable

import pytest

from shared.contracts import annotations
from shared.contracts.decisions import EvictionDecision, Note, NoteOpened
from tests.services.gang_planner.core.lifecycle import test_deadlines as deadlines
from tests.services.gang_planner.core.lifecycle.gang_lives import (
    cluster,
    fail,
    failed,
    half_bound,
    submit,
)
from tests.services.gang_planner.core.lifecycle.test_repair import foreign
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group


def refused_in_part() -> LoggedScene:
    """A gang of two, one of which is bound, and the other is refused."""
    scene = cluster()
    fail(scene, failed(half_bound(scene), result="refused"))
    return scene


def opened(notes: Iterable[Note]) -> list[str]:
    return [one.kind for one in notes if isinstance(one, NoteOpened)]


def test_no_pod_is_deleted_before_the_note_of_the_release_is_in_the_log() -> None:
    scene = refused_in_part()
    begun = scene.step()
    assert (opened(begun.notes), begun.decisions) == (["release"], [])
    (decision,) = scene.step().decisions
    assert isinstance(decision, EvictionDecision)


def test_a_gang_that_is_assessed_twice_in_a_cycle_is_released_once() -> None:
    scene = refused_in_part()
    scene.step()
    # A new object: the notes are written again, and the gang is assessed again.
    scene.remove(make_group("a", 2))
    scene.put(make_group("a", 2, uid="group-a-2"))
    assert len(scene.step().decisions) == 1


def test_a_release_closes_the_deadline_that_began_it_and_opens_no_other() -> None:
    settings = deadlines.grace(30) + deadlines.start_by(20)
    scene, _ = deadlines.placed(settings=settings)
    scene.until_quiet(within_ms=15_000)
    scene.remove(scene.pods["a-worker-1"])
    scene.until_quiet(within_ms=5_000)
    (release,) = scene.releases
    assert release.reason == "StartDeadline"
    assert scene.notes("start") == [("opened", "QuorumPlaced"), ("closed", "Released")]
    assert scene.notes("degraded") == [("opened", "BelowQuorum"), ("closed", "Released")]


def test_a_release_that_has_ended_keeps_no_decisions() -> None:
    scene = refused_in_part()
    scene.until_quiet()
    scene.carry_out()
    scene.until_quiet()
    assert scene.notes("release")[-1] == ("closed", "Released")
    assert scene.state.evictions == {}


def test_pauses_begin_again_with_the_start_of_a_gang_whose_extra_member_waits() -> None:
    scene = cluster(9)
    submit(scene, 3, minimum=2)
    scene.step()
    for _ in range(3):
        decision = scene.decisions[-1][1]
        fail(scene, *(failed(decision, index) for index in range(3)))
        scene.until_quiet(within_ms=10_000)
    decision = scene.decisions[-1][1]
    for one in decision.bindings[:2]:
        scene.change(one.uid, node=one.node, phase="Running")
    for _ in range(2):
        fail(scene, failed(scene.decisions[-1][1]))
        scene.until_quiet(within_ms=70_000)
    pauses = [
        one.until_ms - one.at_ms
        for _, one in scene.records
        if isinstance(one, NoteOpened) and one.kind == "backoff"
    ]
    assert pauses == [1_000, 2_000, 4_000, 1_000]


def test_a_repair_without_time_left_ends_when_its_note_is_in_the_log() -> None:
    scene = cluster()
    half_bound(scene)
    at_once = ((annotations.REPAIR_DEADLINE_SECONDS, "1"),)
    scene.put(make_group("a", 2, settings=at_once, resource_version=2))
    scene.step()
    assert opened(scene.step(after_ms=2_000).notes) == ["repair"]
    assert opened(scene.step().notes) == ["release"]


@pytest.mark.parametrize("restarts", [False, True])
def test_gangs_whose_repairs_block_each_other_are_released_one_by_one(restarts: bool) -> None:
    scene = cluster(6)
    for name in "abc":
        half_bound(scene, name)
    for seq, decision in scene.decisions:
        scene.put(foreign(decision.bindings[-1].node))
        scene.answer(seq, decision, [failed(decision)])
    scene.until_quiet(within_ms=2_000)
    if restarts:
        scene.restart()
    # The pod of the first one terminates for a while.
    scene.until_quiet(within_ms=5_000)
    assert [one.gang for one in scene.releases] == ["team/c"]
    scene.carry_out()
    scene.until_quiet()
    scene.carry_out()
    scene.until_quiet(within_ms=5_000)
    assert (scene.verdict("a").phase, len(scene.releases)) == ("Running", 1)
