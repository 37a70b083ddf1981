"""Volumes, claims and devices for tests of the planner."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from services.gang_planner.core.constraints.feasibility import Fits
from services.gang_planner.core.constraints.masks import Masks
from shared.model.devices import (
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from shared.model.objects import Node, Pod
from shared.model.reference_objects import (
    Claim,
    StorageClass,
    Volume,
)
from shared.model.terms import Requirement, SelectorTerm
from tests.services.gang_planner.core.inside import session_of
from tests.services.gang_planner.core.scene import Scene, make_node, make_pods, make_shape

GIB: Final = 1 << 30
HOST: Final = "kubernetes.io/hostname"


def on_host(*names: str) -> tuple[SelectorTerm, ...]:
    """The node affinity of a local volume."""
    return (SelectorTerm(expressions=(Requirement(key=HOST, operator="In", values=names),)),)


def make_class(name: str = "local", *, provisioner: str = "", **fields: Any) -> StorageClass:
    """A class that waits for the first consumer, without provisioner unless one is named."""
    return StorageClass(
        uid=f"class-{name}",
        name=name,
        resource_version=1,
        provisioner=provisioner or "kubernetes.io/no-provisioner",
        **{"wait_for_first_consumer": True, **fields},
    )


def make_volume(name: str, node: str = "", *, gib: int = 10, **fields: Any) -> Volume:
    """An available volume of class `local`, on one node if one is named."""
    defaults: dict[str, Any] = {
        "capacity_bytes": gib * GIB,
        "access_modes": ("ReadWriteOnce",),
        "storage_class": "local",
        "phase": "Available",
        "node_affinity": on_host(node) if node else None,
    }
    return Volume(uid=f"pv-{name}", name=name, resource_version=1, **{**defaults, **fields})


def make_claim(name: str, *, gib: int = 5, **fields: Any) -> Claim:
    """An unbound claim of class `local` in namespace `team`."""
    defaults: dict[str, Any] = {
        "namespace": "team",
        "storage_class": "local",
        "access_modes": ("ReadWriteOnce",),
        "request_bytes": gib * GIB,
        "phase": "Pending",
    }
    return Claim(uid=f"pvc-{name}", name=name, resource_version=1, **{**defaults, **fields})


def bound_to(name: str, volume: str, **fields: Any) -> Claim:
    """A claim that is bound to its volume."""
    return make_claim(name, volume_name=volume, bind_completed=True, phase="Bound", **fields)


def make_device_class(name: str = "gpu", driver: str = "gpu.example.com") -> DeviceClass:
    """A class of all devices of one driver."""
    return DeviceClass(uid=f"dc-{name}", name=name, resource_version=1, driver=driver)


def make_slice(
    pool: str, devices: int, *, names: tuple[str, ...] = (), **fields: Any
) -> ResourceSlice:
    """So many devices, or these, in a pool that is named after their node."""
    uid = f"slice-{pool}-{fields.get('generation', 1)}"
    defaults: dict[str, Any] = {
        "uid": uid,
        "name": uid,
        "driver": "gpu.example.com",
        "pool": pool,
        "generation": 1,
        "node": pool,
        "devices": names or tuple(f"gpu-{index}" for index in range(devices)),
    }
    return ResourceSlice(resource_version=1, **{**defaults, **fields})


def make_device_claim(name: str, count: int = 1, **fields: Any) -> ResourceClaim:
    """A claim for devices of class `gpu` in namespace `team`."""
    defaults: dict[str, Any] = {
        "namespace": "team",
        "requests": (DeviceRequest(name="r", device_class="gpu", count=count),),
        "resource_version": 1,
    }
    return ResourceClaim(uid=f"rc-{name}", name=name, **{**defaults, **fields})


def hosts(count: int, **labels: str) -> list[Node]:
    return [
        make_node(f"n{index}", labels=tuple(sorted({HOST: f"n{index}", **labels}.items())))
        for index in range(count)
    ]


def members(gang: str, claims: Iterable[tuple[str, ...]], **requests: int) -> list[Pod]:
    """One pod per entry, each with these claims."""
    pods = make_pods(gang, 0, b"")
    for index, names in enumerate(claims):
        shape = make_shape(requests, claims=names, namespace="team")
        (pod,) = make_pods(gang, 1, shape)
        name = f"{gang}-{index}"
        pods.append(msgspec.structs.replace(pod, uid=name, name=name, index=index))
    return pods


def sentence(scene: Scene, gang: str) -> str:
    why = scene.verdicts[f"group-{gang}"].why
    assert why is not None
    return why.sentence


def assert_counts_are_current(scene: Scene, pods: Iterable[Pod]) -> None:
    """The planner's cached counts of nodes for these pods equal counts that nothing was cached
    for.
    """
    state, session = scene.state, session_of(scene.planner)
    masks = Masks(state.nodes, session.fits.masks.filters)
    fresh = Fits(state.node_capacity.copy(), masks, session.fits.filters)
    for pod in pods:
        shape = state.members[pod.uid].shape
        assert session.fits.counts(shape).tolist() == fresh.counts(shape).tolist()
