"""The cluster state: what becomes a change, what does not, and what a relist makes of it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.watcher.core.cluster_state import ClusterState, ClusterWentBack
from shared.contracts.cluster import Gone, NodeChanges, ObjectChanges, PodChanges
from shared.model.invariants import InvariantViolation
from shared.model.objects import ClusterObject, Owner, Pod
from tests.services.watcher.core.objects import group, node, pod


def taken(cluster_state: ClusterState) -> list[ObjectChanges]:
    return cluster_state.take(epoch=5, at_ms=99)


def test_a_new_object_is_a_change_and_is_sent_once() -> None:
    cluster_state = ClusterState()
    assert cluster_state.observe("pods", pod("a"))
    assert taken(cluster_state) == [PodChanges(epoch=5, at_ms=99, changed=(pod("a"),))]
    assert taken(cluster_state) == []
    assert not cluster_state.has_pending()


def test_a_heartbeat_is_no_change_but_is_remembered() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("nodes", node("n", 1, labels=(("zone", "a"),)))
    taken(cluster_state)
    assert not cluster_state.observe("nodes", node("n", 2, labels=(("zone", "a"),)))
    assert taken(cluster_state) == []
    # Version 1 arriving late is older than the heartbeat, although the heartbeat was never sent.
    assert not cluster_state.observe("nodes", node("n", 1, labels=(("zone", "old"),)))
    assert cluster_state.freeze().objects["node"] == (node("n", 2, labels=(("zone", "a"),)),)


def test_changes_of_one_object_between_two_flushes_are_sent_as_the_last_one() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("pods", pod("a", 1))
    cluster_state.observe("pods", pod("b", 2))
    cluster_state.observe("pods", pod("a", 3, node="n"))
    (record,) = taken(cluster_state)
    assert record.changed == (pod("b", 2), pod("a", 3, node="n"))


def test_an_object_made_and_deleted_between_two_flushes_is_only_gone() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("pods", pod("a", 1))
    assert cluster_state.forget("pods", "pod", "a", 2)
    (record,) = taken(cluster_state)
    assert (record.changed, record.removed) == ((), (Gone(uid="a", resource_version=2),))


def test_new_objects_are_news_and_so_is_all_that_happens_to_nodes() -> None:
    cluster_state = ClusterState()
    for source, new, changed in (
        ("pods", pod("a"), pod("a", 2, node="n")),
        ("podgroups", group("g"), group("g", 2, phase="Running")),
        ("nodes", node("n"), node("n", 2, labels=(("zone", "a"),))),
    ):
        cluster_state.observe(source, new)
        assert cluster_state.has_urgent()
        taken(cluster_state)
        assert not cluster_state.has_urgent()
        cluster_state.observe(source, changed)
        assert cluster_state.has_pending()
        assert cluster_state.has_urgent() == (source == "nodes")
        taken(cluster_state)
    cluster_state.forget("pods", "pod", "a", 3)
    assert not cluster_state.has_urgent()
    cluster_state.forget("nodes", "node", "n", 3)
    assert cluster_state.has_urgent()
    cluster_state.open_epoch()
    assert not cluster_state.has_urgent()


def test_a_change_behind_news_in_the_same_flush_does_not_hide_it() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("pods", pod("a"))
    cluster_state.observe("pods", pod("a", 2, node="n"))
    assert cluster_state.has_urgent()


def test_a_deletion_of_something_unknown_is_no_change() -> None:
    cluster_state = ClusterState()
    assert not cluster_state.forget("pods", "pod", "a", 2)
    assert not cluster_state.has_pending()


def test_one_flush_holds_each_kind_once_and_what_others_refer_to_first() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("pods", pod("p"))
    cluster_state.observe("groups", group("g"))
    cluster_state.observe("nodes", node("n"))
    assert [type(record).__name__ for record in taken(cluster_state)] == [
        "NodeChanges",
        "PodGroupChanges",
        "PodChanges",
    ]


@pytest.mark.parametrize(
    ("fields", "matters"),
    [
        pytest.param({"ours": True}, True, id="ours, pending"),
        pytest.param({"ours": True, "phase": "Succeeded", "node": "n"}, True, id="ours, done"),
        pytest.param({"ours": False}, False, id="foreign, pending"),
        pytest.param({"ours": False, "misdirected": True}, True, id="misdirected, pending"),
        pytest.param(
            {"ours": False, "misdirected": True, "phase": "Failed"}, False, id="misdirected, done"
        ),
        pytest.param({"ours": False, "node": "n"}, True, id="foreign, on a node"),
        pytest.param({"ours": False, "nominated_node": "n"}, True, id="foreign, nominated"),
        pytest.param({"ours": False, "node": "n", "phase": "Failed"}, False, id="foreign, done"),
    ],
)
def test_foreign_pods_matter_only_while_they_take_room(
    fields: dict[str, Any], matters: bool
) -> None:
    cluster_state = ClusterState()
    assert cluster_state.observe("pods", pod("a", **fields)) == matters
    assert cluster_state.count("pod") == matters


def test_a_foreign_pod_that_ends_is_sent_as_gone_and_once() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("pods", pod("a", 1, ours=False, node="n", phase="Running"))
    taken(cluster_state)
    assert cluster_state.observe("pods", pod("a", 2, ours=False, node="n", phase="Succeeded"))
    (record,) = taken(cluster_state)
    assert record.removed == (Gone(uid="a", resource_version=2, succeeded=True),)
    assert not cluster_state.forget("pods", "pod", "a", 3)


BATCH_JOB = Owner(api_version="batch/v1", kind="Job", name="job", uid="job")
VOLCANO_JOB = Owner(api_version="batch.volcano.sh/v1alpha1", kind="Job", name="job", uid="job")


@pytest.mark.parametrize(
    ("versions", "phase"),
    [
        pytest.param([{"deleting": True}, {"phase": "Succeeded", "deleting": True}], "Failed"),
        pytest.param(
            [{"phase": "Succeeded", "deleting": True, "disrupted": True}], "Failed", id="evicted"
        ),
        pytest.param(
            [
                {"deleting": True},
                {"phase": "Succeeded", "deleting": True},
                {"phase": "Succeeded", "deleting": True, "reason": "Later"},
            ],
            "Failed",
            id="changed again",
        ),
        pytest.param(
            [{"phase": "Succeeded"}, {"phase": "Succeeded", "deleting": True}], "Succeeded"
        ),
        pytest.param(
            [{"phase": "Succeeded"}, {"phase": "Succeeded", "disrupted": True}], "Succeeded"
        ),
        pytest.param(
            [
                {"disrupted": True},
                {"phase": "Succeeded", "disrupted": True},
                {"phase": "Succeeded", "disrupted": True, "deleting": True},
            ],
            "Succeeded",
            id="it succeeds before it is deleted",
        ),
        pytest.param(
            [
                {"deleting": True, "owner": BATCH_JOB},
                {"phase": "Succeeded", "deleting": True, "owner": BATCH_JOB},
            ],
            "Succeeded",
            id="its Job counts it",
        ),
        pytest.param(
            [
                {"deleting": True, "owner": VOLCANO_JOB},
                {"phase": "Succeeded", "deleting": True, "owner": VOLCANO_JOB},
            ],
            "Failed",
            id="its Job makes it again",
        ),
    ],
)
@pytest.mark.parametrize("flushes", [True, False], ids=["each is sent", "the last one is sent"])
@pytest.mark.parametrize("ours", [True, False])
def test_a_pod_that_succeeds_because_it_is_deleted_or_evicted_has_failed(
    versions: list[dict[str, Any]], phase: str, *, flushes: bool, ours: bool
) -> None:
    """Also if one record holds its deletion and its end, or its whole life."""
    cluster_state = ClusterState()
    cluster_state.observe("pods", pod("a", 1, node="n", phase="Running", ours=ours))
    records = taken(cluster_state)
    lives = [{"node": "n", "phase": "Running", "ours": ours, **fields} for fields in versions]
    for version, fields in enumerate(lives, start=2):
        cluster_state.observe("pods", pod("a", version, **fields))
        records += taken(cluster_state) if flushes else []
    if ours:
        if flushes:
            (known,) = cluster_state.freeze().objects["pod"]
            assert isinstance(known, Pod)
            assert known.phase == phase
        last = pod("a", 9, **lives[-1])
        cluster_state.forget("pods", "pod", "a", 9, last=last)
    records += taken(cluster_state)
    gone = [one for record in records for one in record.removed]
    assert [one.succeeded for one in gone] == [phase == "Succeeded"]


def test_a_pod_that_was_not_known_was_made_to_end_if_it_is_evicted() -> None:
    cluster_state = ClusterState()
    ended: dict[str, Any] = {"phase": "Succeeded", "deleting": True, "node": "n"}
    listed = [pod("cleaned-up", **ended), pod("evicted", disrupted=True, **ended)]
    cluster_state.relist("pods", "pod", listed, 5)
    (record,) = taken(cluster_state)
    assert isinstance(record, PodChanges)
    assert [one.phase for one in record.changed] == ["Succeeded", "Failed"]


def test_a_relist_sends_only_the_difference() -> None:
    cluster_state = ClusterState()
    cluster_state.relist("pods", "pod", [pod("same", 1), pod("changed", 2), pod("gone", 3)], 10)
    taken(cluster_state)
    listed = [pod("same", 1), pod("changed", 12, node="n"), pod("new", 13)]
    assert cluster_state.relist("pods", "pod", listed, 20) == 3
    (record,) = taken(cluster_state)
    assert record.changed == (pod("changed", 12, node="n"), pod("new", 13))
    assert record.removed == (Gone(uid="gone", resource_version=20),)


def test_a_relist_of_one_source_leaves_other_sources_of_the_kind_alone() -> None:
    cluster_state = ClusterState()
    cluster_state.relist("podgroups.volcano", "podgroup", [group("a")], 10)
    cluster_state.relist("podgroups.sigs", "podgroup", [group("b", dialect="sigs")], 11)
    taken(cluster_state)
    assert cluster_state.relist("podgroups.sigs", "podgroup", [], 12) == 1
    (record,) = taken(cluster_state)
    assert record.removed == (Gone(uid="b", resource_version=12),)
    assert cluster_state.count("podgroup") == 1


def test_a_list_older_than_what_is_known_ends_the_epoch() -> None:
    cluster_state = ClusterState()
    cluster_state.relist("pods", "pod", [pod("a", 9)], 10)
    cluster_state.reached("pods", 15)
    with pytest.raises(ClusterWentBack, match="known up to resourceVersion 15, a list answers 12"):
        cluster_state.relist("pods", "pod", [pod("a", 11)], 12)


def test_the_versions_reached_never_go_back() -> None:
    cluster_state = ClusterState()
    cluster_state.reached("pods", 15)
    cluster_state.reached("pods", 14)
    cluster_state.reached("nodes", 3)
    assert cluster_state.resource_versions() == (("nodes", 3), ("pods", 15))


def test_a_cluster_state_with_changes_pending_cannot_be_frozen() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("pods", pod("a"))
    with pytest.raises(InvariantViolation):
        cluster_state.freeze()


def test_a_snapshot_does_not_follow_the_living_cluster_state() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("nodes", node("n"))
    assert taken(cluster_state) == [NodeChanges(epoch=5, at_ms=99, changed=(node("n"),))]
    frozen = cluster_state.freeze()
    cluster_state.observe("nodes", node("m"))
    taken(cluster_state)
    assert frozen.objects["node"] == (node("n"),)
    assert cluster_state.freeze().version == frozen.version + 1


def test_a_new_epoch_sends_nothing_of_what_its_snapshot_holds() -> None:
    cluster_state = ClusterState()
    cluster_state.observe("pods", pod("a"))
    cluster_state.open_epoch()
    assert taken(cluster_state) == []
    assert cluster_state.freeze().objects["pod"] == (pod("a"),)


STEPS: dict[str, dict[str, Any]] = {
    "pending": {},
    "bound": {"node": "n"},
    "foreign": {"ours": False, "node": "n"},
    "foreign-done": {"ours": False, "node": "n", "phase": "Failed"},
}


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"),
            st.sampled_from(["pending", "bound", "foreign", "foreign-done", "deleted", "flush"]),
        ),
        max_size=40,
    )
)
def test_a_reader_of_the_flushes_always_has_the_cluster_state(steps: list[tuple[str, str]]) -> None:
    """Whatever happens between flushes, applying the records gives what the state holds."""
    cluster_state = ClusterState()
    reader: dict[str, ClusterObject] = {}
    for version, (uid, step) in enumerate(steps, start=1):
        match step:
            case "deleted":
                cluster_state.forget("pods", "pod", uid, version)
            case "flush":
                _apply(reader, taken(cluster_state))
            case _:
                cluster_state.observe("pods", pod(uid, version, **STEPS[step]))
    _apply(reader, taken(cluster_state))
    held = {one.uid: one for one in cluster_state.freeze().objects["pod"]}
    assert {uid: unversioned(one) for uid, one in reader.items()} == {
        uid: unversioned(one) for uid, one in held.items()
    }


def unversioned(one: ClusterObject) -> ClusterObject:
    """The object without its resourceVersion: heartbeats move it on, and are not published."""
    return msgspec.structs.replace(one, resource_version=0)


def _apply(reader: dict[str, ClusterObject], records: list[ObjectChanges]) -> None:
    for record in records:
        for gone in record.removed:
            reader.pop(gone.uid, None)
        for changed in record.changed:
            assert changed.uid not in {gone.uid for gone in record.removed}
            reader[changed.uid] = changed
