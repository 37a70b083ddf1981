"""A partly bound gang is completed ahead of all other gangs, or released by its deadline."""

from typing import Any

import msgspec
import pytest

from shared.contracts import annotations
from shared.contracts.decisions import Binding, GangDecision, NoteOpened
from shared.contracts.outcomes import Member, MemberResult
from shared.model.objects import Pod, PodGroup
from tests.services.gang_planner.core.lifecycle import gang_lives
from tests.services.gang_planner.core.lifecycle.test_provisioning import Provisioned
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

FULL = make_shape({"cpu": 4000})


def cluster(nodes: int) -> LoggedScene:
    return LoggedScene([make_node(f"n{i:02d}") for i in range(nodes)])


def submit(
    scene: LoggedScene, name: str, size: int, *, minimum: int | None = None, **group: Any
) -> list[Pod]:
    made = make_pods(name, size, FULL)
    scene.put(make_group(name, size if minimum is None else minimum, **group), *made)
    return made


def half(
    scene: LoggedScene, name: str = "a", size: int = 2, **group: Any
) -> tuple[int, GangDecision]:
    """A gang decided, of which CLUSTER shows all but the last bound, and no outcome yet."""
    submit(scene, name, size, **group)
    scene.step()
    seq, decision = scene.decisions[-1]
    scene.done.add(seq)
    for one in decision.bindings[:-1]:
        scene.change(one.uid, node=one.node)
    return seq, decision


def failed(decision: GangDecision, result: MemberResult = "conflict") -> list[Member]:
    last = decision.bindings[-1]
    return [Member(uid=last.uid, node=last.node, result=result, code=409)]


def test_a_gang_that_is_whole_within_a_second_costs_no_note() -> None:
    scene = cluster(2)
    _, decision = half(scene)
    scene.until_quiet(within_ms=999)
    scene.change(decision.bindings[-1].uid, node=decision.bindings[-1].node)
    scene.until_quiet(within_ms=60_000)
    assert not [one for _, one in scene.records if isinstance(one, NoteOpened)]


def test_a_gang_that_stays_in_part_for_a_second_is_noted_and_its_deadline_counts_from_then() -> (
    None
):
    scene = cluster(2)
    half(scene)
    scene.until_quiet(within_ms=1_000)
    (note,) = [one for _, one in scene.records if isinstance(one, NoteOpened)]
    assert (note.kind, note.reason) == ("repair", "QuorumNotPlaced")
    assert (note.at_ms, note.until_ms) == (11_000, 40_000)


def test_what_could_not_be_bound_is_planned_before_gangs_that_stood_ahead() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    for name in ("rival-0", "rival-1"):
        submit(scene, name, 1, created_ms=1, priority_class="")
    scene.answer(seq, decision, failed(decision))
    scene.until_quiet(within_ms=2_000)
    again = scene.decisions[1][1]
    assert (again.gang, again.attempt, len(again.bindings)) == ("team/a", 2, 1)


def test_an_unbound_members_room_stays_its_own_until_it_is_planned_again() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.answer(seq, decision, failed(decision))
    submit(scene, "rival", 1)
    scene.until_quiet()
    assert [one.gang for _, one in scene.decisions] == ["team/a", "team/a"]
    scene.carry_out()
    scene.until_quiet()
    assert scene.verdict("a").phase == "Running"
    assert scene.verdict("rival").phase == "Inqueue"


def test_a_repair_that_goes_on_failing_pauses_longer_and_longer_but_never_long() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    for _ in range(8):
        scene.answer(seq, decision, failed(decision))
        scene.until_quiet(within_ms=5_000)
        seq, decision = scene.decisions[-1]
    notes = [
        one for _, one in scene.records if isinstance(one, NoteOpened) and one.kind == "backoff"
    ]
    lasted = [one.until_ms - one.at_ms for one in notes]
    assert lasted[:5] == [500, 1_000, 2_000, 4_000, 5_000]


def test_past_its_deadline_what_is_bound_is_released_with_words_that_say_why() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.answer(seq, decision, failed(decision))
    scene.put(make_node("n01", unschedulable=True, resource_version=2))
    scene.put(make_node("n00", unschedulable=True, resource_version=2))
    scene.until_quiet(within_ms=29_000)
    assert scene.releases == []
    scene.until_quiet(within_ms=1_000)
    (release,) = scene.releases
    assert release.reason == "RepairDeadline"
    assert "1 of 2 members were placed within 30 s" in release.why


@pytest.mark.parametrize("seconds", [0, 5])
def test_a_group_may_set_its_own_deadline(seconds: int) -> None:
    scene = cluster(2)
    settings = ((annotations.REPAIR_DEADLINE_SECONDS, str(seconds)),)
    seq, decision = half(scene, settings=settings)
    scene.put(make_node("n01", unschedulable=True, resource_version=2))
    scene.answer(seq, decision, failed(decision))
    scene.until_quiet(within_ms=max(seconds * 1000 - 1, 0))
    assert len(scene.releases) == (not seconds)
    scene.until_quiet(within_ms=1)
    assert len(scene.releases) == 1


def test_a_restart_neither_forgets_nor_restarts_the_deadline() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.answer(seq, decision, failed(decision))
    scene.put(make_node("n01", unschedulable=True, resource_version=2))
    for _ in range(6):
        scene.until_quiet(within_ms=4_900)
        scene.restart()
    assert scene.releases == []
    assert len(scene.notes("repair")) == 1
    scene.until_quiet(within_ms=600)
    assert len(scene.releases) == 1


def test_a_clock_set_back_does_not_put_the_deadline_off() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.answer(seq, decision, failed(decision))
    scene.put(make_node("n01", unschedulable=True, resource_version=2))
    scene.until_quiet(within_ms=10_000)
    scene.now_ms -= 3_600_000
    scene.until_quiet(within_ms=30_000)
    assert len(scene.releases) == 1


def test_a_repair_ends_when_the_gang_has_started() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.answer(seq, decision, failed(decision))
    scene.until_quiet(within_ms=1_000)
    scene.carry_out()
    scene.until_quiet(within_ms=60_000)
    assert [how for how, _ in scene.notes("repair")] == ["opened", "closed"]
    assert scene.notes("repair")[-1] == ("closed", "Started")
    assert scene.releases == []


def test_a_repair_ends_when_nothing_is_bound_any_more() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.answer(seq, decision, failed(decision))
    scene.step()
    scene.remove(scene.pods[decision.bindings[0].uid])
    scene.until_quiet()
    assert scene.notes("repair")[-1] == ("closed", "NothingBound")


def test_volcano_6010_a_quorum_that_grew_while_it_was_bound_is_completed_or_released() -> None:
    scene = cluster(6)
    pods = submit(scene, "a", 3)
    scene.step()
    scene.put(make_group("a", 6, resource_version=2))
    scene.carry_out()
    scene.until_quiet(within_ms=2_000)
    assert scene.verdict("a").phase == "Starting"
    scene.put(*make_pods("a", 6, FULL)[3:])
    scene.until_quiet()
    scene.carry_out()
    scene.until_quiet()
    assert (scene.verdict("a").phase, scene.releases) == ("Running", [])
    assert len(pods) == 3

    alone = cluster(6)
    submit(alone, "a", 3)
    alone.step()
    alone.put(make_group("a", 6, resource_version=2))
    alone.carry_out()
    alone.until_quiet(within_ms=31_000)
    (release,) = alone.releases
    assert (len(release.victims), "do not exist" in release.why) == (3, True)


def test_a_quorum_that_shrank_while_it_was_bound_starts_with_what_there_is() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.put(make_group("a", 1, resource_version=2))
    scene.answer(seq, decision, failed(decision))
    scene.until_quiet()
    assert scene.verdict("a").phase == "Running"
    assert scene.notes("repair") == []


def test_a_group_deleted_while_it_is_bound_ends_released_when_the_rest_never_comes() -> None:
    scene = cluster(3)
    seq, decision = half(scene, size=3)
    scene.remove(make_group("a", 3))
    scene.answer(seq, decision, failed(decision))
    scene.until_quiet(within_ms=31_000)
    (release,) = scene.releases
    assert len(release.victims) == 2


def test_a_group_made_again_under_its_name_goes_on_with_the_repair() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.answer(seq, decision, failed(decision))
    scene.put(make_node("n01", unschedulable=True, resource_version=2))
    scene.until_quiet(within_ms=10_000)
    scene.remove(make_group("a", 2))
    scene.put(make_group("a", 2, uid="group-a-again", resource_version=9))
    scene.until_quiet(within_ms=5_000)
    scene.restart()
    scene.until_quiet(within_ms=14_000)
    assert scene.releases == []
    scene.until_quiet(within_ms=1_000)
    (release,) = scene.releases
    assert release.gang_id == "group-a-again"


@pytest.mark.parametrize("how", ["deleted", "cordoned"])
def test_a_node_that_goes_while_a_gang_is_bound_is_replaced(how: str) -> None:
    scene = cluster(3)
    pods = submit(scene, "a", 2)
    scene.step()
    ((_, decision),) = scene.decisions
    last = decision.bindings[-1]
    if how == "deleted":
        scene.remove(make_node(last.node))
    else:
        scene.put(make_node(last.node, unschedulable=True, resource_version=2))
    scene.carry_out()
    scene.until_quiet()
    if how == "deleted":
        assert scene.verdict("a").phase == "Starting"
        # The node's garbage collector removes the pod, its controller makes it again.
        scene.remove(scene.pods[last.uid])
        scene.make_again(pods)
        scene.until_quiet()
        scene.carry_out()
        scene.until_quiet()
    assert scene.verdict("a").phase == "Running"
    assert scene.releases == []


def test_a_member_refused_by_its_kubelet_is_placed_elsewhere_when_it_is_made_again() -> None:
    scene = cluster(3)
    seq, decision = half(scene)
    last = decision.bindings[-1]
    scene.change(last.uid, node=last.node, phase="Failed", reason="OutOfcpu")
    scene.answer(seq, decision)
    scene.until_quiet()
    scene.make_again([])
    again = msgspec.structs.replace(
        scene.pods[last.uid], uid="again", name="a-worker-9", node="", phase="Pending", reason=""
    )
    scene.put(again)
    scene.until_quiet()
    (binding,) = scene.decisions[-1][1].bindings
    assert binding.uid == "again"
    assert binding.node != last.node
    scene.carry_out()
    scene.until_quiet()
    assert scene.verdict("a").phase == "Running"


@pytest.mark.parametrize("started", [True, False])
def test_a_node_whose_kubelet_refused_a_member_is_tried_again_though_the_failed_pod_stays(
    *, started: bool
) -> None:
    # The successor may have no other node: its volume is there.
    scene = cluster(1)
    (pod,) = submit(scene, "a", 1)
    scene.step()
    seq, decision = scene.decisions[-1]
    scene.done.add(seq)
    if started:
        scene.change(pod.uid, node="n00", phase="Running")
        scene.answer(seq, decision)
        scene.until_quiet()
    scene.change(pod.uid, node="n00", phase="Failed", reason="OutOfcpu")
    if not started:
        scene.answer(seq, decision)
    scene.until_quiet()
    again = msgspec.structs.replace(
        scene.pods[pod.uid], uid="again", name="a-worker-9", node="", phase="Pending", reason=""
    )
    scene.put(again)
    scene.until_quiet(within_ms=59_000)
    assert scene.decisions[1:] == []
    refused = scene.condition("a", "Unschedulable")
    assert refused is not None
    assert "refused one of its members recently" in refused.message
    scene.until_quiet(within_ms=2_000)
    (tried_again,) = scene.decisions[1:]
    assert [(one.uid, one.node) for one in tried_again[1].bindings] == [("again", "n00")]


def test_a_member_made_again_under_its_name_takes_the_room_of_the_one_that_went() -> None:
    scene = cluster(2)
    pods = submit(scene, "a", 2)
    scene.step()
    ((seq, decision),) = scene.decisions
    scene.done.add(seq)
    first, second = decision.bindings
    scene.change(first.uid, node=first.node)
    scene.change(second.uid, node=second.node, phase="Failed", reason="Evicted")
    scene.answer(seq, decision)
    submit(scene, "rival", 1)
    scene.until_quiet()
    scene.remove(scene.pods[second.uid])
    scene.until_quiet(within_ms=5_000)
    assert [one.gang for _, one in scene.decisions] == ["team/a"], "its room is kept"
    scene.make_again(pods)
    scene.until_quiet()
    again = scene.decisions[-1][1]
    assert (again.gang, again.bindings[0].node) == ("team/a", second.node)


def test_a_lost_outcome_is_no_reason_to_do_anything_but_wait_for_the_deadline() -> None:
    scene = cluster(3)
    half(scene)
    scene.until_quiet(within_ms=29_000)
    assert len(scene.decisions) == 1


def test_an_outcome_that_is_read_twice_counts_once() -> None:
    scene = cluster(4)
    seq, decision = half(scene)
    members = failed(decision)
    scene.answer(seq, decision, members)
    scene.answer(seq, decision, members)
    scene.until_quiet(within_ms=20_000)
    assert len(scene.decisions) == 2
    assert scene.notes("backoff") == []


@pytest.mark.parametrize(
    ("namespace", "words"), [("team", "team/tfjob/first"), ("other", "a gang of another namespace")]
)
def test_of_two_repairs_that_block_each_other_the_later_gives_its_room_up(
    namespace: str, words: str
) -> None:
    scene = cluster(4)
    submit(scene, "first", 2, created_ms=1)
    scene.put(
        make_group("second", 2, created_ms=2, namespace=namespace),
        *make_pods("second", 2, FULL, namespace=namespace),
    )
    scene.step()
    assert len(scene.decisions) == 2
    # Another scheduler takes the place of one member of each.
    for number, (seq, decision) in enumerate(list(scene.decisions)):
        scene.done.add(seq)
        first, last = decision.bindings
        scene.change(first.uid, node=first.node)
        scene.put(
            Pod(
                uid=f"foreign-{number}",
                namespace="other",
                name=f"foreign-{number}",
                resource_version=1,
                shape=FULL,
                node=last.node,
                phase="Running",
            )
        )
        scene.answer(seq, decision, failed(decision))
    scene.until_quiet(within_ms=2_000)
    (release,) = scene.releases
    assert (release.gang, release.reason) == (f"{namespace}/second", "RepairsBlocked")
    assert release.why.startswith(f"it and {words} each had ")
    scene.carry_out()
    scene.until_quiet(within_ms=10_000)
    scene.carry_out()
    scene.until_quiet()
    assert scene.verdict("first").phase == "Running"
    assert len(scene.releases) == 1


def foreign(node: str) -> Pod:
    """A pod of another scheduler that fills a node."""
    return Pod(
        uid=f"foreign-{node}",
        namespace="other",
        name=f"foreign-{node}",
        resource_version=1,
        shape=FULL,
        node=node,
        phase="Running",
    )


def in_pools(name: str, pools: str, created_ms: int) -> tuple[PodGroup, *tuple[Pod, ...]]:
    """A gang with one member for each of these pools; a member fills a node."""
    pods = [
        make_pods(
            name, 1, make_shape({"cpu": 4000}, node_selector=(("pool", pool),)), role=f"{pool}{at}"
        )[0]
        for at, pool in enumerate(pools)
    ]
    return make_group(name, len(pods), created_ms=created_ms), *pods


def lose_last(scene: LoggedScene, seq: int, decision: GangDecision, *shown: Binding) -> None:
    """CLUSTER shows these members bound; the last one's node is filled by another scheduler."""
    scene.done.add(seq)
    for one in shown:
        scene.change(one.uid, node=one.node)
    scene.put(foreign(decision.bindings[-1].node))
    scene.answer(seq, decision, failed(decision))


def pooled(*names: str) -> LoggedScene:
    return LoggedScene([make_node(name, labels=(("pool", name[0]),)) for name in names])


def test_a_repair_with_members_under_way_gives_nothing_to_the_proof_for_another() -> None:
    scene = pooled("a0", "a1", "a2", "b0", "b1", "c0", "d0")
    scene.put(*in_pools("first", "aa", 1))
    scene.put(*in_pools("second", "bb", 2))
    scene.put(*in_pools("third", "acd", 3))
    scene.step()
    for seq, decision in list(scene.decisions):
        lose_last(scene, seq, decision, decision.bindings[0])
    # The one of pool c is still in flight, so the third cannot give back what it has in pool a.
    third = scene.decisions[-1][1]
    scene.until_quiet(within_ms=2_000)
    assert scene.notes("release") == []
    scene.change(third.bindings[1].uid, node=third.bindings[1].node)
    scene.until_quiet(within_ms=2_000)
    (release,) = scene.releases
    assert (release.gang, release.reason) == ("team/third", "RepairsBlocked")


def test_a_repair_whose_release_is_not_needed_for_the_first_one_keeps_what_it_has() -> None:
    scene = pooled("a0", "a1", "a2", "a3", "b0", "b1")
    scene.put(*in_pools("first", "aa", 1))
    scene.put(*in_pools("second", "aa", 2))
    scene.put(*in_pools("third", "bb", 3))
    scene.step()
    for seq, decision in list(scene.decisions):
        lose_last(scene, seq, decision, decision.bindings[0])
    scene.until_quiet(within_ms=2_000)
    (release,) = scene.releases
    assert (release.gang, release.reason) == ("team/second", "RepairsBlocked")


def test_a_repair_that_no_release_would_help_releases_no_gang() -> None:
    scene = LoggedScene(
        [make_node(f"{pool}{i}", labels=(("pool", pool),)) for pool in "ab" for i in range(2)]
    )
    for name, pool in (("first", "a"), ("second", "b")):
        shape = make_shape({"cpu": 4000}, node_selector=(("pool", pool),))
        scene.put(make_group(name, 2), *make_pods(name, 2, shape))
    scene.step()
    for seq, decision in list(scene.decisions):
        scene.done.add(seq)
        first, last = decision.bindings
        scene.change(first.uid, node=first.node)
        scene.put(make_node(last.node, unschedulable=True, resource_version=2))
        scene.answer(seq, decision, failed(decision))
    scene.until_quiet(within_ms=20_000)
    assert len(scene.notes("repair")) == 2
    assert scene.releases == []


def test_while_it_finds_no_room_the_verdict_says_how_many_are_placed() -> None:
    scene = cluster(2)
    seq, decision = half(scene)
    scene.answer(seq, decision, failed(decision))
    scene.put(make_node("n01", unschedulable=True, resource_version=2))
    scene.until_quiet(within_ms=3_000)
    why = scene.verdict("a").why
    assert why is not None
    assert why.reason == "RepairRoom"
    assert scene.verdict("a").unschedulable == 1, "a new node would help"
    assert why.sentence.startswith("1 of 2 members are placed; of the other members: ")


def test_a_gang_that_is_bound_in_part_waits_for_no_provisioning_request() -> None:
    scene = Provisioned(nodes=2)
    scene.gang()
    scene.settle()
    scene.answer(scene.wanted().request, "Provisioned")
    (decision,) = scene.settle()
    scene.bind(decision, only=1)
    missing = decision.bindings[1]
    scene.put(make_node(missing.node, unschedulable=True, resource_version=2))
    scene.outcome(decision, {missing.uid: "conflict"})
    assert scene.settle() == []
    scene.put(make_node("late"))
    (again,) = scene.settle()
    assert scene.where(again) == {missing.name: "late"}


def refuse_all(scene: LoggedScene, for_ms: int, *, every_ms: int = 10) -> int:
    """Refuse every binding for a while, as a namespace that is being deleted does; returns how many
    decisions were made.
    """
    made = 0
    for _ in range(0, for_ms, every_ms):
        scene.step(after_ms=every_ms)
        for seq, decision in scene.decisions:
            if seq not in scene.done:
                scene.done.add(seq)
                scene.answer(seq, decision, [scene.refusal(one) for one in decision.bindings])
                made += 1
    return made


def test_a_running_gang_of_which_one_member_after_another_is_refused_pauses_ever_longer() -> None:
    scene = gang_lives.cluster(3)
    gang_lives.running(scene)
    for number in range(6):
        scene.put(make_pods("a", 1, gang_lives.FULL, role=f"extra{number}")[0])
    assert refuse_all(scene, 60) == 2
    assert refuse_all(scene, 1_000) == 1
    assert refuse_all(scene, 1_000) == 1
    assert [reason for _, reason in scene.notes("backoff")][:1] == ["BindingRefused"]


def test_a_refused_member_of_a_running_gang_keeps_no_other_from_being_bound() -> None:
    scene = gang_lives.cluster(3)
    gang_lives.running(scene)
    refused, other = (
        make_pods("a", 1, gang_lives.FULL, role=f"extra{number}")[0] for number in range(2)
    )
    scene.refuses = lambda one: one.uid == refused.uid
    scene.put(refused)
    scene.step()
    scene.carry_out()
    scene.put(other)
    scene.step()
    scene.carry_out()
    assert scene.bound("a") == 3
