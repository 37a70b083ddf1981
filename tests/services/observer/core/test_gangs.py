"""Rows of the report: what of a gang's life is scene, and when it happened."""

import msgspec

from services.observer.core.recount import Recount
from shared.model.objects import Owner, Pod
from tests.services.observer.scene import Scene, group, node, pod

PROVED = Recount("proved")


def test_a_gang_that_is_bound_pod_by_pod_is_partial_until_its_quorum_has_nodes() -> None:
    scene = Scene()
    scene.begins(node("n0"), groups=[group(least=2)])
    first = scene.pods(pod("a"))
    complete = scene.pods(pod("b"))
    begun = scene.pods(pod("a", on="n0"))
    assert scene.row().partial_since_ms == begun
    whole = scene.pods(pod("b", on="n0"))
    row = scene.row()
    assert (row.seen_ms, row.complete_ms, row.first_bound_ms) == (first, complete, begun)
    assert (row.whole_ms, row.partial_ms, row.partial_since_ms) == (whole, whole - begun, 0)
    assert (row.needs, row.members, row.bound) == (2, 2, 2)


def test_a_quorum_has_the_minimum_of_each_role() -> None:
    scene = Scene()
    minima = (("master", 1), ("worker", 1))
    scene.begins(node("n0"), groups=[group(least=2, min_task_member=minima)])
    scene.pods(pod("w0", role="worker", on="n0"), pod("w1", role="worker", on="n0"))
    assert scene.row().partial_since_ms
    assert not scene.row().complete_ms
    whole = scene.pods(pod("m0", role="master", on="n0"))
    assert scene.row().whole_ms == whole


def test_a_gang_that_lost_a_member_after_it_was_whole_is_not_partial_again() -> None:
    scene = Scene()
    scene.begins(node("n0"), groups=[group(least=2)])
    scene.pods(pod("a", on="n0"), pod("b", on="n0"))
    scene.pods(gone=["b"])
    assert not scene.row().partial_since_ms
    assert scene.row().bound == 1


def test_what_was_bound_at_the_first_look_has_no_instants() -> None:
    scene = Scene()
    scene.begins(node("n0"), pods=[pod("a", on="n0"), pod("b", on="n0")], groups=[group()])
    row = scene.row()
    assert row.before
    assert (row.first_bound_ms, row.whole_ms, row.partial_ms) == (0, 0, 0)


def test_a_second_snapshot_is_no_first_look_and_ends_what_it_lacks() -> None:
    scene = Scene()
    scene.begins(node("n0"), pods=[pod("a", "old")], groups=[group(), group("old", 1)])
    scene.begins(node("n0"), pods=[pod("b", on="n0")], groups=[group(least=1)])
    assert scene.row("team/old").ended_ms == scene.at_ms
    assert scene.row().whole_ms == scene.at_ms
    assert not scene.row().before


def test_a_gang_made_again_under_its_name_is_another_row() -> None:
    scene = Scene()
    scene.begins(node("n0"), groups=[group(least=1)])
    scene.pods(pod("a", on="n0"))
    ended = scene.pods(gone=["a"])
    scene.pods(pod("b"))
    here, gone = scene.state.build_report(scene.at_ms).gangs
    assert (here.ended_ms, here.whole_ms) == (0, 0)
    assert (gone.ended_ms, gone.members) == (ended, 0)
    assert gone.whole_ms


def test_pods_of_two_namespaces_with_one_owner_are_two_rows() -> None:
    owner = Owner(api_version="batch/v1", kind="Job", name="train", uid="job")
    scene = Scene()
    scene.begins(node("n0"))
    ours = msgspec.structs.replace(pod("a", "", on="n0"), owner=owner)
    scene.pods(ours, msgspec.structs.replace(pod("b", ""), owner=owner, namespace="evil"))
    assert [scene.row(f"{one}/train").members for one in ("team", "evil")] == [1, 1]
    assert not scene.row("team/train").partial_since_ms


def test_gangs_that_have_gone_leave_the_report_oldest_first_and_are_counted() -> None:
    scene = Scene(gone_max=2)
    scene.begins(node("n0"))
    for name in ("a", "b", "c"):
        scene.pods(pod(name, f"g-{name}"))
        scene.pods(gone=[name])
    found = scene.state.build_report(scene.at_ms)
    assert [row.gang for row in found.gangs] == ["team/g-b", "team/g-c"]
    assert found.left_out == 1


def test_a_later_lifetime_continues_the_instants_of_the_one_before_and_counts_again() -> None:
    first = Scene()
    first.begins(node("n0"), groups=[group(least=2), group("over", 1)])
    first.pods(pod("a"), pod("b"), pod("x", "over"))
    first.state.gangs.decided(first.binds("a", "b"), PROVED)
    begun = first.pods(pod("a", on="n0"))
    later = Scene()
    later.at_ms = first.at_ms
    later.state.recall(first.state.build_report(first.at_ms))
    later.begins(node("n0"), pods=[pod("a", on="n0"), pod("b")], groups=[group(least=2)])
    row, before = later.row(), first.row()
    assert (row.complete_ms, row.decided_ms) == (before.complete_ms, before.decided_ms)
    assert (row.first_bound_ms, row.partial_since_ms, row.before) == (begun, begun, False)
    assert row.proved == 0
    assert later.row("team/over").ended_ms == later.at_ms
    assert later.state.since_ms == first.state.since_ms
    whole = later.pods(pod("b", on="n0"))
    assert later.row().whole_ms == whole


def test_members_bound_between_two_looks_count_as_bound_at_the_second() -> None:
    first = Scene()
    first.begins(node("n0"), groups=[group(least=1)])
    first.pods(pod("a"))
    later = Scene()
    later.at_ms = first.at_ms
    later.state.recall(first.state.build_report(first.at_ms))
    later.begins(node("n0"), pods=[pod("a", on="n0")], groups=[group(least=1)])
    assert (later.row().whole_ms, later.row().before) == (later.at_ms, False)


def test_pods_of_schedulers_that_are_not_observed_are_no_gang() -> None:
    scene = Scene()
    scene.begins(node("n0"), groups=[group()])
    scene.pods(pod("a", ours=False, on="n0"))
    assert not scene.state.build_report(scene.at_ms).gangs


def test_what_a_group_needs_counts_from_when_it_is_known() -> None:
    scene = Scene()
    scene.begins(node("n0"))
    scene.pods(pod("a", on="n0"))
    assert scene.row().whole_ms
    scene.groups(group(least=3))
    assert scene.row().needs == 3


def test_the_first_decision_says_when_a_gang_would_have_been_bound() -> None:
    scene = Scene()
    scene.begins(node("n0"), groups=[group(least=2)])
    scene.pods(pod("a"), pod("b"))
    first = scene.binds("a", "b")
    scene.state.gangs.decided(first, PROVED)
    scene.pods(pod("a", on="n0"))
    scene.state.gangs.decided(scene.binds("b"), Recount("overtaken", "b is on n1"))
    row = scene.row()
    assert row.decided_ms == first.cycle.now_ms
    assert (row.proved, row.overtaken, row.failed) == (1, 1, 0)


def test_a_decision_for_a_gang_that_the_other_scheduler_has_bound_is_no_race_won() -> None:
    scene = Scene()
    scene.begins(node("n0"), groups=[group(least=1)])
    scene.pods(pod("a", on="n0"), pod("extra"))
    scene.state.gangs.decided(scene.binds("extra"), PROVED)
    assert scene.row().decided_ms == 0


def test_evictions_and_releases_are_reported_for_the_gang_that_they_serve() -> None:
    scene = Scene()
    scene.begins(node("n0"), groups=[group(least=2), group("other", 1)])
    scene.pods(pod("a", on="n0"), pod("b"), pod("victim", "other", on="n0"))
    scene.state.gangs.evicts(scene.evicts("victim", for_pods=["b"], via="eviction"))
    scene.state.gangs.evicts(scene.evicts("a"))
    assert (scene.row().evicts, scene.row().release) == (1, "RepairDeadline")
    assert scene.row("team/other").evicts == 0


def test_a_minimum_that_members_lower_is_what_the_gang_needs_once_all_do() -> None:
    scene = Scene()
    scene.begins(node("n0"))

    def declaring(name: str, minimum: int) -> Pod:
        return msgspec.structs.replace(pod(name, on="n0"), group_min_member=minimum)

    scene.pods(declaring("a", 3), declaring("b", 3))
    assert scene.row().needs == 3
    scene.pods(declaring("a", 2))
    assert scene.row().needs == 3
    scene.pods(declaring("b", 2))
    assert scene.row().needs == 2
    assert not scene.row().partial_since_ms


def test_minima_of_roles_that_the_gangs_own_does_not_cover_do_not_bind() -> None:
    scene = Scene()
    minima = (("master", 1), ("worker", 3))
    scene.begins(node("n0"), groups=[group(least=2, min_task_member=minima)])
    scene.pods(pod("w0", role="worker", on="n0"), pod("w1", role="worker", on="n0"))
    assert scene.row().whole_ms
