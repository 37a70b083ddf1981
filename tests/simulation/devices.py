"""Devices of the simulated cluster: each node's driver, and the controller of ResourceClaims.

The driver of a node publishes its devices when the node joins; with the node they are gone. In some
runs the class of the devices has an extended resource, for which binders make claims, and a second
driver has a device on each node of which claims get parts. In some of these, drivers publish
everything that `device_features` has. The
controller makes claims from templates and writes their names into the pod, takes reservations of
pods away that are gone or have ended, gives devices back with the last reservation, and deletes
claims with their pods. It acts on what etcd holds, some time later, and looks at everything again
when it starts.
"""

from collections.abc import Callable
from typing import Final

from shared.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from tests.simulation import device_features as features
from tests.simulation.device_drivers import FeatureDrivers
from tests.simulation.device_features import (
    DEVICE_CLASS,
    DEVICE_DRIVER,
    PARTS_CLASS,
    PARTS_DRIVER,
    PARTS_GIB,
    PER_NODE,
)
from tests.simulation.kube_api import ENDED, Refusal
from tests.simulation.kube_server import Etcd, Obj, Write, with_
from tests.simulation.volumes import ClaimKey, key_of

#: The extended resource that the class has in some runs; no node has a device plugin for it.
EXTENDED: Final = "gpu.simulated/gpus"
_BY: Final = "claim-controller"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"


class DeviceControllers:
    """All that serves claims for devices."""

    def __init__(
        self, etcd: Etcd, *, every_kind: bool = False, every_feature: bool = False
    ) -> None:
        """`every_kind`: the class has the extended resource, and there are devices with parts.
        `every_feature`: devices have attributes, and some are partitions of others.
        """
        self.etcd = etcd
        self.loop = etcd.loop
        self.is_up = True
        #: A policy refuses to write the statuses of claims.
        self.refuses = False
        #: Nodes whose drivers have withdrawn their devices.
        self._withdrawn: set[str] = set()
        self._every_kind = every_kind
        #: Drivers of devices with attributes and shared counters; None: there are none.
        self.features = FeatureDrivers(etcd) if every_feature else None
        self._rng = etcd.loop.dice.rng("devices")
        self._life = 1
        self._generation = 1
        etcd.observers.append(self._wrote)
        etcd.on_restore.append(self.restart)

    def begin(self) -> None:
        """The class, and what there is on the nodes."""
        expression = f"device.driver == '{DEVICE_DRIVER}'"
        spec: Obj = {"selectors": [{"cel": {"expression": expression}}]}
        if self._every_kind:
            spec["extendedResourceName"] = EXTENDED
            selects = {"cel": {"expression": f"device.driver == '{PARTS_DRIVER}'"}}
            parts = {"metadata": {"name": PARTS_CLASS}, "spec": {"selectors": [selects]}}
            self.etcd.create(DEVICE_CLASSES, parts, by="user")
        self.etcd.create(
            DEVICE_CLASSES, {"metadata": {"name": DEVICE_CLASS}, "spec": spec}, by="user"
        )
        for name in (features.NIC_CLASS, features.SPLIT_CLASS) if self.features else ():
            selects = {"cel": {"expression": f"device.driver == '{name}.simulated'"}}
            one: Obj = {"metadata": {"name": name}, "spec": {"selectors": [selects]}}
            self.etcd.create(DEVICE_CLASSES, one, by="user")
        for node in self.etcd.all(NODES):
            self._publish(node["metadata"]["name"])

    def stop(self) -> None:
        """The controller dies: what it was about to do is not done."""
        self.is_up = False
        self._life += 1

    def restart(self) -> None:
        """It starts (again) and looks at everything."""
        self.is_up = True
        self._life += 1
        for claim in self.etcd.all(RESOURCE_CLAIMS):
            self._soon(self._look_at_claim, key_of(claim))
        for pod in self.etcd.all(PODS):
            self._soon(self._look_at_pod, key_of(pod))
        for node in self.etcd.all(NODES):
            self._publish(node["metadata"]["name"])

    def heal(self) -> None:
        """Nothing is broken any more."""
        self.refuses = False
        if self.features is not None:
            self.features.heal()
        for node in sorted(self._withdrawn):
            self.offer(node)
        if not self.is_up:
            self.restart()

    # ---- faults of devices

    def withdraw(self, node: str) -> None:
        """A driver ends: its slice is deleted, whatever has its devices."""
        self._withdrawn.add(node)
        self._withdraw(node)

    def offer(self, node: str) -> None:
        """It is back."""
        self._withdrawn.discard(node)
        self._publish(node)

    def policy(self, resource: Resource, sub: str) -> Refusal | None:
        """See `kube_api.PatchPolicy`."""
        if self.refuses and (resource, sub) == (RESOURCE_CLAIMS, "status"):
            return Refusal(403, "Forbidden", "a policy refuses to allocate devices")
        return None

    # ---- what it sees

    def _wrote(self, write: Write) -> None:
        if write.resource == RESOURCE_CLAIMS:
            self._soon(self._look_at_claim, key_of(write.new))
        elif write.resource == PODS:
            self._pod_written(write)
        elif write.resource == NODES and write.type == "ADDED":
            self.loop.at(0.1 + self._rng.random(), self._publish, write.new["metadata"]["name"])
        elif write.resource == NODES and write.type == "DELETED":
            self._withdraw(write.new["metadata"]["name"])

    def _pod_written(self, write: Write) -> None:
        pod, uid, is_deleted = write.new, write.new["metadata"]["uid"], write.type == "DELETED"
        names_claims = bool(pod["spec"].get("resourceClaims") or extended_claim_of(pod))
        if names_claims:
            self._soon(self._look_at_pod, key_of(pod))
        is_over = is_deleted or pod["status"].get("phase") in ENDED
        # The garbage collector reads owner references only: an undone decision leaves a claim that
        # the pod's status does not name.
        if (names_claims and is_over) or (is_deleted and self._owns_claim(uid)):
            self._soon(self._look_at_claims_of, uid)

    def _owns_claim(self, uid: str) -> bool:
        return any(_owner(claim) == uid for claim in self.etcd.all(RESOURCE_CLAIMS))

    def _soon(self, action: Callable[..., None], given: object) -> None:
        if self.is_up:
            life = self._life
            self.loop.at(0.01 + self._rng.random() * 0.2, self._if_alive, life, action, given)

    def _if_alive(self, life: int, action: Callable[..., None], given: object) -> None:
        if life == self._life:
            action(given)

    # ---- drivers

    def _publish(self, node: str) -> None:
        if self.etcd.get(NODES, "", node) is None or node in self._withdrawn:
            return
        self._generation += 1
        if self.features is not None:
            self.features.publish(node)
        else:
            gpus: list[Obj] = [{"name": f"gpu-{number}"} for number in range(PER_NODE)]
            self._publish_slice(node, "gpus", DEVICE_DRIVER, gpus)
        if self._every_kind:
            policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
            memory = {"value": f"{PARTS_GIB}Gi", "requestPolicy": policy}
            whole = {"name": "whole", "allowMultipleAllocations": True}
            self._publish_slice(
                node, "parts", PARTS_DRIVER, [{**whole, "capacity": {"memory": memory}}]
            )

    def _publish_slice(self, node: str, of: str, driver: str, devices: list[Obj]) -> None:
        pool = {"name": node, "generation": self._generation, "resourceSliceCount": 1}
        spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": devices}
        self.etcd.create(
            RESOURCE_SLICES, {"metadata": {"name": f"{node}-{of}"}, "spec": spec}, by="node"
        )

    def _withdraw(self, node: str) -> None:
        if self.features is not None:
            self.features.withdraw(node)
        for of in ("gpus", "parts"):
            there = self.etcd.get(RESOURCE_SLICES, "", f"{node}-{of}")
            if there is not None:
                self.etcd.remove(RESOURCE_SLICES, there, by="gc")

    # ---- the controller

    def _look_at_pod(self, key: ClaimKey) -> None:
        """Make the claims that its templates ask for, and write their names into its status."""
        pod = self.etcd.get(PODS, *key)
        if pod is None or pod["status"].get("phase") in ENDED:
            return
        named = {one["name"] for one in pod["status"].get("resourceClaimStatuses") or ()}
        for wanted in pod["spec"].get("resourceClaims") or ():
            if "resourceClaimTemplateName" in wanted and wanted["name"] not in named:
                self._make(pod, wanted)

    def _make(self, pod: Obj, wanted: Obj) -> None:
        metadata = pod["metadata"]
        found = self._made_for(pod)
        if found is None:
            suffix = f"{self._rng.getrandbits(20):05x}"
            kind, _, number = wanted["resourceClaimTemplateName"].rpartition("-")
            owner: Obj = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"]}
            owner |= {"uid": metadata["uid"], "controller": True}
            name = f"{metadata['name']}-gpus-{suffix}"
            claim = device_claim(
                name, metadata["namespace"], features.claim_devices(kind, int(number))
            )
            claim = with_(claim, metadata={"ownerReferences": [owner]})
            self.etcd.create(RESOURCE_CLAIMS, claim, by=_BY)
            # The pod is changed by a second write; between the two anything may happen.
            self._soon(self._look_at_pod, key_of(pod))
            return
        statuses = [
            *(pod["status"].get("resourceClaimStatuses") or ()),
            {"name": wanted["name"], "resourceClaimName": found["metadata"]["name"]},
        ]
        self.etcd.change(
            PODS, pod, lambda now: with_(now, status={"resourceClaimStatuses": statuses}), by=_BY
        )

    def _made_for(self, pod: Obj) -> Obj | None:
        uid = pod["metadata"]["uid"]
        return next(
            (
                claim
                for claim in self.etcd.all(RESOURCE_CLAIMS)
                if _owner(claim) == uid and not claim["metadata"].get("deletionTimestamp")
            ),
            None,
        )

    def _look_at_claims_of(self, uid: object) -> None:
        for claim in self.etcd.all(RESOURCE_CLAIMS):
            if _owner(claim) == uid or any(one["uid"] == uid for one in reserved_for(claim)):
                self._look_at_claim(key_of(claim))

    def _look_at_claim(self, key: ClaimKey) -> None:
        claim = self.etcd.get(RESOURCE_CLAIMS, *key)
        if claim is None:
            return
        living = {
            pod["metadata"]["uid"]
            for pod in self.etcd.all(PODS)
            if pod["status"].get("phase") not in ENDED
        }
        reserved = reserved_for(claim)
        valid = [one for one in reserved if one["uid"] in living]
        owner, leaving = _owner(claim), claim["metadata"].get("deletionTimestamp")
        if len(valid) < len(reserved) or (leaving and not valid and _finalizers(claim)):
            self._release(claim, valid)
        elif owner and owner not in living and not leaving:
            delete_claim(self.etcd, claim, by=_BY)
        elif leaving and not _finalizers(claim):
            self.etcd.remove(RESOURCE_CLAIMS, claim, by=_BY)

    def _release(self, claim: Obj, valid: list[Obj]) -> None:
        """A pod that is gone needs no devices; the last one returns them."""
        status: Obj = {"reservedFor": valid or None}
        metadata: Obj = {}
        if not valid:
            status["allocation"] = None
            metadata["finalizers"] = None
        self.etcd.change(
            RESOURCE_CLAIMS, claim, lambda now: with_(now, status=status, metadata=metadata), by=_BY
        )


def device_claim(name: str, namespace: str, devices: Obj) -> Obj:
    """A claim that requests this (`device_features.claim_devices`)."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": devices},
        "status": {},
    }


def delete_claim(etcd: Etcd, claim: Obj, *, by: str) -> None:
    """Delete as the API server does: one with devices waits for its controller."""
    if not _finalizers(claim):
        etcd.remove(RESOURCE_CLAIMS, claim, by=by)
        return
    etcd.change(
        RESOURCE_CLAIMS,
        claim,
        lambda now: with_(
            now, metadata={"deletionTimestamp": now["metadata"]["creationTimestamp"]}
        ),
        by=by,
        verb="delete",
    )


def extended_claim_of(pod: Obj) -> str:
    """The claim for extended resources that a pod's status names; "": none."""
    named: Obj = pod["status"].get("extendedResourceClaimStatus") or {}
    return str(named.get("resourceClaimName", ""))


def requests_devices(pod: Obj) -> int:
    """How many devices a pod requests by the extended resource."""
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    return int(requests.get(EXTENDED, "0"))


def reserved_for(claim: Obj) -> list[Obj]:
    """Pods that may use it."""
    return list((claim.get("status") or {}).get("reservedFor") or ())


def devices_of(claim: Obj) -> list[tuple[str, str]]:
    """Pool and name of each device that it has, or has a part of."""
    return [(one["pool"], one["device"]) for one in results_of(claim)]


def parts_of(claim: Obj) -> list[tuple[str, int]]:
    """Pool of each device of which it has a part, and the part in GiB."""
    return [
        (one["pool"], int(one["consumedCapacity"]["memory"]) >> 30)
        for one in results_of(claim)
        if "shareID" in one
    ]


def results_of(claim: Obj) -> list[Obj]:
    """The devices of its allocation, with the requests that they are for."""
    allocation: Obj = (claim.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def _owner(claim: Obj) -> str:
    """UID of the pod that it was made for."""
    owners = claim["metadata"].get("ownerReferences") or ()
    return str(owners[0]["uid"]) if owners else ""


def _finalizers(claim: Obj) -> list[str]:
    return list(claim["metadata"].get("finalizers") or ())
