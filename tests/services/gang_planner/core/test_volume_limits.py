"""How many volumes of a driver a node takes: its own, those in flight, those still attached."""

from shared.model.reference_objects import CsiLimit, CsiNode, VolumeAttachment
from tests.services.gang_planner.core.claims import (
    bound_to,
    hosts,
    make_claim,
    make_class,
    make_volume,
    members,
    sentence,
)
from tests.services.gang_planner.core.scene import Scene, make_group


def test_a_node_takes_no_more_volumes_than_its_driver_can_attach() -> None:
    scene = Scene(hosts(2))
    limits = (CsiLimit(driver="csi.example.com", volumes_max=2),)
    for name in ("n0", "n1"):
        scene.put(CsiNode(uid=f"csi-{name}", name=name, resource_version=1, drivers=limits))
    for index in range(4):
        volume = make_volume(
            f"v{index}",
            phase="Bound",
            claim_name=f"d{index}",
            driver="csi.example.com",
            handle=f"h{index}",
        )
        scene.put(volume, bound_to(f"d{index}", volume.name))
    scene.put(make_class("csi", provisioner="csi.example.com"))
    scene.put(make_claim("new", storage_class="csi"))
    # Two pods of one claim on one node are one volume.
    scene.put(make_group("g", 5), *members("g", [("d0",), ("d1",), ("d2",), ("d3",), ("d0",)]))
    (decision,) = scene.settle()
    scene.bind(decision, phase="Running")
    scene.put(make_group("h", 1), *members("h", [("new",)]))
    assert not scene.settle()
    scene.step(after_ms=3000)
    assert "2 node(s) exceed max volume count" in sentence(scene, "h")
    for binding in decision.bindings:
        if binding.uid in {"g-1", "g-2"}:
            scene.change(binding.uid, phase="Succeeded")
    assert len(scene.settle()) == 1


def test_a_volume_that_is_not_seen_yet_counts_as_its_claim() -> None:
    """Claims and volumes are watched apart: the claim may say first that it has its volume."""
    scene = Scene(hosts(1))
    limits = (CsiLimit(driver="csi.example.com", volumes_max=1),)
    scene.put(CsiNode(uid="csi-n0", name="n0", resource_version=1, drivers=limits))
    scene.put(make_class("csi", provisioner="csi.example.com"))
    claim = make_claim("made", storage_class="csi")
    scene.put(claim, make_claim("new", storage_class="csi"))
    scene.put(make_group("g", 1), *members("g", [("made",)]))
    (decision,) = scene.settle()
    scene.bind(decision, phase="Running")
    scene.put(bound_to("made", "under-way", storage_class="csi"))
    scene.put(make_group("h", 1), *members("h", [("new",)]))
    assert scene.settle() == []
    scene.step(after_ms=3000)
    assert "1 node(s) exceed max volume count" in sentence(scene, "h")


def test_a_volume_that_is_still_attached_counts_until_it_is_detached() -> None:
    """Its pod is gone; the driver has not let go of it yet."""
    scene = Scene(hosts(1))
    limits = (CsiLimit(driver="csi.example.com", volumes_max=1),)
    scene.put(CsiNode(uid="csi-n0", name="n0", resource_version=1, drivers=limits))
    for name in ("old", "new"):
        volume = make_volume(
            name, phase="Bound", claim_name=name, driver="csi.example.com", handle=name
        )
        scene.put(volume, bound_to(name, name))
    scene.put(make_group("g", 1), *members("g", [("old",)]))
    (decision,) = scene.settle()
    scene.bind(decision, phase="Running")
    attached = VolumeAttachment(
        uid="a", name="a", resource_version=1, node="n0", driver="csi.example.com", volume="old"
    )
    scene.put(attached)
    scene.put(make_group("h", 1), *members("h", [("new",)]))
    scene.change(decision.bindings[0].uid, phase="Succeeded")
    assert scene.settle() == []
    scene.step(after_ms=3000)
    assert "1 node(s) exceed max volume count" in sentence(scene, "h")
    scene.remove(attached)
    assert len(scene.settle()) == 1


def test_attaching_the_volumes_of_pods_that_are_there_moves_nothing() -> None:
    scene = Scene(hosts(1))
    limits = (CsiLimit(driver="csi.example.com", volumes_max=9),)
    scene.put(CsiNode(uid="csi-n0", name="n0", resource_version=1, drivers=limits))
    volume = make_volume("v", phase="Bound", claim_name="d", driver="csi.example.com", handle="h")
    scene.put(volume, bound_to("d", "v"))
    scene.put(make_group("g", 1), *members("g", [("d",)]))
    (decision,) = scene.settle()
    scene.bind(decision, phase="Running")
    storage = scene.state.node_capacity.storage
    shape = scene.state.members[decision.bindings[0].uid].shape
    before = storage.version(shape)

    def attach(name: str, volume: str) -> None:
        scene.put(
            VolumeAttachment(
                uid=name,
                name=name,
                resource_version=1,
                node="n0",
                driver="csi.example.com",
                volume=volume,
            )
        )

    attach("a", "v")
    assert storage.version(shape) == before
    scene.put(make_volume("w", driver="csi.example.com", handle="w"))
    before = storage.version(shape)
    attach("b", "w")
    assert storage.version(shape) != before
