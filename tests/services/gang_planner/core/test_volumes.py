"""Gangs whose members have claims: whole or nothing, each volume once."""

import msgspec
import pytest

from services.gang_planner.core.constraints.filters import volume_binding, volume_restrictions
from services.gang_planner.core.state.storage.ledger import Choice
from shared.contracts.decisions import GangDecision, VolumeChoice
from shared.model.objects import Disk, Pod
from shared.model.reference_objects import Claim, CsiDriver, StorageCapacity
from shared.model.terms import Requirement, Selector, SelectorTerm
from tests.services.gang_planner.core.claims import (
    HOST,
    bound_to,
    hosts,
    make_claim,
    make_class,
    make_volume,
    members,
    sentence,
)
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

PACKED = """
actions: "allocate"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: binpack}]}]
"""


def test_a_gang_gets_one_local_volume_per_member_or_nothing() -> None:
    scene = Scene(hosts(3))
    scene.put(make_class(), make_volume("a", "n0"), make_volume("b", "n1"), make_group("g", 3))
    scene.put(*(make_claim(f"data-{index}") for index in range(3)))
    scene.put(*members("g", [(f"data-{index}",) for index in range(3)]))
    assert not scene.settle()
    scene.step(after_ms=3000)
    published = sentence(scene, "g")
    assert f"3 {volume_binding.NONE_FOUND}" in published
    assert "2 of 3 pods fit" in published
    scene.put(make_volume("c", "n2"))
    (decision,) = scene.settle()
    nodes = {one.uid: one.node for one in decision.bindings}
    assert sorted(nodes.values()) == ["n0", "n1", "n2"]
    homes = {"a": "n0", "b": "n1", "c": "n2"}
    assert {one.volume for one in decision.volumes} == set(homes)
    for one in decision.volumes:
        assert nodes[one.pod_uid] == one.node == homes[one.volume]
        assert one.claim == f"data-{one.pod_uid.removeprefix('g-')}"
        assert (one.claim_uid, one.volume_uid) == (f"pvc-{one.claim}", f"pv-{one.volume}")


def test_the_smallest_volume_that_is_large_enough_is_taken() -> None:
    scene = Scene(hosts(1))
    scene.put(make_class(), make_group("g", 1), make_claim("data", gib=5))
    scene.put(make_volume("s", "n0", gib=4), make_volume("l", "n0", gib=50))
    scene.put(make_volume("m", "n0", gib=6), *members("g", [("data",)]))
    (decision,) = scene.settle()
    assert [one.volume for one in decision.volumes] == ["m"]


def test_a_pod_with_two_claims_gets_two_volumes_on_one_node() -> None:
    scene = Scene(hosts(3))
    scene.put(make_class(), make_group("g", 1), make_claim("x"), make_claim("y", gib=8))
    scene.put(make_volume("a", "n0"), make_volume("b", "n1"), make_volume("c", "n2", gib=7))
    scene.put(*members("g", [("x", "y")]))
    assert not scene.settle()
    scene.put(make_volume("d", "n2"))
    (decision,) = scene.settle()
    assert {(one.claim, one.volume, one.node) for one in decision.volumes} == {
        ("x", "c", "n2"),
        ("y", "d", "n2"),
    }


def test_a_volume_assumed_for_one_gang_is_not_given_to_another() -> None:
    scene = Scene(hosts(2))
    scene.put(make_class(), make_volume("a", "n0"))
    for gang in ("g", "h"):
        scene.put(make_group(gang, 1), make_claim(gang), *members(gang, [(gang,)]))
    (first,) = scene.settle()
    assert [one.volume for one in first.volumes] == ["a"]
    # The claim's pod goes before anything was bound: its choice goes with it.
    scene.remove(scene.pods[first.bindings[0].uid])
    (second,) = scene.settle()
    assert [one.volume for one in second.volumes] == ["a"]
    assert second.gang_id != first.gang_id


def test_a_bound_volume_says_where_its_pod_goes() -> None:
    scene = Scene(hosts(4))
    scene.put(make_class(), make_volume("a", "n2", phase="Bound", claim_name="data"))
    scene.put(bound_to("data", "a"), make_group("g", 1), *members("g", [("data",)]))
    (decision,) = scene.settle()
    assert [one.node for one in decision.bindings] == ["n2"]
    assert not decision.volumes


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        (
            [make_claim("data", storage_class="fast")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [make_claim("data", volume_name="a")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        ([bound_to("data", "none")], volume_binding.NOT_THERE),
        (
            [make_claim("data", deleting=True)],
            'persistentvolumeclaim "data" is being deleted',
        ),
        (
            [make_claim("data", phase="Lost", volume_name="a")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "a"',
        ),
        ([make_claim("data", access_modes=("ReadWriteMany",))], volume_binding.NONE_FOUND),
        ([make_claim("data", mode="Block")], volume_binding.NONE_FOUND),
        ([make_claim("data", selected_node="n1")], volume_binding.NONE_FOUND),
    ],
    ids=[
        "missing",
        "immediate",
        "not bound completely",
        "volume is gone",
        "being deleted",
        "lost",
        "other access mode",
        "other volume mode",
        "selected for another node",
    ],
)
def test_a_claim_that_cannot_be_served_is_waited_for(claims: list[Claim], text: str) -> None:
    scene = Scene(hosts(1))
    scene.put(make_class(), make_class("fast", wait_for_first_consumer=False))
    scene.put(make_volume("a", "n0"), make_group("g", 1), *claims, *members("g", [("data",)]))
    assert not scene.settle()
    scene.step(after_ms=3000)
    assert text in sentence(scene, "g")
    scene.remove(*claims)
    scene.put(make_claim("data"))
    assert len(scene.settle()) == 1


def test_a_pod_made_again_under_its_name_waits_for_an_ephemeral_claim_of_its_own() -> None:
    """The claim that is there was made for the pod that had the name before, and goes with it."""
    scene = Scene(hosts(2))
    former = bound_to("g-0-scratch", "a", owner_uid="former")
    scene.put(make_class(), make_volume("a", "n0", phase="Bound", claim_name="g-0-scratch"))
    scene.put(make_volume("b", "n1"), make_group("g", 1), former)
    own = (("g-0-scratch", "g-0"),)
    shape = make_shape(claims=("g-0-scratch",), own_claims=own, namespace="team")
    (pod,) = make_pods("g", 1, shape)
    scene.put(msgspec.structs.replace(pod, uid="g-0", name="g-0"))
    assert not scene.settle()
    scene.step(after_ms=3000)
    assert "was not created for the pod" in sentence(scene, "g")
    scene.remove(former)
    scene.put(make_claim("g-0-scratch", owner_uid="g-0"))
    (decision,) = scene.settle()
    assert [one.node for one in decision.bindings] == ["n1"]


def test_a_selector_chooses_among_volumes_by_their_labels() -> None:
    scene = Scene(hosts(1))
    wanted = Selector(requirements=(Requirement(key="tier", operator="In", values=("fast",)),))
    scene.put(make_class(), make_group("g", 1), make_claim("data", selector=wanted))
    scene.put(make_volume("a", "n0"), *members("g", [("data",)]))
    assert not scene.settle()
    scene.put(make_volume("b", "n0", gib=99, labels=(("tier", "fast"),)))
    (decision,) = scene.settle()
    assert [one.volume for one in decision.volumes] == ["b"]


def test_a_volume_that_names_a_claim_is_for_no_other() -> None:
    scene = Scene(hosts(2))
    scene.put(make_class(), make_claim("data"), make_claim("other"))
    scene.put(make_volume("a", "n0", claim_namespace="team", claim_name="data"))
    scene.put(make_group("h", 1), *members("h", [("other",)]))
    assert not scene.settle()
    # Smaller ones are there: the claim's own is taken nevertheless.
    scene.put(make_volume("b", "n1", gib=5), make_group("g", 1), *members("g", [("data",)]))
    assert {(one.claim, one.volume) for decision in scene.settle() for one in decision.volumes} == {
        ("data", "a"),
        ("other", "b"),
    }


class TestProvisioning:
    """Claims of classes that make volumes."""

    def test_the_node_is_selected_for_the_provisioner(self) -> None:
        scene = Scene(hosts(2))
        scene.put(make_class("csi", provisioner="csi.example.com"), make_group("g", 2))
        scene.put(*(make_claim(f"d{index}", storage_class="csi") for index in range(2)))
        scene.put(*members("g", [("d0",), ("d1",)], cpu=3000))
        (decision,) = scene.settle()
        assert {(one.claim, one.node, one.volume) for one in decision.volumes} == {
            ("d0", "n0", ""),
            ("d1", "n1", ""),
        }

    def test_an_existing_volume_comes_before_one_that_is_made(self) -> None:
        scene = Scene(hosts(2))
        scene.put(make_class("csi", provisioner="csi.example.com"), make_group("g", 1))
        scene.put(make_volume("a", "n1", storage_class="csi"))
        scene.put(make_claim("d", storage_class="csi"), *members("g", [("d",)]))
        (decision,) = scene.settle()
        (choice,) = decision.volumes
        assert choice.volume == ("a" if choice.node == "n1" else "")

    def test_only_allowed_topologies_get_volumes(self) -> None:
        scene = Scene(hosts(3))
        here = Requirement(key=HOST, operator="In", values=("n1",))
        allowed = (SelectorTerm(expressions=(here,)),)
        scene.put(make_class("csi", provisioner="c", allowed_topologies=allowed))
        scene.put(make_group("g", 1), make_claim("d", storage_class="csi"))
        scene.put(*members("g", [("d",)]))
        (decision,) = scene.settle()
        assert [one.node for one in decision.volumes] == ["n1"]

    def test_published_capacity_is_enough_or_the_node_refuses(self) -> None:
        scene = Scene(hosts(2))
        scene.put(make_class("csi", provisioner="c"), make_group("g", 1))
        scene.put(CsiDriver(uid="d", name="c", resource_version=1, storage_capacity=True))
        scene.put(make_claim("d", storage_class="csi", gib=5), *members("g", [("d",)]))
        assert not scene.settle()
        scene.step(after_ms=3000)
        assert volume_binding.NO_SPACE in sentence(scene, "g")
        here = Selector(requirements=(Requirement(key=HOST, operator="In", values=("n1",)),))
        capacity = StorageCapacity(
            uid="c",
            namespace="kube-system",
            name="c",
            resource_version=1,
            storage_class="csi",
            node_topology=here,
            capacity_bytes=100 << 30,
            volume_bytes_max=4 << 30,
        )
        scene.put(capacity)
        assert not scene.settle()
        scene.put(msgspec.structs.replace(capacity, resource_version=2, volume_bytes_max=5 << 30))
        (decision,) = scene.settle()
        assert [one.node for one in decision.volumes] == ["n1"]

    def test_a_node_that_was_selected_before_is_the_only_one(self) -> None:
        scene = Scene(hosts(3))
        scene.put(make_class("csi", provisioner="c"), make_group("g", 1))
        scene.put(make_claim("d", storage_class="csi", selected_node="n2"))
        scene.put(*members("g", [("d",)]))
        (decision,) = scene.settle()
        assert [one.node for one in decision.volumes] == ["n2"]


class TestSharing:
    """Pods that name one claim."""

    def test_members_with_one_unbound_claim_follow_its_first_choice(self) -> None:
        scene = Scene(hosts(3))
        scene.put(make_class(), make_volume("a", "n1"), make_group("g", 3), make_claim("data"))
        scene.put(*members("g", [("data",)] * 3, cpu=1000))
        (decision,) = scene.settle()
        assert {one.node for one in decision.bindings} == {"n1"}
        assert {(one.claim, one.volume) for one in decision.volumes} == {("data", "a")}
        assert len(decision.volumes) == 3

    def test_a_bound_claim_is_shared_by_any_number(self) -> None:
        scene = Scene(hosts(3))
        scene.put(make_class(), make_volume("a", phase="Bound", claim_name="data"))
        scene.put(bound_to("data", "a", access_modes=("ReadWriteMany",)), make_group("g", 12))
        scene.put(*members("g", [("data",)] * 12, cpu=1000))
        (decision,) = scene.settle()
        assert len(decision.bindings) == 12

    def test_a_claim_for_one_pod_is_for_one_pod(self) -> None:
        scene = Scene(hosts(3))
        scene.put(make_class(), make_volume("a", phase="Bound", claim_name="data"))
        scene.put(bound_to("data", "a", access_modes=("ReadWriteOncePod",)))
        scene.put(make_group("g", 2), *members("g", [("data",)] * 2))
        assert not scene.settle()
        scene.put(make_group("h", 1), *members("h", [("data",)]))
        (decision,) = scene.settle()
        scene.bind(decision, phase="Running")
        scene.put(make_group("i", 1), *members("i", [("data",)]))
        assert not scene.settle()
        scene.step(after_ms=3000)
        assert volume_restrictions.IN_USE in sentence(scene, "i")
        scene.change(decision.bindings[0].uid, phase="Succeeded")
        assert len(scene.settle()) == 1


def test_a_logged_choice_is_kept_for_a_pod_that_is_bound_before_its_claim_is_seen_bound() -> None:
    """A planner that takes over sees the pod on its node, and the claim as it was before."""
    scene = Scene(hosts(1))
    scene.put(make_class("local"), *(make_volume(f"v{index}", "n0") for index in range(2)))
    scene.put(*(make_claim(name) for name in "abc"))
    (bound,) = members("g", [("a",)])
    scene.put(make_group("g", 1), msgspec.structs.replace(bound, node="n0", phase="Running"))
    storage = scene.state.node_capacity.storage
    storage.pin(("team", "a"), Choice("n0", "pvc-a", "v1", "pv-v1"))
    storage.unpin(("team", "a"))  # no pod takes it up any more
    assert storage.contradiction() == ""

    scene.put(make_group("h", 1), *members("h", [("b",)]))
    (decision,) = scene.settle()
    assert [one.volume for one in decision.volumes] == ["v0"]
    scene.put(make_group("i", 1), *members("i", [("c",)]))
    assert scene.settle() == []


def with_disks(gang: str, count: int, *disks: Disk) -> list[Pod]:
    """Members that mount disks without a claim."""
    return make_pods(gang, count, make_shape({"cpu": 10}, disks=disks))


@pytest.mark.parametrize(
    ("read_only", "nodes"), [(False, {"n0", "n1"}), (True, {"n0"})], ids=["written", "only read"]
)
def test_a_disk_that_a_pod_writes_is_mounted_once_on_a_node(
    read_only: bool, nodes: set[str]
) -> None:
    scene = Scene(hosts(2, packed="yes"), conf=PACKED)
    disk = Disk(name="gce pd-1", read_only=read_only)
    scene.put(make_group("g", 2), *with_disks("g", 2, disk))
    (decision,) = scene.settle()
    assert set(scene.where(decision).values()) == nodes


def test_a_reader_waits_for_the_writer() -> None:
    scene = Scene(hosts(1))
    scene.put(make_group("g", 1), *with_disks("g", 1, Disk(name="iscsi t")))
    (decision,) = scene.settle()
    scene.bind(decision, phase="Running")
    reader = Disk(name="iscsi t", read_only=True)
    scene.put(make_group("h", 1), *with_disks("h", 1, reader))
    assert scene.settle() == []
    scene.step(after_ms=3000)
    assert "1 node(s) had no available disk" in sentence(scene, "h")
    scene.change(decision.bindings[0].uid, phase="Succeeded")
    assert len(scene.settle()) == 1


def test_a_volume_with_a_zones_label_stays_in_the_zone() -> None:
    zone = "topology.kubernetes.io/zone"
    nodes = [make_node(f"n{index}", labels=((zone, f"z{index}"),)) for index in range(3)]
    scene = Scene(nodes)
    labels = ((zone, "z2__z3"),)
    scene.put(make_volume("a", phase="Bound", claim_name="data", labels=labels))
    scene.put(bound_to("data", "a"), make_group("g", 1), *members("g", [("data",)]))
    (decision,) = scene.settle()
    assert [one.node for one in decision.bindings] == ["n2"]
    scene.put(make_group("h", 1), *members("h", [("data",)], cpu=4001))
    scene.step()
    scene.step(after_ms=3000)
    assert "2 node(s) had no available volume zone" in sentence(scene, "h")


def test_what_a_logged_decision_chose_is_chosen_again_by_the_next_planner() -> None:
    scene = Scene(hosts(1))
    scene.put(make_class(), make_volume("a", "n0"), make_volume("b", "n0"))
    for gang in ("g", "h"):
        scene.put(make_group(gang, 1), make_claim(gang))
    scene.put(*members("g", [("g",)]))
    (first,) = scene.settle()
    assert [one.volume for one in first.volumes] == ["a"]
    # In the log it stands that the gang got the other one.
    seq, decision = scene.decisions[0]
    other = VolumeChoice(
        pod_uid="g-0",
        namespace="team",
        claim="g",
        claim_uid="pvc-g",
        node="n0",
        volume="b",
        volume_uid="pv-b",
    )
    follower = Scene(hosts(1))
    follower.put(make_class(), make_volume("a", "n0"), make_volume("b", "n0"))
    logged = msgspec.structs.replace(decision, volumes=(other,))
    follower.planner.apply_decision(seq, logged)
    for gang in ("g", "h"):
        follower.put(make_group(gang, 1), make_claim(gang))
        follower.put(*members(gang, [(gang,)]))
    follower.decision_seq = seq
    (second,) = follower.settle()
    assert [(one.claim, one.volume) for one in second.volumes] == [("h", "a")]


def test_a_choice_that_no_pod_takes_up_any_more_blocks_no_claim() -> None:
    scene = Scene(hosts(1))
    scene.put(make_class(), make_volume("a", "n0"), make_group("g", 1), make_claim("g"))
    scene.put(*members("g", [("g",)]))
    scene.settle()
    seq, decision = scene.decisions[0]
    follower = Scene(hosts(1))
    follower.put(make_class(), make_volume("a", "n0"))
    # The pod is gone when the next planner reads the decision.
    follower.planner.apply_decision(seq, decision)
    follower.put(make_group("h", 1), make_claim("h"), *members("h", [("h",)]))
    follower.decision_seq = seq
    (second,) = follower.settle()
    assert [(one.claim, one.volume) for one in second.volumes] == [("h", "a")]


def test_a_member_whose_claim_could_not_be_prepared_is_tried_on_another_node() -> None:
    scene = Scene(hosts(2))
    scene.put(make_class("csi", provisioner="csi.example.com"), make_group("g", 2))
    scene.put(*(make_claim(f"d{index}", storage_class="csi") for index in range(2)))
    scene.put(*members("g", [("d0",), ("d1",)], cpu=1000))
    (first,) = scene.settle()
    failed = next(one for one in first.bindings if one.uid == "g-0")
    scene.outcome(first, {"g-0": "unprepared", "g-1": "skipped"}, reason="PreparationFailed")
    again = scene.settle()
    published = scene.verdicts["group-g"].why
    assert published is not None
    assert "could not be carried out: g-0: denied by policy" in published.sentence
    for _ in range(20):
        if again:
            break
        again = [one for one in scene.step(after_ms=500).decisions if isinstance(one, GangDecision)]
    (second,) = again
    nodes = {one.uid: one.node for one in second.bindings}
    assert nodes["g-0"] != failed.node
    assert {one.claim: one.node for one in second.volumes}["d0"] == nodes["g-0"]


def test_a_volume_that_only_its_claim_shows_bound_is_chosen_for_no_other_claim() -> None:
    scene = Scene(hosts(1))
    scene.put(make_class(), make_volume("a", "n0"), make_volume("b", "n0"))
    scene.put(make_group("g", 1), make_claim("g"), *members("g", [("g",)]))
    (first,) = scene.settle()
    assert [one.volume for one in first.volumes] == ["a"]
    scene.put(msgspec.structs.replace(bound_to("g", "a"), resource_version=2))
    scene.bind(first, phase="Running")
    scene.put(make_group("h", 1), make_claim("h"), *members("h", [("h",)]))
    (second,) = scene.settle()
    assert [one.volume for one in second.volumes] == ["b"]


def test_what_the_cluster_shows_bound_is_no_choice_any_more() -> None:
    scene = Scene(hosts(1))
    scene.put(make_class(), make_volume("a", "n0"), make_volume("b", "n0"))
    scene.put(make_group("g", 1), make_claim("g"), *members("g", [("g",)]))
    (first,) = scene.settle()
    assert [one.volume for one in first.volumes] == ["a"]
    # Another client was faster: the claim has the other volume, and ours is free.
    mine = bound_to("g", "b")
    scene.put(msgspec.structs.replace(mine, resource_version=2))
    taken = make_volume("b", "n0", phase="Bound", claim_namespace="team", claim_name="g")
    scene.put(msgspec.structs.replace(taken, resource_version=2))
    scene.bind(first, phase="Running")
    scene.put(make_group("h", 1), make_claim("h"), *members("h", [("h",)]))
    (second,) = scene.settle()
    assert [one.volume for one in second.volumes] == ["a"]


def test_a_lost_members_successor_gets_the_place_held_beside_its_volume() -> None:
    scene = Scene(hosts(2))
    scene.put(make_class(), make_group("g", 2))
    for index in range(2):
        volume = make_volume(f"v{index}", f"n{index}", phase="Bound", claim_name=f"d{index}")
        scene.put(volume, bound_to(f"d{index}", volume.name, access_modes=("ReadWriteOncePod",)))
    pods = members("g", [("d0",), ("d1",)], cpu=3000)
    scene.put(*pods)
    (first,) = scene.settle()
    scene.run(first)
    scene.settle()
    scene.remove(pods[0])
    scene.settle()
    assert [(one.lost_on, one.node) for one in scene.holds()] == [("n0", "n0")]
    # Another gang would fit there without the hold.
    scene.put(make_group("h", 1), *members("h", [()], cpu=2000))
    assert not scene.settle()
    scene.put(msgspec.structs.replace(pods[0], uid="g-0-again"))
    (second,) = scene.settle()
    assert [(one.uid, one.node) for one in second.bindings] == [("g-0-again", "n0")]
    assert second.fills == ("g-0",)


def test_a_planner_that_takes_over_keeps_a_volume_that_only_its_claim_shows_as_bound() -> None:
    """Claims and volumes are watched separately: the volume still looks available."""
    scene = LoggedScene(hosts(1))
    scene.put(make_class("local"), make_volume("v", "n0"), make_claim("a"), make_claim("b"))
    scene.put(make_group("g", 1), *members("g", [("a",)]))
    (decision,) = scene.settle()
    assert [one.volume for one in decision.volumes] == ["v"]
    scene.put(bound_to("a", "v"))
    scene.restart()
    scene.put(make_group("h", 1), *members("h", [("b",)]))
    assert scene.settle() == []
    scene.put(make_volume("w", "n0"))
    (decision,) = scene.settle()
    assert [one.volume for one in decision.volumes] == ["w"]
