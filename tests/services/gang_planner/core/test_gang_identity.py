"""Which pods are one gang, which object declares it, and what its id is."""

from typing import Any

import msgspec
import pytest

from shared.contracts.identity import nameless_gang_id
from shared.model.objects import Owner, Pod, PodGroup, Queue
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})
OWNER = Owner(api_version="apps/v1", kind="ReplicaSet", name="web", uid="owner-web")


def a_scene() -> Scene:
    return Scene([make_node("n0"), make_node("n1")])


def budget(size: int) -> PodGroup:
    return make_group(
        "web", size, uid="pdb", dialect="disruption_budget", by_owner=True, owner=OWNER
    )


@pytest.mark.parametrize(
    ("scheduler", "preferred", "other"),
    [
        ("kube-batch", "incubator", "volcano"),
        ("kube-batch", "sigs", "volcano"),
        ("kube-batch", "incubator", "sigs"),
        ("volcano", "volcano", "incubator"),
        ("tutti", "volcano", "sigs"),
    ],
)
@pytest.mark.parametrize("reverse", [False, True], ids=["preferred first", "preferred last"])
def test_of_two_objects_of_one_name_the_preferred_counts_and_the_other_is_reported(
    scheduler: str, preferred: str, other: str, reverse: bool
) -> None:
    scene = a_scene()
    objects: list[Any] = [
        make_group("a", 1, uid="right", dialect=preferred),
        make_group("a", 9, uid="wrong", dialect=other),
    ]
    scene.put(*(reversed(objects) if reverse else objects))
    scene.put(*make_pods("a", 1, CPU, scheduler_name=scheduler))
    (decision,) = scene.settle()
    assert decision.gang_id == "right"
    published = scene.verdicts["wrong"]
    assert published.why is not None
    assert (published.why.reason, published.conditions[0].reason) == (
        "DuplicateGroup",
        "DuplicateGroup",
    )
    scene.remove(objects[0])
    scene.step()
    assert scene.verdicts["right"].phase == "Gone"
    assert scene.verdicts["wrong"].phase == "Starting", "the twin takes over what is in flight"


def test_bare_pods_of_one_owner_are_one_gang_of_the_size_their_annotation_says() -> None:
    scene = a_scene()
    scene.put(*make_pods("web", 2, CPU, group_name="", owner=OWNER, group_min_member=3))
    assert scene.settle() == []
    verdict = scene.verdicts["owner-web"]
    assert (verdict.dialect, verdict.uid, verdict.owner_uid) == ("", "", "owner-web")
    assert (verdict.min_member, verdict.name) == (3, "web")
    scene.put(*make_pods("web", 3, CPU, group_name="", owner=OWNER)[2:])
    (decision,) = scene.settle()
    assert (decision.gang_id, len(decision.bindings)) == ("owner-web", 3)


def test_a_bare_pod_without_owner_is_a_gang_of_one() -> None:
    scene = a_scene()
    scene.put(*make_pods("solo", 2, CPU, group_name="", owner=None))
    assert sorted(len(one.bindings) for one in scene.settle()) == [1, 1]


def test_a_vanished_budget_leaves_its_number_behind() -> None:
    scene = a_scene()
    scene.put(budget(2), *make_pods("web", 1, CPU, group_name="", owner=OWNER))
    scene.settle()
    scene.remove(budget(2))
    assert scene.settle() == []
    verdict = scene.verdicts["owner-web"]
    assert (verdict.min_member, verdict.uid) == (2, "")


def test_a_budget_without_pods_of_ours_is_nobodys_business() -> None:
    scene = a_scene()
    scene.put(budget(2))
    scene.settle()
    assert scene.published == []
    assert dict(scene.planner.gangs_by_phase()) == {}


def test_pods_whose_group_we_make_ourselves_wait_for_it_and_say_its_name() -> None:
    scene = a_scene()
    pods = make_pods("podgroup-owner-web", 1, CPU, group_implied=True, owner=OWNER)
    scene.put(*pods)
    assert scene.settle() == []
    verdict = scene.verdict("podgroup-owner-web")
    assert verdict.group_wanted == "podgroup-owner-web"
    assert verdict.owner_uid == "owner-web"
    assert [one.uid for one in verdict.waiting] == [pods[0].uid]
    scene.put(make_group("podgroup-owner-web", 1, dialect="volcano", waits_for_inqueue=True))
    assert len(scene.settle()) == 1
    scene.change(pods[0].uid, group_implied=False)
    scene.settle()
    assert scene.verdict("podgroup-owner-web").group_wanted == ""


def test_pods_that_name_a_missing_group_are_a_gang_with_a_hashed_id_until_it_comes(
    golden: Golden,
) -> None:
    scene = a_scene()
    scene.put(*make_pods("late", 1, CPU))
    scene.settle()
    hashed = nameless_gang_id("", "team", "late")
    why = scene.verdicts[hashed].why
    assert why is not None
    assert why.reason == "GroupMissing"
    golden(why.sentence)
    scene.put(make_group("late", 1))
    (decision,) = scene.settle()
    assert decision.gang_id == "group-late"
    assert scene.verdicts[hashed].phase == "Gone"


def test_a_pod_that_is_annotated_later_moves_to_its_group() -> None:
    scene = a_scene()
    scene.put(make_group("a", 2))
    scene.put(*make_pods("a", 1, CPU))
    scene.put(*make_pods("b", 1, CPU, group_name="", owner=None, gates=("wait",)))
    scene.settle()
    scene.change("b-worker-0", group_name="a", gates=())
    (decision,) = scene.settle()
    assert {one.uid for one in decision.bindings} == {"a-worker-0", "b-worker-0"}


def test_groups_of_another_scheduler_are_left_alone() -> None:
    scene = a_scene()
    scene.put(make_group("theirs", 1, dialect="volcano"))
    scene.put(
        *make_pods("theirs", 1, CPU, ours=False, scheduler_name="other", node="n0", phase="Running")
    )
    scene.settle()
    assert scene.published == []


def test_a_group_that_schedulers_share_is_left_alone_until_a_pod_shows_whose_it_is() -> None:
    scene = a_scene()
    scene.put(make_group("any", 2, dialect="kubernetes", shared=True))
    scene.settle()
    assert scene.published == []
    (first,) = make_pods("any", 1, CPU)
    scene.put(first)
    scene.settle()
    assert scene.verdict("any").phase == "Inqueue"
    scene.remove(first)
    scene.step(after_ms=2_000)
    why = scene.verdict("any").why
    assert why is not None, "its verdict stays current without pods"
    assert why.sentence.startswith("0 of 2 members exist")


def test_a_group_whose_queue_changes_takes_its_charge_along() -> None:
    scene = a_scene()
    scene.put(make_group("a", 1, queue="default"), *make_pods("a", 1, CPU))
    scene.settle()
    scene.put(make_group("a", 1, queue="other", resource_version=2))
    scene.settle()
    state = scene.state
    assert not any(state.queues.entry("default").used.values())
    assert any(state.queues.entry("other").used.values())


def test_a_gang_that_is_gone_between_two_cycles_waits_for_nothing_any_more() -> None:
    scene = Scene([make_node("n0", dict(amounts(cpu=1000, memory=8 << 30, pods=10)))])
    scene.put(make_group("runs", 1), *make_pods("runs", 1, CPU))
    (running,) = scene.settle()
    scene.run(running)
    waiting, pods = make_group("waits", 1), make_pods("waits", 1, CPU)
    scene.put(waiting, *pods)
    assert not scene.settle()
    scene.remove(waiting, *pods)
    scene.remove(*scene.pods_of("runs"))
    assert not scene.settle()
    assert not scene.state.backlog.buckets


def test_a_gang_found_with_a_succeeded_member_counts_as_started() -> None:
    """A planner that remembers nothing must not wait for members that are finished and gone."""
    scene = a_scene()
    finished, again = make_pods("a", 2, CPU)
    scene.put(make_group("a", 4))
    scene.put(msgspec.structs.replace(finished, node="n0", phase="Succeeded"), again)
    (decision,) = scene.settle()
    assert [one.uid for one in decision.bindings] == [again.uid]


def test_a_gang_found_with_members_that_only_failed_is_placed_whole() -> None:
    scene = a_scene()
    failed, again = make_pods("a", 2, CPU)
    scene.put(make_group("a", 4))
    scene.put(msgspec.structs.replace(failed, node="n0", phase="Failed"), again)
    assert scene.settle() == []


def test_pods_of_an_owner_whose_others_are_all_gone_are_a_gang_of_their_own() -> None:
    """Holds of the former gang must not take the new one's members along."""
    nodes = [make_node(f"n{i}") for i in range(4)]
    scene = Scene(nodes)
    pods = make_pods("web", 4, CPU, group_name="", owner=OWNER, group_min_member=2)
    scene.put(*pods[:2])
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    lost = {binding.node for binding in decision.bindings}
    scene.remove(*(node for node in nodes if node.name in lost))
    scene.step()
    assert scene.planner.open_holds == 2
    scene.remove(*pods[:2])
    scene.put(pods[2])
    assert scene.settle() == []
    scene.put(pods[3])
    (again,) = scene.settle()
    assert {binding.uid for binding in again.bindings} == {pods[2].uid, pods[3].uid}


def bare(count: int, minimum: int, **fields: Any) -> list[Pod]:
    """Pods of one owner, without a group object, that declare a minimum."""
    given: dict[str, Any] = {"group_name": "", "owner": OWNER, "group_min_member": minimum}
    return make_pods("web", count, CPU, **{**given, **fields})


def test_a_minimum_that_is_lowered_on_all_pods_is_honoured_and_until_then_the_largest_counts(
    golden: Golden,
) -> None:
    scene = a_scene()
    pods = bare(4, 8)
    scene.put(*pods)
    assert scene.settle() == []
    for pod in pods[:3]:
        scene.change(pod.uid, group_min_member=4)
    assert scene.settle() == []
    verdict = scene.verdicts["owner-web"]
    assert verdict.min_member == 8
    assert verdict.why is not None
    golden(verdict.why.sentence)
    scene.change(pods[3].uid, group_min_member=4)
    (decision,) = scene.settle()
    assert len(decision.bindings) == 4


def test_pods_that_replace_others_bring_their_own_minimum() -> None:
    scene = a_scene()
    before = bare(4, 8)
    scene.put(*before)
    assert scene.settle() == []
    scene.put(*bare(4, 4, role="next"))
    for pod in before:
        scene.change(pod.uid, deleting=True)
    (decision,) = scene.settle()
    assert len(decision.bindings) == 4


def test_a_minimum_that_is_raised_before_the_start_is_waited_for() -> None:
    scene = a_scene()
    pods = bare(4, 6)
    scene.put(*pods)
    assert scene.settle() == []
    scene.change(pods[0].uid, group_min_member=8)
    scene.put(*bare(6, 6)[4:])
    assert scene.settle() == []


def test_pods_that_are_changed_or_replaced_take_their_gang_to_another_queue_and_priority() -> None:
    scene = a_scene()
    for name in ("one", "two"):
        scene.put(Queue(uid=name, name=name, dialect="volcano", resource_version=1))
    pods = bare(2, 8, queue="one", priority=10)
    scene.put(*pods)
    scene.settle()
    gang = scene.state.gangs.by_id["owner-web"]
    assert (gang.queue.name, gang.priority) == ("one", 10)
    scene.change(pods[0].uid, queue="two")
    scene.settle()
    assert gang.queue.name == "one"
    assert "disagree in scheduling.volcano.sh/queue-name (one and two): one is in effect" in (
        scene.verdicts["owner-web"].why.sentence  # type: ignore[union-attr]
    )
    scene.change(pods[1].uid, queue="two")
    scene.settle()
    assert gang.queue.name == "two"
    scene.put(*bare(2, 8, role="next", queue="two", priority=5))
    scene.remove(*scene.pods_of("")[:2])
    scene.settle()
    assert gang.priority == 5


def test_the_verdict_on_a_group_of_bare_pods_reports_what_its_members_declare() -> None:
    """In process, the controller that lets the group follow is not there."""
    scene = a_scene()
    for name in ("one", "two"):
        scene.put(Queue(uid=name, name=name, dialect="volcano", resource_version=1))
    scene.put(make_group("podgroup-u", 8, uid="made", queue="one"))
    pods = make_pods("podgroup-u", 4, CPU, group_min_member=8, queue="one")
    scene.put(*pods)
    assert scene.settle() == []

    def declared() -> tuple[int, str]:
        verdict = scene.verdicts["made"]
        return verdict.members_minimum, verdict.members_queue

    assert declared() == (8, "one")
    for pod in pods[:3]:
        scene.change(pod.uid, group_min_member=4, queue="two")
    scene.settle()
    assert declared() == (8, "two"), "the largest minimum, and the queue of most"
    # A pod that declares the new minimum replaces the last one that does not.
    scene.put(*make_pods("podgroup-u", 1, CPU, role="next", group_min_member=4, queue="two"))
    scene.settle()
    assert declared() == (8, "two")
    scene.change(pods[3].uid, deleting=True)
    scene.settle()
    assert declared() == (4, "two")


def test_the_verdict_on_a_users_group_reports_no_declarations_of_its_members() -> None:
    scene = a_scene()
    scene.put(make_group("a", 8, uid="own"), *make_pods("a", 4, CPU, group_min_member=4, queue="q"))
    scene.settle()
    verdict = scene.verdicts["own"]
    assert (verdict.members_minimum, verdict.members_queue) == (0, "")
