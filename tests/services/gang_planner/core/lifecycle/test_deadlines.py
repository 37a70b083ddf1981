"""A gang that is placed and does not run, and one that has started and is not whole: informational
unless a deadline is set, released whole when it passes.
"""

from typing import Any

import pytest

from shared.contracts import annotations
from shared.contracts.decisions import GangDecision, NoteOpened
from shared.contracts.pending_reasons import PendingReason
from shared.model.objects import Queue
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.support.golden import Golden

FULL = make_shape({"cpu": 4000})
PULL = 'ImagePullBackOff: Back-off pulling image "nowhere/none"'


def placed(size: int = 3, *, nodes: int = 4, **group: Any) -> tuple[LoggedScene, GangDecision]:
    """A gang whose members are all placed and do not run yet."""
    scene = LoggedScene([make_node(f"n{i}") for i in range(nodes)])
    scene.put(make_group("a", size, **group), *make_pods("a", size, FULL))
    scene.step()
    scene.carry_out()
    scene.until_quiet()
    assert scene.verdict("a").phase == "Running"
    return scene, scene.decisions[0][1]


def set_to(key: str, seconds: int) -> tuple[tuple[str, str], ...]:
    return ((key, str(seconds)),)


def start_by(seconds: int) -> tuple[tuple[str, str], ...]:
    return set_to(annotations.START_DEADLINE_SECONDS, seconds)


def grace(seconds: int) -> tuple[tuple[str, str], ...]:
    return (
        (annotations.DEGRADED_GRACE_SECONDS, str(seconds)),
        (annotations.HOLD_SECONDS, "0"),
    )


def run(scene: LoggedScene, *names: str) -> None:
    for name in names:
        scene.change(name, phase="Running", waiting="")


def test_without_a_deadline_a_gang_that_never_runs_is_only_named_from_the_first_second(
    golden: Golden,
) -> None:
    scene, _ = placed()
    run(scene, "a-worker-0", "a-worker-2")
    scene.change("a-worker-1", waiting=PULL)
    scene.until_quiet(within_ms=1_000)
    why = scene.verdict("a").why
    assert why is not None
    assert why.reason == "NotStarting"
    golden(why.sentence)
    scene.until_quiet(within_ms=3_600_000)
    assert scene.releases == []
    run(scene, "a-worker-1")
    scene.until_quiet()
    assert scene.verdict("a").why is None


def test_a_gang_that_does_not_run_by_its_deadline_is_released_whole_and_queued_again(
    golden: Golden,
) -> None:
    scene, _ = placed(settings=start_by(20))
    pods = list(scene.pods.values())
    run(scene, "a-worker-0", "a-worker-2")
    scene.change("a-worker-1", waiting=PULL)
    scene.until_quiet(within_ms=19_999)
    assert scene.releases == []
    scene.until_quiet(within_ms=1)
    (release,) = scene.releases
    assert (release.reason, len(release.victims)) == ("StartDeadline", 3)
    golden(release.why)
    scene.carry_out()
    scene.until_quiet()
    scene.make_again(pods)
    scene.until_quiet(within_ms=500)
    assert len(scene.decisions) == 1, "it pauses"
    found = scene.verdict("a").why
    assert found is not None
    assert (found.reason, PULL in found.sentence) == ("StartDeadline", True)
    scene.until_quiet(within_ms=5_000)
    again = scene.decisions[-1][1]
    assert (again.quorum, again.preflight) == (3, True)


def test_a_gang_that_runs_in_time_is_left_alone_and_later_trouble_is_no_late_start() -> None:
    scene, _ = placed(settings=start_by(20))
    run(scene, "a-worker-0", "a-worker-1", "a-worker-2")
    scene.until_quiet(within_ms=5_000)
    assert scene.notes("start") == [("opened", "QuorumPlaced"), ("closed", "Running")]
    scene.remove(scene.pods["a-worker-1"])
    scene.put(*make_pods("a", 4, FULL)[3:])
    scene.until_quiet()
    scene.carry_out()
    scene.change("a-worker-3", waiting=PULL)
    scene.until_quiet(within_ms=120_000)
    assert scene.releases == []


def test_a_gang_that_runs_at_once_costs_no_note() -> None:
    scene = LoggedScene([make_node(f"n{i}") for i in range(4)])
    scene.put(make_group("a", 2, settings=start_by(20)), *make_pods("a", 2, FULL))
    scene.step()
    scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=60_000)
    assert not [one for _, one in scene.records if isinstance(one, NoteOpened)]


def test_extras_that_never_run_release_nothing() -> None:
    scene = LoggedScene([make_node(f"n{i}") for i in range(4)])
    scene.put(make_group("a", 2, settings=start_by(20)), *make_pods("a", 3, FULL))
    scene.step()
    scene.carry_out()
    scene.until_quiet()
    run(scene, "a-worker-0", "a-worker-2")
    scene.until_quiet(within_ms=60_000)
    assert scene.releases == []


def test_the_queue_gives_its_groups_a_deadline_and_a_group_may_switch_it_off() -> None:
    queue = Queue(uid="q", dialect="volcano", name="q", resource_version=1, settings=start_by(20))
    for own, released in (((), 1), (start_by(0), 0)):
        scene = LoggedScene([make_node(f"n{i}") for i in range(4)])
        scene.put(queue)
        scene.put(make_group("a", 2, queue="q", settings=own), *make_pods("a", 2, FULL))
        scene.step()
        scene.carry_out()
        scene.until_quiet(within_ms=21_000)
        assert len(scene.releases) == released


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_start_deadline_goes_on_through_restarts(checkpoint: bool) -> None:
    scene, _ = placed(settings=start_by(20))
    for _ in range(3):
        scene.until_quiet(within_ms=6_000)
        scene.restart(checkpoint=checkpoint)
    scene.until_quiet(within_ms=1_900)
    assert scene.releases == []
    scene.until_quiet(within_ms=200)
    assert len(scene.releases) == 1


def test_a_clock_set_back_does_not_put_a_start_deadline_off() -> None:
    scene, _ = placed(settings=start_by(20))
    scene.now_ms -= 3_600_000
    scene.until_quiet(within_ms=20_500)
    assert len(scene.releases) == 1


def degraded(**group: Any) -> LoggedScene:
    """A gang of 3 that lost a member which no controller makes again."""
    scene, _ = placed(**group)
    run(scene, "a-worker-0", "a-worker-1", "a-worker-2")
    scene.until_quiet()
    scene.remove(scene.pods["a-worker-1"])
    return scene


def test_without_a_grace_a_degraded_gang_stays() -> None:
    scene = degraded(settings=((annotations.HOLD_SECONDS, "0"),))
    scene.until_quiet(within_ms=3_600_000)
    assert scene.releases == []
    assert scene.verdict("a").phase == "Unknown"


def test_a_degraded_gang_is_released_after_its_grace(golden: Golden) -> None:
    scene = degraded(settings=grace(30))
    scene.until_quiet(within_ms=29_999)
    assert scene.releases == []
    scene.until_quiet(within_ms=1)
    (release,) = scene.releases
    assert (release.reason, len(release.victims)) == ("DegradedGrace", 2)
    golden(release.why)


def test_a_degraded_gang_that_is_restored_in_time_stays() -> None:
    scene = degraded(settings=grace(30))
    scene.until_quiet(within_ms=20_000)
    scene.put(*make_pods("a", 4, FULL)[3:])
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=60_000)
    assert scene.releases == []
    assert scene.notes("degraded") == [("opened", "BelowQuorum"), ("closed", "Restored")]


def test_the_grace_of_a_gang_ends_when_all_its_members_have_ended() -> None:
    scene, _ = placed(settings=grace(30))
    scene.change("a-worker-1", phase="Failed")
    scene.until_quiet(within_ms=10_000)
    for name in ("a-worker-0", "a-worker-2"):
        scene.change(name, phase="Succeeded")
    scene.until_quiet(within_ms=60_000)
    assert [what for what, _ in scene.notes("degraded")] == ["opened", "closed"]
    assert scene.verdict("a").phase == "Completed"


def test_while_room_is_held_for_the_lost_member_the_grace_does_not_run() -> None:
    scene = degraded(settings=set_to(annotations.DEGRADED_GRACE_SECONDS, 30))
    scene.until_quiet(within_ms=59_000)
    assert scene.notes("degraded") == []
    scene.until_quiet(within_ms=32_000)
    assert len(scene.releases) == 1


def test_while_a_lost_member_is_still_terminating_the_grace_does_not_run() -> None:
    scene, _ = placed(settings=set_to(annotations.DEGRADED_GRACE_SECONDS, 10))
    run(scene, "a-worker-0", "a-worker-1", "a-worker-2")
    scene.until_quiet()
    scene.change("a-worker-1", deleting=True)
    scene.until_quiet(within_ms=300_000)
    assert scene.notes("degraded") == []
    scene.remove(scene.pods["a-worker-1"])
    scene.until_quiet(within_ms=60_000)
    assert scene.notes("hold") == [("opened", "PodDeleted"), ("closed", "Expired")]
    scene.until_quiet(within_ms=10_000)
    (release,) = scene.releases
    assert release.reason == "DegradedGrace"


def test_a_member_that_terminates_on_a_dead_node_stops_no_grace() -> None:
    scene, decision = placed(settings=grace(10))
    run(scene, "a-worker-0", "a-worker-1", "a-worker-2")
    scene.change("a-worker-1", deleting=True)
    scene.until_quiet()
    scene.put(make_node(scene.where(decision)["a-worker-1"], ready=False, resource_version=2))
    scene.until_quiet(within_ms=19_999)
    assert scene.releases == []
    scene.until_quiet(within_ms=1)
    (release,) = scene.releases
    assert release.reason == "DegradedGrace"


def test_a_gang_released_from_running_opens_no_holds_and_starts_again_as_a_whole() -> None:
    scene = degraded(settings=grace(1))
    pods = list(scene.pods.values())
    scene.until_quiet(within_ms=1_000)
    scene.carry_out()
    scene.until_quiet()
    assert scene.holds() == []
    scene.make_again(pods)
    scene.until_quiet(within_ms=30_000)
    assert len(scene.decisions) == 1, "two of three are no quorum"
    scene.put(*make_pods("a", 5, FULL)[4:])
    scene.until_quiet(within_ms=30_000)
    assert scene.decisions[-1][1].quorum == 3


def test_a_gang_that_was_scaled_up_is_growing_and_neither_degraded_nor_released() -> None:
    scene, _ = placed(2, nodes=2, settings=grace(5))
    run(scene, "a-worker-0", "a-worker-1")
    scene.until_quiet()
    pods = make_pods("a", 4, FULL)
    scene.put(make_group("a", 4, resource_version=2, settings=grace(5)), *pods[2:])
    scene.until_quiet(within_ms=20_000)
    verdict = scene.verdict("a")
    assert verdict.phase == "Unknown"
    assert scene.condition("a", "Degraded") is None
    assert scene.releases == [], "it has lost nothing"
    assert verdict.why is not None
    assert verdict.why.reason == "NotEnoughResources"
    # A member lost while it grows is a member lost.
    scene.remove(*pods[1:])
    scene.until_quiet(within_ms=2_000)
    degraded = scene.condition("a", "Degraded")
    assert degraded is not None
    assert degraded.status == "True"


def late_gang(nodes: int) -> LoggedScene:
    """A gang of two with a placement deadline of a minute, on nodes that hold one pod each."""
    scene = LoggedScene([make_node(f"n{i}") for i in range(nodes)])
    settings = set_to(annotations.PLACEMENT_DEADLINE_SECONDS, 60)
    scene.put(make_group("a", 2, settings=settings), *make_pods("a", 2, FULL))
    scene.until_quiet(within_ms=50_000)
    return scene


def test_a_gang_without_a_placed_pod_at_its_placement_deadline_is_not_placed_any_more(
    golden: Golden,
) -> None:
    scene = late_gang(nodes=1)
    why = scene.verdict("a").why
    assert why is not None
    assert why.reason == PendingReason.NOT_ENOUGH_RESOURCES
    scene.restart(verdicts=True)
    scene.until_quiet(within_ms=20_000)
    why = scene.verdict("a").why
    assert why is not None
    assert why.reason == PendingReason.PLACEMENT_DEADLINE
    golden(why.sentence)
    scene.put(make_node("n1"))
    scene.until_quiet(within_ms=20_000)
    assert not scene.decisions


def test_a_placed_gang_has_no_placement_deadline() -> None:
    scene = late_gang(nodes=2)
    scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=120_000)
    assert (scene.verdict("a").phase, scene.verdict("a").why) == ("Running", None)
    scene.remove(scene.pods["a-worker-1"])
    scene.put(*make_pods("a", 3, FULL)[2:])
    scene.until_quiet()
    assert len(scene.decisions) == 2
