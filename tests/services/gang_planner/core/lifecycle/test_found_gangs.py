"""Bound members that a planner without a log finds: a gang that was never complete is completed or
released, one that may have started is left alone.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from shared.contracts.decisions import GangStarted
from shared.model.objects import Pod
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

FULL = make_shape({"cpu": 4000})
CREATED_MS = 1_000
BOUND_MS = 3_000
REFUSED = "a-worker-2"


def lose_log(scene: LoggedScene) -> None:
    """NATS loses its storage: another planner starts from the cluster alone."""
    scene.records.clear()
    scene.outcomes.clear()
    scene.done.clear()
    scene.decision_seq = scene.outcome_seq = 0
    scene.restart()


def bound(pod: Pod, at: int, **fields: Any) -> Pod:
    """The pod on a node, by a decision of a lost log."""
    given = {"node": f"n{at:02d}", "decision_seq": 74, "scheduled_ms": BOUND_MS, "phase": "Running"}
    return msgspec.structs.replace(pod, **(given | fields))


def counts_as_started(scene: LoggedScene) -> bool:
    return any(isinstance(one, GangStarted) for _, one in scene.records)


def found(change: Callable[[list[Pod]], None] | None = None, *, phase: str = "") -> LoggedScene:
    """A gang of three with two bound members, found without a log. Its third member is refused."""
    scene = LoggedScene([make_node(f"n{at:02d}") for at in range(4)])
    scene.refuses = lambda binding: binding.name == REFUSED
    first, second, third = make_pods("a", 3, FULL, created_ms=CREATED_MS)
    pods = [bound(first, 0), bound(second, 1), third]
    if change is not None:
        change(pods)
    scene.put(make_group("a", 3, phase=phase), *pods)
    lose_log(scene)
    scene.until_quiet()
    return scene


def test_a_release_that_is_lost_in_the_instant_in_which_it_is_decided_is_decided_again() -> None:
    """Seed 153 of the simulation: a policy refused the third member, and the record of the release
    was lost with all records. The gang counted as started, and stayed partly bound as long as the
    policy was in force.
    """
    scene = LoggedScene([make_node(f"n{at:02d}") for at in range(4)])
    scene.refuses = lambda binding: binding.name == REFUSED
    scene.put(make_group("a", 3), *make_pods("a", 3, FULL, created_ms=CREATED_MS))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert len(scene.releases) == 1
    for pod in [one for one in scene.pods.values() if one.node]:
        scene.change(pod.uid, decision_seq=2, scheduled_ms=BOUND_MS)
    lose_log(scene)
    scene.until_quiet()
    assert not counts_as_started(scene)
    scene.carry_out(phase="Running")
    scene.until_quiet()
    (release,) = scene.releases
    assert (release.reason, len(release.victims)) == ("BindingRefused", 2)


def test_a_gang_that_was_never_complete_is_completed_by_its_second_attempt() -> None:
    scene = found()
    assert not counts_as_started(scene)
    (decision,) = [one for _, one in scene.decisions]
    assert decision.attempt == 2
    assert {one.name for one in decision.bindings} == {REFUSED}


def test_without_capacity_for_the_rest_it_is_released_at_its_deadline() -> None:
    scene = LoggedScene([make_node(f"n{at:02d}") for at in range(2)])
    first, second, third = make_pods("a", 3, FULL, created_ms=CREATED_MS)
    scene.put(make_group("a", 3), bound(first, 0), bound(second, 1), third)
    lose_log(scene)
    scene.until_quiet(within_ms=29_000)
    assert scene.notes("repair") == [("opened", "QuorumNotPlaced")]
    assert scene.releases == []
    scene.until_quiet(within_ms=3_000)
    (release,) = scene.releases
    assert (release.reason, len(release.victims)) == ("RepairDeadline", 2)


def test_another_planner_that_takes_over_continues_its_repair() -> None:
    scene = LoggedScene([make_node(f"n{at:02d}") for at in range(2)])
    first, second, third = make_pods("a", 3, FULL, created_ms=CREATED_MS)
    scene.put(make_group("a", 3), bound(first, 0), bound(second, 1), third)
    lose_log(scene)
    scene.until_quiet(within_ms=10_000)
    scene.restart(checkpoint=True)
    scene.until_quiet(within_ms=22_000)
    assert len(scene.releases) == 1


def test_a_member_that_was_lost_during_the_start_is_no_sign_of_a_start() -> None:
    """Seed 183 of the simulation. The refused member exists since the first binding, so its gang
    was never complete, although the lost member's successor is younger.
    """

    def one_is_made_again(pods: list[Pod]) -> None:
        pods[1] = msgspec.structs.replace(
            pods[1], node="", phase="Pending", decision_seq=0, created_ms=BOUND_MS + 1_000
        )

    assert not counts_as_started(found(one_is_made_again))


def another_scheduler_bound_one(pods: list[Pod]) -> None:
    pods[0] = msgspec.structs.replace(pods[0], decision_seq=0)


def one_was_created_later(pods: list[Pod]) -> None:
    pods[2] = msgspec.structs.replace(pods[2], created_ms=BOUND_MS + 1_000)


def one_has_failed(pods: list[Pod]) -> None:
    pods.append(bound(make_pods("a", 4, FULL)[3], 2, phase="Failed"))


def one_is_being_deleted(pods: list[Pod]) -> None:
    pods.append(bound(make_pods("a", 4, FULL)[3], 2, deleting=True))


def one_does_not_exist(pods: list[Pod]) -> None:
    pods.pop()


def bound_at_an_unknown_time(pods: list[Pod]) -> None:
    pods[1] = msgspec.structs.replace(pods[1], scheduled_ms=0)


@pytest.mark.parametrize(
    "change",
    [
        another_scheduler_bound_one,
        one_was_created_later,
        one_has_failed,
        one_is_being_deleted,
        one_does_not_exist,
        bound_at_an_unknown_time,
    ],
)
def test_a_gang_that_may_have_been_complete_counts_as_started(
    change: Callable[[list[Pod]], None],
) -> None:
    scene = found(change)
    assert counts_as_started(scene)
    scene.until_quiet(within_ms=60_000)
    assert scene.releases == []


@pytest.mark.parametrize("phase", ["Running", "Unknown", "Completed"])
def test_a_group_whose_status_shows_a_start_counts_as_started(phase: str) -> None:
    assert counts_as_started(found(phase=phase))


def test_a_gang_whose_release_was_half_carried_out_is_released_entirely() -> None:
    """The controller has created a deleted member again, and the binder has marked the other."""

    def half_released(pods: list[Pod]) -> None:
        one_was_created_later(pods)
        pods[0] = msgspec.structs.replace(pods[0], disrupted=True, released=True)

    scene = found(half_released, phase="Running")
    assert not counts_as_started(scene)
    scene.carry_out()
    scene.until_quiet()
    assert len(scene.releases) == 1
