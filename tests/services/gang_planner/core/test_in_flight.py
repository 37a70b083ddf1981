"""While as many pods are in flight as may be, the next gang waits: for binders, and for no gang
that comes behind it.
"""

import msgspec
import pytest

from services.gang_planner.core.state.in_flight import UNANSWERED_MS
from shared.contracts.decisions import GangDecision
from shared.model.objects import PriorityClass
from tests.services.gang_planner.core.claims import hosts, make_claim, make_class, members
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

SMALL = make_shape({"cpu": 100})
WHOLE_NODE = make_shape({GPU: 1})
SPAN_MS = 20_000


def a_scene(in_flight_max: int) -> Scene:
    scene = Scene([make_node(f"n{one}") for one in range(4)])
    scene.in_flight_max = in_flight_max
    scene.put(PriorityClass(uid="pc", name="urgent", resource_version=1, value=9))
    return scene


def submit(scene: Scene, name: str, size: int, shape: bytes = SMALL, priority: str = "") -> None:
    scene.now_ms += 1
    created_ms = scene.now_ms
    scene.put(
        make_group(name, size, priority_class=priority, created_ms=created_ms),
        *make_pods(name, size, shape),
    )


def names(decisions: list[GangDecision]) -> list[str]:
    return [one.gang.partition("/")[2] for one in decisions]


def test_gangs_are_decided_whole_and_in_order_as_far_as_the_bound_goes() -> None:
    scene = a_scene(10)
    for name in "abcd":
        submit(scene, name, 4)
    first, second = scene.settle()
    assert names([first, second]) == ["a", "b"]
    scene.outcome(first)
    assert names(scene.settle()) == ["c"]
    scene.bind(second)
    assert names(scene.settle()) == ["d"]


def test_a_pod_that_is_seen_bound_is_no_longer_under_way_though_its_gang_is_not_answered() -> None:
    scene = a_scene(8)
    for name in "ab":
        submit(scene, name, 6)
    (first,) = scene.settle()
    scene.bind(first, only=3)
    assert scene.settle() == []
    scene.bind(first, only=4)
    assert names(scene.settle()) == ["b"]


def test_a_gang_larger_than_the_bound_goes_alone() -> None:
    scene = a_scene(4)
    submit(scene, "first", 2)
    submit(scene, "giant", 9)
    submit(scene, "last", 2)
    (first,) = scene.settle()
    assert names([first]) == ["first"]
    scene.outcome(first)
    (giant,) = scene.settle()
    assert names([giant]) == ["giant"]
    scene.outcome(giant)
    assert names(scene.settle()) == ["last"]


def test_no_smaller_gang_passes_a_gang_that_waits_for_binders() -> None:
    scene = a_scene(8)
    submit(scene, "first", 6)
    submit(scene, "next", 4)
    submit(scene, "tiny", 1)
    submit(scene, "idle", 1, make_shape())
    (first,) = scene.settle()
    scene.outcome(first)
    assert names(scene.settle()) == ["next", "tiny", "idle"]


def test_an_urgent_gang_that_comes_later_goes_before_those_that_wait() -> None:
    scene = a_scene(8)
    for number in range(6):
        submit(scene, f"g{number}", 8)
    (first,) = scene.settle()
    submit(scene, "urgent", 4, priority="urgent")
    scene.outcome(first)
    assert names(scene.settle()) == ["urgent"]


def test_a_gang_that_would_not_fit_anyway_is_in_nobodys_way() -> None:
    scene = a_scene(8)
    submit(scene, "first", 6)
    submit(scene, "hopeless", 5, WHOLE_NODE)
    submit(scene, "small", 2)
    assert names(scene.settle()) == ["first", "small"]
    why = scene.verdict("hopeless").why
    assert why is not None
    assert why.reason == "NotEnoughResources"


def test_a_gang_that_waits_long_for_binders_gets_a_verdict_that_says_so(golden: Golden) -> None:
    scene = a_scene(4)
    submit(scene, "a", 4)
    submit(scene, "b", 4)
    scene.settle()
    decided_ms = scene.now_ms
    assert scene.wakeup_ms == decided_ms + SPAN_MS
    scene.step(after_ms=SPAN_MS - 1)
    assert scene.published == []
    scene.step(after_ms=1)
    why = scene.verdict("b").why
    assert why is not None
    assert why.reason == "BindingThrottled"
    golden(why.sentence)
    published = len(scene.published)
    scene.step(after_ms=SPAN_MS)
    assert len(scene.published) == published


def test_a_verdict_that_a_gang_waits_is_corrected_when_the_gang_is_decided() -> None:
    scene = a_scene(4)
    submit(scene, "a", 4)
    submit(scene, "b", 4)
    (first,) = scene.settle()
    scene.step(after_ms=SPAN_MS)
    scene.outcome(first)
    scene.settle()
    scene.step(after_ms=500)
    corrected = scene.verdict("b")
    assert (corrected.phase, corrected.why) == ("Starting", None)


def test_a_planner_whose_gangs_wait_for_binders_sleeps() -> None:
    scene = a_scene(4)
    submit(scene, "a", 4)
    submit(scene, "b", 4)
    scene.settle()
    scene.step(after_ms=SPAN_MS)
    assert scene.wakeup_ms is not None
    assert scene.wakeup_ms >= scene.now_ms + UNANSWERED_MS - SPAN_MS


def test_a_decision_without_an_answer_for_long_keeps_no_gang_waiting() -> None:
    scene = a_scene(4)
    submit(scene, "a", 4)
    submit(scene, "b", 4)
    (first,) = scene.settle()
    scene.step(after_ms=UNANSWERED_MS - 1)
    assert len(scene.decisions) == 1
    assert names(scene.settle()) == []
    scene.step(after_ms=1)
    assert names([one for _, one in scene.decisions]) == ["a", "b"]
    # Its answer comes nevertheless, and counts once.
    scene.outcome(first)
    scene.settle()
    assert scene.planner.pods_in_flight == 4


def test_missing_members_of_a_partly_bound_gang_wait_for_no_other_gang() -> None:
    scene = a_scene(8)
    for name in "abc":
        submit(scene, name, 4)
    first, second = scene.settle()
    scene.in_flight_max = 4
    scene.bind(first, only=3)
    last = first.bindings[3].uid
    scene.outcome(first, {last: "unknown"})
    (repaired,) = scene.settle()
    assert [one.uid for one in repaired.bindings] == [last]
    assert scene.planner.pods_in_flight == 5
    scene.outcome(second)
    assert scene.settle() == []
    scene.outcome(repaired)
    assert names(scene.settle()) == ["c"]


def test_pods_of_no_gang_are_decided_as_far_as_the_bound_goes() -> None:
    scene = a_scene(5)
    scene.put(make_group("loose", 0), *make_pods("loose", 12, SMALL))
    sizes: list[int] = []
    while decisions := scene.settle():
        sizes += [len(one.bindings) for one in decisions]
        for one in decisions:
            scene.outcome(one)
            scene.bind(one)
    assert sum(sizes) == 12
    assert max(sizes) <= 5


def test_gangs_that_wait_for_volumes_to_be_made_keep_no_other_gang_waiting() -> None:
    scene = Scene(hosts(2))
    scene.in_flight_max = 1
    scene.put(make_class("csi", provisioner="csi.example.com"))
    decisions: list[GangDecision] = []
    for name in "ab":
        claim = make_claim(f"d{name}", storage_class="csi")
        scene.put(make_group(name, 1), claim, *members(name, [(claim.name,)]))
        decisions += scene.settle()
    assert [[one.volume for one in each.volumes] for each in decisions] == [[""], [""]]
    assert scene.planner.pods_in_flight == 0
    scene.outcome(decisions[0])
    assert scene.planner.answered == 0


@pytest.mark.parametrize("checkpoint", [False, True], ids=["from the log", "from a checkpoint"])
def test_a_planner_that_takes_over_counts_the_same_pods_under_way(checkpoint: bool) -> None:
    scene = LoggedScene([make_node(f"n{one}") for one in range(4)])
    scene.in_flight_max = 8
    for name in "abc":
        submit(scene, name, 4)
    first, second = scene.settle()
    scene.bind(first, only=2)
    seq = next(seq for seq, one in scene.decisions if one is second)
    scene.answer(seq, second)
    before = scene.planner.pods_in_flight
    scene.pages = scene.planner.checkpoint(scene.outcome_seq)
    scene.restart(checkpoint=checkpoint)
    assert scene.planner.pods_in_flight == before == 2
    assert checkpoint or scene.planner.in_flight_max == 8
    assert names(scene.settle()) == ["c"]


def test_each_record_says_what_its_cycle_was_allowed() -> None:
    scene = a_scene(7)
    submit(scene, "a", 4)
    (decision,) = scene.settle()
    assert decision.cycle.in_flight_max == 7
    unbound = msgspec.structs.replace(decision.cycle, in_flight_max=0)
    assert b"under_way_max" not in msgspec.msgpack.encode(unbound)
