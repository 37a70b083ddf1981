"""The simulated controllers of volumes and devices do what the real ones do, and the checkers of
claims see what must not be.
"""

from random import Random

import pytest

from shared.kube.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from tests.simulation.claim_checkers import ClaimCheckers
from tests.simulation.claims import Asked, ClaimShape
from tests.simulation.device_features import DEVICE_DRIVER, PARTS_DRIVER, claim_devices
from tests.simulation.devices import FINALIZER, device_claim, devices_of
from tests.simulation.kube_server import Obj, with_
from tests.simulation.lives import NAMESPACE
from tests.simulation.loop import Dice, SimLoop
from tests.simulation.truth import Truth
from tests.simulation.volumes import COMPLETED, SELECTED_NODE, gang_of, key_of, reaches
from tests.simulation.workload import Plan, Shape
from tests.simulation.world import World


class Scene:
    """A world with claims in which no gang arrives."""

    def __init__(self) -> None:
        self.loop = SimLoop(Dice(1))
        self.world = World(
            self.loop,
            Shape(gangs=0),
            on_fault=lambda _: None,
            note=lambda _gang, _what: None,
            claims=ClaimShape(),
        )
        self.world.begin()
        self.etcd = self.world.etcd
        assert self.world.claims is not None
        self.claims = self.world.claims
        self.broken: list[str] = []
        self.checkers = ClaimCheckers(
            self.world,
            self.claims,
            Truth(lambda: self.loop.now_ms),
            broken=lambda _, what: self.broken.append(what),
        )
        self.etcd.observers.append(lambda write: self.checkers.wrote(write, judged=True))
        self.loop.run_for(5.0)

    def claim(self, name: str, of: str) -> Obj:
        made = self.claims.claim_volume(name, of, 5)
        assert made is not None
        return made

    def select(self, claim: Obj, node: str) -> None:
        notes = {"annotations": {SELECTED_NODE: node}}
        self.etcd.change(VOLUME_CLAIMS, claim, lambda now: with_(now, metadata=notes), by="test")

    def pod(self, name: str, **spec: object) -> Obj:
        containers = [{"name": "main", "resources": {"requests": {"cpu": "1m"}}}]
        manifest = {"metadata": {"name": name, "namespace": NAMESPACE}}
        made = self.etcd.create(
            PODS,
            {
                **manifest,
                "spec": {"containers": containers, **spec},
                "status": {"phase": "Pending"},
            },
            by="test",
        )
        assert made is not None
        return made

    def now(self, claim: Obj) -> Obj:
        found = self.etcd.get(VOLUME_CLAIMS, *key_of(claim))
        assert found is not None
        return found


def test_a_volume_is_made_for_the_zone_of_the_chosen_node_and_goes_with_its_claim() -> None:
    scene = Scene()
    claim = scene.claim("gang-1-0", "zonal")
    scene.loop.run_for(5.0)
    assert "volumeName" not in scene.now(claim)["spec"]
    scene.select(claim, "node-1")
    scene.loop.run_for(5.0)
    found = scene.now(claim)
    assert COMPLETED in found["metadata"]["annotations"]
    volume = scene.etcd.get(VOLUMES, "", found["spec"]["volumeName"])
    assert volume is not None
    reached = [one["metadata"]["name"] for one in scene.etcd.all(NODES) if reaches(volume, one)]
    assert reached == ["node-1", "node-3"]
    scene.etcd.remove(VOLUME_CLAIMS, claim, by="test")
    scene.loop.run_for(5.0)
    assert scene.etcd.get(VOLUMES, "", found["spec"]["volumeName"]) is None


def test_a_provisioner_without_room_takes_the_chosen_node_off() -> None:
    scene = Scene()
    claim = scene.claim("gang-1-0", "zonal")
    scene.claims.volumes.full.add("a")
    scene.select(claim, "node-0")
    scene.loop.run_for(5.0)
    assert SELECTED_NODE not in (scene.now(claim)["metadata"].get("annotations") or {})


@pytest.mark.parametrize("stopped_s", [0.0, 3.0], ids=["at once", "after a restart"])
def test_a_local_volume_that_names_its_claim_is_bound_and_offered_again(stopped_s: float) -> None:
    scene = Scene()
    claim = scene.claim("gang-1-0", "local")
    uid = claim["metadata"]["uid"]
    volume = next(one for one in scene.etcd.all(VOLUMES))
    if stopped_s:
        scene.claims.volumes.stop()
        scene.loop.at(stopped_s, scene.claims.volumes.restart)
    owner = {"claimRef": {"namespace": NAMESPACE, "name": "gang-1-0", "uid": uid}}
    scene.etcd.change(VOLUMES, volume, lambda now: with_(now, spec=owner), by="test")
    scene.loop.run_for(5.0)
    name = volume["metadata"]["name"]
    assert scene.now(claim)["spec"]["volumeName"] == name
    scene.etcd.remove(VOLUME_CLAIMS, claim, by="test")
    scene.loop.run_for(5.0)
    again = scene.etcd.get(VOLUMES, "", name)
    assert again is not None
    assert (again["metadata"]["uid"] != volume["metadata"]["uid"], "claimRef" in again["spec"]) == (
        True,
        False,
    )


def test_a_claim_from_a_template_is_named_in_its_pod_and_deleted_with_it() -> None:
    scene = Scene()
    wanted = {"name": "gpus", "resourceClaimTemplateName": "gpus-2"}
    pod = scene.pod("gang-1-0", resourceClaims=[wanted])
    scene.loop.run_for(2.0)
    (claim,) = scene.etcd.all(RESOURCE_CLAIMS)
    statuses = scene.etcd.all(PODS)[0]["status"]["resourceClaimStatuses"]
    assert [one["resourceClaimName"] for one in statuses] == [claim["metadata"]["name"]]
    give_out(scene, claim, pod, "gpu-0", "gpu-1")
    scene.etcd.remove(PODS, pod, by="test")
    scene.loop.run_for(3.0)
    assert not scene.etcd.all(RESOURCE_CLAIMS)


def test_devices_go_back_with_the_last_pod_that_has_them_reserved() -> None:
    scene = Scene()
    claim = scene.etcd.create(
        RESOURCE_CLAIMS, device_claim("gang-1-all", NAMESPACE, claim_devices("gpus", 1)), by="test"
    )
    assert claim is not None
    pod = scene.pod("gang-1-0", resourceClaims=[{"name": "g", "resourceClaimName": "gang-1-all"}])
    give_out(scene, claim, pod, "gpu-0")
    scene.loop.run_for(2.0)
    assert devices_of(scene.etcd.all(RESOURCE_CLAIMS)[0]) == [("node-0", "gpu-0")]
    done = {"phase": "Succeeded"}
    scene.etcd.change(PODS, pod, lambda now: with_(now, status=done), by="test")
    scene.loop.run_for(2.0)
    assert not devices_of(scene.etcd.all(RESOURCE_CLAIMS)[0])


def test_devices_that_a_driver_has_withdrawn_are_gone_until_it_is_back() -> None:
    scene = Scene()
    devices = scene.claims.devices
    assert scene.etcd.get(RESOURCE_SLICES, "", "node-0-gpus") is not None
    devices.withdraw("node-0")
    devices.restart()
    assert scene.etcd.get(RESOURCE_SLICES, "", "node-0-gpus") is None
    devices.heal()
    assert scene.etcd.get(RESOURCE_SLICES, "", "node-0-gpus") is not None


def test_the_claim_for_extended_resources_of_a_pod_goes_with_it() -> None:
    scene = Scene()
    pod = scene.pod("gang-1-0")
    made = make_extended_claim(scene, pod)
    named = {"extendedResourceClaimStatus": {"resourceClaimName": "gang-1-0-x"}}
    scene.etcd.change(PODS, pod, lambda now: with_(now, status=named), by="test")
    give_out(scene, made, pod, "gpu-0")
    scene.loop.run_for(1.0)
    assert scene.etcd.all(RESOURCE_CLAIMS)
    scene.etcd.remove(PODS, scene.etcd.all(PODS)[0], by="test")
    scene.loop.run_for(3.0)
    assert not scene.etcd.all(RESOURCE_CLAIMS)


def test_a_claim_that_the_status_of_its_pod_does_not_name_goes_with_the_pod() -> None:
    """As a binder leaves it that undoes a decision: without devices, with the finalizer."""
    scene = Scene()
    pod = scene.pod("gang-1-0")
    make_extended_claim(scene, pod)
    scene.loop.run_for(1.0)
    assert scene.etcd.all(RESOURCE_CLAIMS)
    scene.etcd.remove(PODS, pod, by="test")
    scene.loop.run_for(3.0)
    assert not scene.etcd.all(RESOURCE_CLAIMS)


def test_a_claim_that_is_made_for_a_pod_after_its_deletion_is_deleted() -> None:
    scene = Scene()
    pod = scene.pod("gang-1-0")
    scene.etcd.remove(PODS, pod, by="test")
    scene.pod("gang-1-0")
    scene.loop.run_for(1.0)
    make_extended_claim(scene, pod)
    scene.loop.run_for(3.0)
    assert not scene.etcd.all(RESOURCE_CLAIMS)


def test_the_claim_that_a_waiting_gang_shares_is_deleted_and_made_again() -> None:
    scene = Scene()
    plan = make_plan()
    scene.claims.asked["gang-7"] = Asked("shared_gpus", 1)
    scene.world.lives.begin([plan])
    scene.loop.run_for(2.0)
    (before,) = scene.etcd.all(RESOURCE_CLAIMS)
    assert scene.claims.delete_shared_claim(Random(1)) == "gang-7-all"
    assert not scene.etcd.all(RESOURCE_CLAIMS)
    scene.loop.run_for(4.0)
    (after,) = scene.etcd.all(RESOURCE_CLAIMS)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_checkers_see_devices_of_a_claim_that_no_pod_has_reserved() -> None:
    scene = Scene()
    claim = scene.etcd.create(
        RESOURCE_CLAIMS, device_claim("gang-1-all", NAMESPACE, claim_devices("gpus", 1)), by="test"
    )
    assert claim is not None
    device = {"driver": DEVICE_DRIVER, "pool": "node-0", "device": "gpu-0"}
    results = [{"request": "gpus", **device}]
    status = {"allocation": {"devices": {"results": results}}}
    scene.etcd.change(RESOURCE_CLAIMS, claim, lambda now: with_(now, status=status), by="test")
    assert "is reserved for no pod" in scene.broken.pop()


def test_checkers_see_parts_of_a_device_that_exceed_it() -> None:
    scene = Scene()
    for name, gib in (("gang-1-0", 6), ("gang-2-0", 3)):
        claim = scene.etcd.create(
            RESOURCE_CLAIMS, device_claim(name, NAMESPACE, claim_devices("parts", gib)), by="test"
        )
        assert claim is not None
        part = {"shareID": name, "consumedCapacity": {"memory": str(gib << 30)}}
        give_out(scene, claim, scene.pod(f"{name}-x"), "whole", **part)
    assert scene.broken == ["9 of 8 GiB of node-0 are allocated"]


def test_checkers_see_devices_and_volumes_given_to_two() -> None:
    scene = Scene()
    for name in ("gang-1-all", "gang-2-all"):
        claim = scene.etcd.create(
            RESOURCE_CLAIMS, device_claim(name, NAMESPACE, claim_devices("gpus", 1)), by="test"
        )
        assert claim is not None
        give_out(scene, claim, scene.pod(f"{name}-0"), "gpu-0")
    assert "is allocated twice" in scene.broken.pop()
    volume = scene.etcd.all(VOLUMES)[0]
    for uid in ("first", "second"):
        own(scene, volume, uid)
    assert "is taken from gang-first" in scene.broken.pop()


def test_checkers_see_a_pod_bound_with_the_claim_of_its_predecessor() -> None:
    """As `former_pods_claim_used` has it, which takes minutes and is planted by `make certify`."""
    scene = Scene()
    volumes = [{"name": "scratch", "ephemeral": {}}]
    pod = scene.pod("gang-1-0", volumes=volumes, nodeName="node-0")
    claim = scene.claim("gang-1-0-scratch", "zonal")
    predecessor = {"ownerReferences": [{"uid": "predecessor"}]}
    scene.etcd.change(VOLUME_CLAIMS, claim, lambda now: with_(now, metadata=predecessor), by="test")
    scene.checkers.bound("gang-1", pod)
    assert any("was made for another pod" in what for what in scene.broken)


def test_claims_are_named_after_their_gangs() -> None:
    scene = Scene()
    plan = make_plan()
    scene.claims.asked["gang-7"] = Asked("local", 1)
    scene.world.lives.begin([plan])
    scene.loop.run_for(2.0)
    names = {gang_of(one) for one in scene.etcd.all(VOLUME_CLAIMS)}
    assert names == {"gang-7", "exclusive-0", "exclusive-1"}


def make_extended_claim(scene: Scene, pod: Obj) -> Obj:
    """The claim that a binder creates for the pod's extended resources."""
    owner = {"uid": pod["metadata"]["uid"], "controller": True}
    claim = with_(
        device_claim(f"{pod['metadata']['name']}-x", NAMESPACE, claim_devices("gpus", 1)),
        metadata={"ownerReferences": [owner], "finalizers": [FINALIZER]},
    )
    made = scene.etcd.create(RESOURCE_CLAIMS, claim, by="test")
    assert made is not None
    return made


def make_plan() -> Plan:
    return Plan(
        name="gang-7",
        arrives_ms=0,
        size=1,
        minimum=1,
        cpu_milli=500,
        runs_ms=500,
        group=None,
        owner="TFJob",
    )


def own(scene: Scene, volume: Obj, uid: str) -> None:
    """Write a claim of that UID into the volume as its owner, whatever claim has it."""
    owner = {"claimRef": {"namespace": NAMESPACE, "name": f"gang-{uid}", "uid": uid}}
    scene.etcd.change(VOLUMES, volume, lambda now: with_(now, spec=owner), by="test")


def give_out(scene: Scene, claim: Obj, pod: Obj, *devices: str, **part: object) -> None:
    """As a scheduler does: devices of node-0, reserved for one pod."""
    driver = PARTS_DRIVER if part else DEVICE_DRIVER
    results = [
        {"request": "gpus", "driver": driver, "pool": "node-0", "device": one, **part}
        for one in devices
    ]
    reserved = {"resource": "pods", "name": "x", "uid": pod["metadata"]["uid"]}
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [reserved]}
    metadata = {"finalizers": [FINALIZER]}
    scene.etcd.change(
        RESOURCE_CLAIMS, claim, lambda now: with_(now, status=status, metadata=metadata), by="test"
    )


@pytest.mark.parametrize("stopped_s", [0.0, 3.0], ids=["at once", "after a restart"])
def test_a_volume_whose_claim_is_bound_elsewhere_is_free_again(stopped_s: float) -> None:
    """As Kubernetes' own controller frees it: a scheduler's write came late."""
    scene = Scene()
    claim = scene.claim("gang-1-0", "local")
    first, second, *_ = scene.etcd.all(VOLUMES)
    owner = {"namespace": NAMESPACE, "name": "gang-1-0", "uid": claim["metadata"]["uid"]}
    if stopped_s:
        scene.claims.volumes.stop()
        scene.loop.at(stopped_s, scene.claims.volumes.restart)
    for volume in (first, second):
        scene.etcd.change(
            VOLUMES, volume, lambda now: with_(now, spec={"claimRef": owner}), by="test"
        )
    scene.loop.run_for(8.0)
    bound = scene.now(claim)["spec"]["volumeName"]
    named = [
        one["metadata"]["name"]
        for one in scene.etcd.all(VOLUMES)
        if one["spec"].get("claimRef", {}).get("name") == "gang-1-0"
    ]
    assert named == [bound]
    scene.etcd.remove(VOLUME_CLAIMS, claim, by="test")
    scene.loop.run_for(5.0)
    assert scene.claims.left() == []
