"""Storage of the simulated cluster: the volume controller, a provisioner, local volumes.

Three classes: `local` (volumes that are there, one node each), `zonal` (made for a claim when its
node is chosen, for that node's zone; limited room and so many to a node) and `ready` (made at
once). The controllers act only on what etcd holds, some time later, and look at everything again
when they start. A provisioner that finds no room takes the chosen node off the claim; what it has
begun continues even if another provisioner does, too.
"""

from collections.abc import Callable
from typing import Final

from shared.kube.resources import (
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    NODES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from tests.simulation.kube_server import Etcd, Obj, Write, with_
from tests.simulation.nodes import HOST, ZONE, zone_of

LOCAL: Final = "local"
ZONAL: Final = "zonal"
READY: Final = "ready"
DRIVER: Final = "volumes.simulated"
#: Of the driver's, on one node at a time: two members of a gang always find room.
PER_NODE: Final = 3
#: Waiting gangs may keep what was made for them: enough for all at once.
CAPACITY_GIB: Final = 400
#: Local volumes of a node: likewise.
_LOCALS: Final = 6
_LOCAL_GIB: Final = 10
_BY: Final = "volume-controller"
_PROVISIONER: Final = "provisioner"
BOUND_BY: Final = "pv.kubernetes.io/bound-by-controller"
COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"

ClaimKey = tuple[str, str]
"""Namespace and name."""


class VolumeControllers:
    """All that serves claims for volumes."""

    def __init__(
        self,
        etcd: Etcd,
        *,
        note: Callable[[str, str], None],
        zone_gib: int = CAPACITY_GIB,
        slow_s: float = 0.0,
    ) -> None:
        """`note(gang, what)` is called for each event of a claim. A zone has room for `zone_gib`,
        and the provisioner takes up to `slow_s` longer even when nothing is wrong.
        """
        self.etcd = etcd
        self.loop = etcd.loop
        self.is_up = True
        #: Zones in which nothing more can be made, whatever was published.
        self.full: set[str] = set()
        #: The provisioner takes so much longer.
        self.slow_s = 0.0
        self._zone_gib = zone_gib
        self._always_slow_s = slow_s
        self._note = note
        self._rng = etcd.loop.dice.rng("volumes")
        self._life = 1
        #: UIDs of claims for which something is being made.
        self._making: set[str] = set()
        etcd.observers.append(self._wrote)
        etcd.on_restore.append(self.restart)

    def begin(self) -> None:
        """Classes, the driver, and what it says of its room."""
        for name, provisioner, mode in (
            (LOCAL, "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            (ZONAL, DRIVER, "WaitForFirstConsumer"),
            (READY, DRIVER, "Immediate"),
        ):
            made = {"metadata": {"name": name}, "provisioner": provisioner}
            self.etcd.create(STORAGE_CLASSES, {**made, "volumeBindingMode": mode}, by="user")
        driver = {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}}
        self.etcd.create(CSI_DRIVERS, driver, by=_PROVISIONER)
        for node in self.etcd.all(NODES):
            self._node_joined(node["metadata"]["name"])
        for zone in sorted({zone_of(node["metadata"]["name"]) for node in self.etcd.all(NODES)}):
            capacity = {
                "metadata": {"name": f"room-{zone}", "namespace": "storage"},
                "storageClassName": ZONAL,
                "nodeTopology": {"matchLabels": {ZONE: zone}},
                "capacity": f"{self._zone_gib}Gi",
            }
            self.etcd.create(CSI_CAPACITIES, capacity, by=_PROVISIONER)

    # ---- faults of volumes

    def stop(self) -> None:
        """Both die: what they were about to do is not done."""
        self.is_up = False
        self._life += 1
        self._making.clear()

    def restart(self) -> None:
        """They start (again) and look at everything."""
        self.is_up = True
        self._life += 1
        self._making.clear()
        for volume in self.etcd.all(VOLUMES):
            self._soon(self._look_at_volume, volume["metadata"]["name"])
        for claim in self.etcd.all(VOLUME_CLAIMS):
            self._soon(self._look_at_claim, key_of(claim))
        for node in self.etcd.all(NODES):
            self._node_joined(node["metadata"]["name"])
        for zone in self._zones():
            self._soon(self.publish, zone)

    def publish(self, zone: str) -> None:
        """Say how much room a zone has: some time after it changed, as drivers do."""
        found = self.etcd.get(CSI_CAPACITIES, "storage", f"room-{zone}")
        if found is not None and self.is_up:
            text = f"{0 if zone in self.full else self._room_gib(zone)}Gi"
            self.etcd.change(
                CSI_CAPACITIES, found, lambda now: {**now, "capacity": text}, by=_PROVISIONER
            )

    def heal(self) -> None:
        """Nothing is broken any more."""
        zones, self.full, self.slow_s = sorted(self.full), set(), 0.0
        if not self.is_up:
            self.restart()
        for zone in zones:
            self.publish(zone)

    # ---- what they see

    def _wrote(self, write: Write) -> None:
        metadata = write.new["metadata"]
        if write.resource == VOLUMES:
            self._soon(self._look_at_volume, metadata["name"])
        elif write.resource == VOLUME_CLAIMS:
            self._soon(self._look_at_claim, key_of(write.new))
            if write.type == "DELETED" and write.new["spec"].get("volumeName"):
                self._soon(self._look_at_volume, write.new["spec"]["volumeName"])
        elif write.resource == NODES and write.type == "ADDED":
            self.loop.at(0.1 + self._rng.random(), self._node_joined, metadata["name"])

    def _soon(self, action: Callable[..., None], *given: object) -> None:
        if self.is_up:
            life = self._life
            self.loop.at(0.01 + self._rng.random() * 0.15, self._if_alive, life, action, given)

    def _if_alive(self, life: int, action: Callable[..., None], given: tuple[object, ...]) -> None:
        if life == self._life:
            action(*given)

    # ---- the controller

    def _look_at_volume(self, name: str) -> None:
        volume = self.etcd.get(VOLUMES, "", name)
        if volume is None:
            return
        owner, phase = volume["spec"].get("claimRef"), volume["status"].get("phase")
        if owner is None or not owner.get("uid"):
            if phase != "Available":
                self._change(VOLUMES, volume, status={"phase": "Available"})
            if owner is not None:
                self._look_at_claim((owner["namespace"], owner["name"]))
            return
        claim = self.etcd.get(VOLUME_CLAIMS, owner["namespace"], owner["name"])
        if claim is not None and claim["metadata"]["uid"] == owner["uid"]:
            if claim["spec"].get("volumeName") in {None, "", name}:
                self._look_at_claim(key_of(claim))
            else:
                # Bound elsewhere: what a scheduler had reserved is free again.
                self._change(
                    VOLUMES, volume, spec={"claimRef": None}, status={"phase": "Available"}
                )
        elif phase != "Released":
            self._change(VOLUMES, volume, status={"phase": "Released"})
        else:
            self._reclaim(volume)

    def _reclaim(self, volume: Obj) -> None:
        """Its claim is gone: made ones are deleted, local ones are wiped and offered again."""
        self.etcd.remove(VOLUMES, volume, by=_PROVISIONER)
        spec = volume["spec"]
        if spec["storageClassName"] == LOCAL:
            self.loop.at(0.2 + self._rng.random(), self._offer_local, volume["metadata"]["name"])
        else:
            zone = _zone(volume)
            self.loop.at(0.2 + self._rng.random(), self.publish, zone)

    def _look_at_claim(self, key: ClaimKey) -> None:
        claim = self.etcd.get(VOLUME_CLAIMS, *key)
        if claim is None:
            return
        spec, notes = claim["spec"], claim["metadata"].get("annotations") or {}
        if spec.get("volumeName"):
            if self.etcd.get(VOLUMES, "", spec["volumeName"]) is None:
                self._change(VOLUME_CLAIMS, claim, status={"phase": "Lost"})
            for other in self._also_named_for(claim):
                self._soon(self._look_at_volume, other)
            return
        volume = self._named_for(claim)
        if volume is not None:
            self._bind(claim, volume)
        elif spec["storageClassName"] == READY:
            self._make(claim, self._rng.choice(self._zones()))
        elif spec["storageClassName"] == ZONAL and notes.get(SELECTED_NODE):
            self._make(claim, zone_of(notes[SELECTED_NODE]))

    def _named_for(self, claim: Obj) -> Obj | None:
        """The volume that names the claim as its owner."""
        namespace, name = key_of(claim)
        for volume in self.etcd.all(VOLUMES):
            owner = volume["spec"].get("claimRef") or {}
            ours = (owner.get("namespace"), owner.get("name")) == (namespace, name)
            if ours and owner.get("uid") in {None, "", claim["metadata"]["uid"]}:
                return volume
        return None

    def _also_named_for(self, claim: Obj) -> list[str]:
        """The volumes that name the claim as their owner, though it is bound to another one."""
        uid, bound = claim["metadata"]["uid"], claim["spec"]["volumeName"]
        return [
            volume["metadata"]["name"]
            for volume in self.etcd.all(VOLUMES)
            if (volume["spec"].get("claimRef") or {}).get("uid") == uid
            and volume["metadata"]["name"] != bound
        ]

    def _bind(self, claim: Obj, volume: Obj) -> None:
        """The volume first, then the claim: two writes, between which anything may happen."""
        uid = claim["metadata"]["uid"]
        owner = volume["spec"]["claimRef"]
        if owner.get("uid") != uid or volume["status"].get("phase") != "Bound":
            self._change(
                VOLUMES,
                volume,
                spec={"claimRef": {**owner, "uid": uid}},
                status={"phase": "Bound"},
            )
            return
        notes = {**(claim["metadata"].get("annotations") or {}), COMPLETED: "yes", BOUND_BY: "yes"}
        self._change(
            VOLUME_CLAIMS,
            claim,
            metadata={"annotations": notes},
            spec={"volumeName": volume["metadata"]["name"]},
            status={"phase": "Bound"},
        )

    def _change(self, kind: object, found: Obj, **parts: Obj) -> None:
        resource = VOLUMES if kind == VOLUMES else VOLUME_CLAIMS
        self.etcd.change(resource, found, lambda now: with_(now, **parts), by=_BY)

    # ---- the provisioner

    def _make(self, claim: Obj, zone: str) -> None:
        uid = claim["metadata"]["uid"]
        if uid in self._making:
            return
        self._making.add(uid)
        slow_s = max(self.slow_s, self._always_slow_s)
        late_s = 0.05 + self._rng.random() ** 2 * 2.0 + self._rng.random() * slow_s
        self.loop.at(late_s, self._if_alive, self._life, self._made, (claim, zone))

    def _made(self, claim: Obj, zone: str) -> None:
        uid = claim["metadata"]["uid"]
        self._making.discard(uid)
        gib = gib_of(claim)
        if zone in self.full or gib > self._room_gib(zone):
            self._refuse(claim, zone)
            return
        volume = {
            "metadata": {"name": f"pvc-{uid}"},
            "spec": {
                "capacity": {"storage": f"{gib}Gi"},
                "accessModes": claim["spec"]["accessModes"],
                "storageClassName": claim["spec"]["storageClassName"],
                "volumeMode": "Filesystem",
                "claimRef": {
                    "namespace": claim["metadata"]["namespace"],
                    "name": claim["metadata"]["name"],
                    "uid": uid,
                },
                "nodeAffinity": _only(ZONE, zone),
                "csi": {"driver": DRIVER, "volumeHandle": f"handle-{uid}"},
            },
            "status": {},
        }
        self.etcd.create(VOLUMES, volume, by=_PROVISIONER)
        self.loop.at(0.2 + self._rng.random(), self.publish, zone)

    def _refuse(self, claim: Obj, zone: str) -> None:
        """No capacity there: let the scheduler choose again."""
        now = self.etcd.get(VOLUME_CLAIMS, *key_of(claim))
        notes = (now or claim)["metadata"].get("annotations") or {}
        if now is None or zone_of(notes.get(SELECTED_NODE, "")) != zone:
            self._soon(self._look_at_claim, key_of(claim))
            return
        self._note(gang_of(claim), f"nothing can be made for {key_of(claim)[1]} in zone {zone}")
        left = {key: value for key, value in notes.items() if key != SELECTED_NODE}
        self.etcd.change(
            VOLUME_CLAIMS,
            now,
            lambda found: with_(found, metadata={"annotations": left}),
            by=_PROVISIONER,
        )

    def _zones(self) -> list[str]:
        return sorted({zone_of(node["metadata"]["name"]) for node in self.etcd.all(NODES)})

    def _room_gib(self, zone: str) -> int:
        made = [one for one in self.etcd.all(VOLUMES) if _zone(one) == zone]
        return self._zone_gib - sum(_capacity_gib(one) for one in made)

    # ---- nodes

    def _node_joined(self, name: str) -> None:
        """Its driver says how many volumes it takes; its disks are offered. A machine that is back
        finds what it said before: without, schedulers would know of no limit.
        """
        if self.etcd.get(NODES, "", name) is None:
            return
        drivers = [
            {
                "name": DRIVER,
                "nodeID": name,
                "topologyKeys": [ZONE],
                "allocatable": {"count": PER_NODE},
            }
        ]
        limits = {"metadata": {"name": name}, "spec": {"drivers": drivers}}
        self.etcd.create(CSI_NODES, limits, by="node")
        for number in range(_LOCALS):
            self._offer_local(f"disk-{number}-{name}")

    def _offer_local(self, name: str) -> None:
        node = name.split("-", 2)[2]
        volume = {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": f"{_LOCAL_GIB}Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": LOCAL,
                "volumeMode": "Filesystem",
                "nodeAffinity": _only(HOST, node),
            },
            "status": {"phase": "Available"},
        }
        self.etcd.create(VOLUMES, volume, by="node")


def key_of(obj: Obj) -> ClaimKey:
    """Namespace and name of a claim."""
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def gang_of(obj: Obj) -> str:
    """Claims are named after their gangs: gang-7-0, gang-7-x3-scratch."""
    return "-".join(obj["metadata"]["name"].split("-")[:2])


def gib_of(claim: Obj) -> int:
    """What a claim asks for."""
    text: str = claim["spec"]["resources"]["requests"]["storage"]
    return int(text.removesuffix("Gi"))


def reaches(volume: Obj, node: Obj) -> bool:
    """Whether the volume can be used on that node."""
    labels = node["metadata"].get("labels") or {}
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    return any(
        all(labels.get(one["key"]) in one["values"] for one in term["matchExpressions"])
        for term in terms
    )


def _only(key: str, value: str) -> Obj:
    there = {"key": key, "operator": "In", "values": [value]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}


def _zone(volume: Obj) -> str:
    """Zone of a volume that was made; "" of local ones."""
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    wanted = terms[0]["matchExpressions"][0]
    return str(wanted["values"][0]) if wanted["key"] == ZONE else ""


def _capacity_gib(volume: Obj) -> int:
    text: str = volume["spec"]["capacity"]["storage"]
    return int(text.removesuffix("Gi"))
