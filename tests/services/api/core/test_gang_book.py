"""Gangs in order, their names, versions and deletions."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from services.api.core import gang_book
from services.api.core.cluster_state import ClusterState
from services.api.core.gang_book import GangBook
from services.api.core.versions import Version, read_version
from shared.contracts.cluster import Gone, PodChanges, PodGroupChanges, WorkloadChanges
from shared.contracts.identity import id_of_key
from shared.model.objects import Owner, Pod, PodGroup
from shared.model.reference_objects import Workload
from tests.services.api.scene import FIRST_SEEN_MS, verdict
from tests.services.observer.scene import EPOCH, group, pod
from tests.support.snapshots import snapshot_of


def book(pods: Sequence[Pod] = (), groups: Sequence[PodGroup] = (), at: int = 5) -> GangBook:
    page = snapshot_of([*groups, *pods], at_ms=1, epoch=EPOCH, cluster_seq=at)
    return GangBook(ClusterState([page]))


def names(found: GangBook, namespace: str = "") -> list[str]:
    return ["/".join(place) for place in found.places(namespace, None)]


def test_gangs_are_in_order_of_namespace_and_name_whatever_the_order_of_their_verdicts() -> None:
    found = book()
    for seq, (namespace, name) in enumerate(
        [("b", "z"), ("a", "y"), ("b", "a"), ("ab", "x"), ("a", "b")], start=1
    ):
        found.put_verdict(seq, verdict(namespace, name))
    assert names(found) == ["a/b", "a/y", "ab/x", "b/a", "b/z"]
    assert names(found, "a") == ["a/b", "a/y"]
    assert ["/".join(one) for one in found.places("", ("a", "y"))] == ["ab/x", "b/a", "b/z"]
    found.put_verdict(6, verdict("ab", "x", phase="Gone"))
    assert names(found) == ["a/b", "a/y", "b/a", "b/z"]
    assert found.get(("ab", "x")) is None


def test_the_gang_that_was_seen_first_has_the_name_that_two_share() -> None:
    found = book()
    late = verdict("a", "train", gang_id="late-0123456789", first_seen_ms=FIRST_SEEN_MS + 1)
    found.put_verdict(1, late)
    assert names(found) == ["a/train"]
    touched = found.put_verdict(2, verdict("a", "train", gang_id="early"))
    assert names(found) == ["a/train", "a/train:late-0123456789"]
    assert touched == {("a", "train"), ("a", "train:late-0123456789")}
    entry = found.get(("a", "train"))
    assert entry is not None
    assert entry.verdict.gang_id == "early"
    found.put_verdict(3, verdict("a", "train", gang_id="early", phase="Gone"))
    assert names(found) == ["a/train"]
    entry = found.get(("a", "train"))
    assert entry is not None
    assert entry.verdict.gang_id == late.gang_id
    assert ("a", "train:late-0123456789") in found.deletions


def test_no_name_that_a_user_chooses_is_that_of_another_gang() -> None:
    """An annotation may name a gang at will, also as a second gang of a shared name is named."""
    found = book()
    for seq, (name, gang_id) in enumerate(
        [
            ("train", "1"),
            ("train", "12345678-2"),
            ("train", "12345678-3"),
            ("train:12345678-2", "4"),
        ],
        start=1,
    ):
        found.put_verdict(seq, verdict("a", name, gang_id=gang_id))
    expected = ["train", "train:12345678-2", "train:12345678-2:4", "train:12345678-3"]
    assert names(found) == [f"a/{name}" for name in expected]
    for seq, gang_id in enumerate(("12345678-2", "12345678-3", "1"), start=5):
        found.put_verdict(seq, verdict("a", "train", gang_id=gang_id, phase="Gone"))
    assert names(found) == ["a/train:12345678-2:4"]


def test_a_version_grows_with_verdicts_and_with_pods_of_the_gang_only() -> None:
    found = book(groups=[group("train")])
    found.put_verdict(7, verdict("team", "train", gang_id="uid-train", uid="uid-train"))
    place = ("team", "train")
    entry = found.get(place)
    assert entry is not None
    assert entry.version == Version(7, 5)

    def bound(name: str, gang: str, seq: int) -> set[tuple[str, str]]:
        record = PodChanges(epoch=EPOCH, at_ms=1, changed=(pod(name, gang, on="node"),))
        return found.put_cluster(seq, found.cluster.apply(seq, record))

    assert bound("other-0", "other", 8) == set()
    assert entry.version == Version(7, 5)
    assert found.version == Version(7, 5)
    assert found.read == Version(7, 8)
    assert bound("train-0", "train", 9) == {place}
    assert entry.version == found.version == Version(7, 9)
    status = found.forms(entry, sees_all=True).gang.status
    assert [(one.node, one.members) for one in status.placement] == [("node", 1)]
    gone = PodChanges(epoch=EPOCH, at_ms=1, removed=(Gone(uid="uid-train-0", resource_version=2),))
    assert found.put_cluster(10, found.cluster.apply(10, gone)) == {place}
    assert found.forms(entry, sees_all=True).gang.status.placement == ()


def test_a_group_that_comes_after_its_pods_finds_them() -> None:
    found = book(pods=[pod("train-0", on="node")])
    found.put_verdict(7, verdict("team", "train", gang_id="uid-train", uid="uid-train"))
    entry = found.get(("team", "train"))
    assert entry is not None
    assert found.forms(entry, sees_all=True).gang.status.placement == ()
    record = PodGroupChanges(epoch=EPOCH, at_ms=1, changed=(group("train"),))
    assert found.put_cluster(8, found.cluster.apply(8, record)) == {("team", "train")}
    assert len(found.forms(entry, sees_all=True).gang.status.placement) == 1


@pytest.mark.parametrize("gang_id", ["job", id_of_key(("owner", "team", "job"))])
def test_pods_of_another_namespace_with_the_same_owner_are_not_a_gangs(gang_id: str) -> None:
    """Under the ids of this version, and of planners of the version before."""
    ours = replace(pod("train-0", "", on="ours"), owner=JOB)
    theirs = replace(pod("evil-0", "", on="theirs"), owner=JOB, namespace="evil")
    found = book(pods=[theirs, ours])
    found.put_verdict(1, verdict("team", "train", gang_id=gang_id, uid=""))
    entry = found.get(("team", "train"))
    assert entry is not None
    placement = found.forms(entry, sees_all=True).gang.status.placement
    assert [(one.node, one.members) for one in placement] == [("ours", 1)]


def test_deletions_are_bounded_and_it_is_known_from_where_on_they_are_complete() -> None:
    found = book(at=0)
    count = gang_book.DELETIONS_MAX + 2
    for seq in range(1, 2 * count, 2):
        found.put_verdict(seq, verdict("a", f"g{seq}"))
        found.put_verdict(seq + 1, verdict("a", f"g{seq}", phase="Gone"))
    assert len(found.deletions) == gang_book.DELETIONS_MAX
    assert not found.knows_deletions_since(Version(3, 0))
    assert found.knows_deletions_since(Version(4, 0))


def test_what_changed_since_a_version_is_what_is_newer_in_either_stream() -> None:
    found = book(groups=[group("x"), group("y"), group("z")])
    for seq, name in enumerate("xyz", start=1):
        found.put_verdict(seq, verdict("team", name, gang_id=f"uid-{name}", uid=f"uid-{name}"))
    start = found.version
    assert list(found.changed_since(start)) == []
    record = PodChanges(epoch=EPOCH, at_ms=1, changed=(pod("x-0", "x", on="node"),))
    found.put_cluster(8, found.cluster.apply(8, record))
    middle = found.version
    found.put_verdict(9, verdict("team", "y", gang_id="uid-y", uid="uid-y", phase="Running"))
    assert list(found.changed_since(start)) == [("team", "y"), ("team", "x")]
    assert list(found.changed_since(middle)) == [("team", "y")]
    assert list(found.changed_since(Version(9, 5))) == [("team", "x")]
    assert len(list(found.changed_since(Version()))) == 3
    found.put_verdict(10, verdict("team", "x", gang_id="uid-x", phase="Gone"))
    assert list(found.changed_since(start)) == [("team", "y")]
    assert found.namespaces() == {"team"}


def test_a_version_is_read_as_it_was_written_and_orders_as_a_number() -> None:
    for version in (Version(0, 1), Version(1, 0), Version(12, 345), Version(10**9, 10**11)):
        assert read_version(version.text()) == version
    assert int(Version(2, 0).text()) > int(Version(1, 10**11).text())
    assert read_version("") is None
    assert read_version("0") is None


JOB = Owner(api_version="batch/v1", kind="Job", name="train-workers-0", uid="job")
TF_JOB = Owner(api_version="kubeflow.org/v1", kind="TFJob", name="mnist", uid="tf")


def workload(uid: str, title: str, above: str = "") -> Workload:
    return Workload(
        uid=uid, namespace="team", name=uid, resource_version=1, title=title, owner_uid=above
    )


def test_a_gang_has_the_name_of_the_object_that_its_user_created() -> None:
    groups = [group("train"), group("solo"), group("tf", owner=TF_JOB)]
    members = [replace(pod("w-0"), owner=JOB), pod("s-0", "solo")]
    found = book(members, groups)
    for seq, one in enumerate(groups, start=1):
        found.put_verdict(seq, verdict("team", one.name, gang_id=one.uid, uid=one.uid))

    def owners() -> dict[str, str]:
        entries = {one.name: found.get(("team", one.name)) for one in groups}
        return {
            name: found.forms(entry, sees_all=True).gang.status.owner
            for name, entry in entries.items()
            if entry is not None
        }

    assert owners() == {"train": "job/train-workers-0", "solo": "", "tf": "tfjob/mnist"}
    titles = [
        found.forms(entry, sees_all=True).gang.status.title
        for name in ("solo", "tf", "train")
        if (entry := found.get(("team", name))) is not None
    ]
    assert titles == ["solo", "tfjob/mnist (tf)", "job/train-workers-0 (train)"]

    def learn(seq: int, *changed: Workload, gone: Sequence[str] = ()) -> None:
        removed = tuple(Gone(uid=uid, resource_version=2) for uid in gone)
        found.cluster.apply(
            seq, WorkloadChanges(epoch=EPOCH, at_ms=seq, changed=changed, removed=removed)
        )
        # The gang's next change shows what is known by then.
        found.put_cluster(seq, ["uid-train"])

    learn(6, workload("job", "jobset/train", "set"), workload("set", "trainjob/train"))
    assert owners()["train"] == "trainjob/train"
    learn(7, gone=["set"])
    assert owners()["train"] == "jobset/train"
    learn(8, gone=["job"])
    assert owners()["train"] == "job/train-workers-0"
