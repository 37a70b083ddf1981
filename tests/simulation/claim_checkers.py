"""Judges everything about claims: volumes and devices have one owner each, and no pod is bound
before what it asks for can be used where it goes.

Read from what etcd holds at the write, and from the decisions as they are stored; what a deciding
cycle read late (how much capacity a zone has left) counts as it was published.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from shared.contracts.cluster import ResourceSliceChanges, StorageCapacityChanges, Synced
from shared.contracts.decisions import GangDecision, VolumeChoice
from shared.kube.resources import NODES, PODS, RESOURCE_CLAIMS, VOLUME_CLAIMS, VOLUMES
from tests.simulation import allocation_checkers as allocations
from tests.simulation.claims import Claims
from tests.simulation.device_features import PARTS_GIB, tolerates_broken
from tests.simulation.devices import (
    devices_of,
    extended_claim_of,
    parts_of,
    requests_devices,
    reserved_for,
)
from tests.simulation.kube_api import ENDED
from tests.simulation.kube_server import Obj, Write, with_
from tests.simulation.nodes import zone_of
from tests.simulation.truth import Stored, Truth
from tests.simulation.volumes import (
    COMPLETED,
    DRIVER,
    PER_NODE,
    ClaimKey,
    gang_of,
    gib_of,
    key_of,
    reaches,
)
from tests.simulation.world import World

_BINDERS: Final = "binder"
#: The controller of claims takes a second; after a fault it starts again.
_RESERVED_S: Final = 15.0
_GIB: Final = 1 << 30

#: What a choice takes: a volume by UID, or a device by pool and name.
Taken = str | tuple[str, str]


class ClaimCheckers:
    """All of them, on one run with claims."""

    def __init__(
        self, world: World, claims: Claims, truth: Truth, *, broken: Callable[[str, str], None]
    ) -> None:
        """`broken(gang, what)` ends the run."""
        self._etcd = world.etcd
        self._world = world
        self._claims = claims
        self._truth = truth
        self._broken = broken
        #: UIDs of claims and volumes that a stored decision names; names of claims that it makes.
        self._named: set[str] = set()
        #: UID of the claim that has each device.
        self._owners: dict[tuple[str, str], str] = {}
        #: By zone: its published capacity, with the sequence of CLUSTER.
        self._published_gib: dict[str, list[tuple[int, int]]] = {}
        #: By the name of a slice: its devices with a taint, with the sequence of CLUSTER.
        self._published_broken: dict[str, list[tuple[int, set[tuple[str, str]]]]] = {}
        #: (claim's UID, node) of volumes that were to be made.
        self._asked: set[tuple[str, str]] = set()
        #: Undisturbed seconds that a claim has been reserved for a pod that is gone.
        self._stale_s: dict[tuple[str, str], float] = {}
        truth.listeners.append(self._appended)

    def restored(self) -> None:
        """etcd went back: what is given out now is what the backup says."""
        self._owners.clear()
        self._stale_s.clear()
        for claim in self._etcd.all(RESOURCE_CLAIMS):
            self._give_out(claim, judged=False)

    # ---- decisions

    def judge_decision(self, stored: Stored, act: GangDecision) -> None:
        """A decision is stored: no other gang may have what it takes."""
        self._named.update(one.claim_uid for one in act.volumes)
        self._named.update(one.claim_uid or one.claim for one in act.devices)
        self._named.update(one.volume_uid for one in act.volumes)
        mine = _taken(act)
        together = {*mine}
        for other in self._truth.unanswered.values():
            if not isinstance(other.act, GangDecision) or other.seq in {stored.seq, act.again}:
                continue
            theirs = _taken(self._landing(other.act))
            together |= theirs.keys()
            for what, claim in theirs.items():
                if mine.get(what, claim) != claim:
                    self._broken(
                        self._gang(act),
                        f"{what} is chosen for two claims: by decision {other.seq}, which has no "
                        f"outcome yet, and by {stored.seq}",
                    )
        chosen = [what for what in together if not isinstance(what, str)]
        for counter in allocations.overdrawn(chosen):
            self._broken(
                self._gang(act), f"decisions with no outcome yet, and {stored.seq}, take {counter}"
            )
        self._no_broken_device(stored, act)
        for choice in act.volumes:
            if choice.volume:
                continue
            # A volume that was asked for there before may still be on its way: no second one is.
            asked = choice.claim_uid, choice.node
            if asked not in self._asked:
                self._capacity_was_published(stored, act, choice)
                self._asked.add(asked)

    def _landing(self, act: GangDecision) -> GangDecision:
        """What of a decision may still be carried out: of a pod that is gone nothing is."""
        replace, may_land = msgspec.structs.replace, self._truth.may_land
        there = {one.uid for one in act.bindings if may_land(replace(act, bindings=(one,)))}
        return replace(
            act,
            volumes=tuple(one for one in act.volumes if one.pod_uid in there),
            devices=tuple(one for one in act.devices if one.pod_uid in there),
        )

    def _capacity_was_published(
        self, stored: Stored, act: GangDecision, choice: VolumeChoice
    ) -> None:
        claim = self._etcd.get(VOLUME_CLAIMS, choice.namespace, choice.claim)
        zone = zone_of(choice.node)
        published = [
            gib for seq, gib in self._published_gib.get(zone, ()) if seq <= act.cycle.cluster_seq
        ]
        if claim is not None and published and published[-1] < gib_of(claim):
            self._broken(
                self._gang(act),
                f"decision {stored.seq} has a volume made in zone {zone}, of which CLUSTER had "
                f"that {published[-1]} GiB are left",
            )

    def _no_broken_device(self, stored: Stored, act: GangDecision) -> None:
        """No device is chosen that had, as far as the planner had read, a taint that its request
        does not tolerate.
        """
        broken: set[tuple[str, str]] = set()
        for history in self._published_broken.values():
            read = [of for seq, of in history if seq <= act.cycle.cluster_seq]
            broken |= read[-1] if read else set()
        for choice in act.devices if broken else ():
            claim = self._etcd.get(RESOURCE_CLAIMS, choice.namespace, choice.claim)
            for request, _, pool, device in choice.devices:
                if (pool, device) not in broken or claim is None:
                    continue
                if not tolerates_broken(allocations.request_named(claim, request)):
                    self._broken(
                        self._gang(act),
                        f"decision {stored.seq} chooses {device} of {pool} for request {request}, "
                        "which does not tolerate its taint",
                    )
                self._truth.counts["chosen: tolerated taint"] += 1

    def _appended(self, stream: str, seq: int, record: object) -> None:
        del stream
        if isinstance(record, Synced) and record.epoch == seq:
            # The new watcher's snapshot has what there is now.
            self._published_gib.clear()
            self._published_broken.clear()
        if isinstance(record, ResourceSliceChanges):
            for published in record.changed:
                pool, listed = (
                    published.pool,
                    zip(published.devices, published.details, strict=False),
                )
                broken = {(pool, name) for name, details in listed if details.taints}
                self._published_broken.setdefault(published.name, []).append((seq, broken))
        if isinstance(record, StorageCapacityChanges):
            for one in record.changed:
                zone = one.name.removeprefix("room-")
                self._published_gib.setdefault(zone, []).append((seq, one.capacity_bytes // _GIB))

    def _gang(self, act: GangDecision) -> str:
        for binding in act.bindings:
            found = self._world.lives.places.get(binding.uid)
            if found is not None:
                return found[0].name
        return act.gang_id

    # ---- writes

    def wrote(self, write: Write, *, judged: bool) -> None:
        """Something was written; of pods only their bindings matter here (`bound`)."""
        if write.resource == RESOURCE_CLAIMS:
            self._take_back(write.new["metadata"]["uid"])
            if write.type != "DELETED":
                self._give_out(write.new, judged=judged)
                if judged and devices_of(write.new):
                    self._judge_allocation(write.new, write.old)
        if not judged:
            return
        if write.resource in {VOLUMES, VOLUME_CLAIMS, RESOURCE_CLAIMS}:
            uid, name = write.new["metadata"]["uid"], write.new["metadata"]["name"]
            if write.by.startswith(_BINDERS) and self._named.isdisjoint((uid, name)):
                self._broken(gang_of(write.new), f"a binder wrote {uid}, which no decision names")
        if write.resource == VOLUMES:
            self._volume_changed(write)
        elif write.resource == VOLUME_CLAIMS and write.type == "MODIFIED":
            self._claim_bound(write.new)

    def _volume_changed(self, write: Write) -> None:
        before = ((write.old or {}).get("spec") or {}).get("claimRef") or {}
        now = write.new["spec"].get("claimRef") or {}
        if before.get("uid") and now.get("uid") and before["uid"] != now["uid"]:
            self._broken(
                gang_of({"metadata": now}),
                f"{write.new['metadata']['name']} is taken from {before['name']} by {write.by}",
            )

    def _claim_bound(self, claim: Obj) -> None:
        volume = claim["spec"].get("volumeName")
        if not volume:
            return
        for other in self._etcd.all(VOLUME_CLAIMS):
            if other["spec"].get("volumeName") == volume and key_of(other) != key_of(claim):
                self._broken(
                    gang_of(claim),
                    f"{volume} is bound to two claims: {key_of(claim)[1]} and {key_of(other)[1]}",
                )

    def _take_back(self, uid: str) -> None:
        for device in [one for one, owner in self._owners.items() if owner == uid]:
            del self._owners[device]

    def _judge_allocation(self, claim: Obj, before: Obj | None) -> None:
        """The allocation is legal, and together with all others within what there is."""
        if why := allocations.why_illegal(claim):
            uid = claim["metadata"]["uid"]
            self._broken(gang_of(claim), f"{uid} has devices that it may not have: {why}")
        every = self._etcd.all(RESOURCE_CLAIMS)
        for counter in allocations.overdrawn(two for one in every for two in devices_of(one)):
            self._broken(gang_of(claim), f"{counter} are allocated")
        if before is None or not devices_of(before):
            for feature in allocations.features_of(claim):
                self._truth.counts[f"allocated: {feature}"] += 1
            if allocations.shares_counters(claim, every):
                self._truth.counts["allocated: beside a partition of the same GPU"] += 1

    def _give_out(self, claim: Obj, *, judged: bool) -> None:
        uid = claim["metadata"]["uid"]
        if judged and devices_of(claim) and not reserved_for(claim):
            self._broken(gang_of(claim), f"{uid} has devices and is reserved for no pod")
        parts = parts_of(claim)
        for pool, _ in parts if judged else ():
            given = sum(
                gib
                for one in self._etcd.all(RESOURCE_CLAIMS)
                for of, gib in parts_of(one)
                if of == pool
            )
            if given > PARTS_GIB:
                self._broken(gang_of(claim), f"{given} of {PARTS_GIB} GiB of {pool} are allocated")
        for device in devices_of(claim) if not parts else ():
            other = self._owners.setdefault(device, uid)
            if judged and other != uid:
                self._broken(
                    gang_of(claim), f"{device} is allocated twice: to {other} and to {uid}"
                )

    def named(self, write: Write, *, judged: bool) -> bool:
        """Whether a binder has only written into a pod which claim serves its extended resources,
        or has removed that. Not `judged`: the claim was there before etcd was restored.
        """
        if write.type != "MODIFIED" or write.old is None:
            return False
        if extended_claim_of(write.old) == extended_claim_of(write.new):
            return False
        names = {"extendedResourceClaimStatus": None}
        before, now = (_unversioned(with_(one, status=names)) for one in (write.old, write.new))
        if before != now:
            return False
        if not judged:
            return True
        pod, uid, name = write.new, write.new["metadata"]["uid"], extended_claim_of(write.new)
        gang = gang_of(pod)
        if pod["spec"].get("nodeName"):
            self._broken(gang, f"{uid} is bound, and names another claim now: {name or 'none'}")
        if name:
            claim = self._etcd.get(RESOURCE_CLAIMS, pod["metadata"]["namespace"], name)
            if claim is None or not devices_of(claim) or uid not in _users_of(claim):
                self._broken(gang, f"{uid} names {name}, which has no devices for it")
        return True

    # ---- bindings

    def bound(self, gang: str, pod: Obj) -> None:
        """A binder has bound a pod: can it use all its claims there?"""
        spec, uid = pod["spec"], pod["metadata"]["uid"]
        node = self._etcd.get(NODES, "", spec["nodeName"])
        for claim_key in volume_claims_of(pod):
            why = self._unusable(claim_key, pod, node)
            if why:
                self._broken(gang, f"{uid} is bound to {spec['nodeName']}, but {why}")
        for claim_key in device_claims_of(pod):
            why = self._not_its_devices(claim_key, uid, spec["nodeName"])
            if why:
                self._broken(gang, f"{uid} is bound to {spec['nodeName']}, but {why}")
        self._not_too_many(gang, spec["nodeName"])

    def _unusable(self, key: ClaimKey, pod: Obj, node: Obj | None) -> str:
        claim = self._etcd.get(VOLUME_CLAIMS, *key)
        if claim is None:
            return f"its claim {key[1]} is not there"
        owners = claim["metadata"].get("ownerReferences") or ()
        if owners and owners[0]["uid"] != pod["metadata"]["uid"]:
            return f"its claim {key[1]} was made for another pod"
        spec, notes = claim["spec"], claim["metadata"].get("annotations") or {}
        if not spec.get("volumeName") or COMPLETED not in notes:
            return f"its claim {key[1]} has no volume"
        volume = self._etcd.get(VOLUMES, "", spec["volumeName"])
        owner = (volume["spec"].get("claimRef") or {}).get("uid") if volume is not None else ""
        if volume is None or owner != claim["metadata"]["uid"]:
            return f"the volume of {key[1]} is not there, or not its own"
        if node is not None and not reaches(volume, node):
            return f"the volume of {key[1]} cannot be reached from there"
        if "ReadWriteOncePod" in spec["accessModes"]:
            for other in self._users(key):
                if other["metadata"]["uid"] != pod["metadata"]["uid"]:
                    return f"{key[1]} is used by two pods: also by {other['metadata']['uid']}"
        return ""

    def _not_its_devices(self, key: ClaimKey, uid: str, node: str) -> str:
        claim = self._etcd.get(RESOURCE_CLAIMS, *key)
        if claim is None:
            return f"its claim {key[1]} is not there"
        devices = devices_of(claim)
        wanted = allocations.wanted_devices(claim)
        if len(set(devices)) != wanted:
            return f"its claim {key[1]} has {len(set(devices))} of {wanted} devices"
        if why := allocations.why_illegal(claim):
            return f"its claim {key[1]} has devices that it may not have: {why}"
        if any(pool != node for pool, _ in devices):
            return f"the devices of {key[1]} cannot be reached from there: {devices}"
        if uid not in _users_of(claim):
            return f"its claim {key[1]} is not reserved for it"
        return ""

    def _users(self, key: ClaimKey) -> list[Obj]:
        return [pod for pod in self._on_nodes() if key in volume_claims_of(pod)]

    def _on_nodes(self) -> list[Obj]:
        return [
            pod
            for pod in self._etcd.all(PODS)
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ENDED
        ]

    def _not_too_many(self, gang: str, node: str) -> None:
        handles: dict[str, str] = {}
        for pod in self._on_nodes():
            if pod["spec"]["nodeName"] != node:
                continue
            for key in volume_claims_of(pod):
                claim = self._etcd.get(VOLUME_CLAIMS, *key)
                name = claim["spec"].get("volumeName", "") if claim is not None else ""
                volume = self._etcd.get(VOLUMES, "", name)
                if volume is not None and (volume["spec"].get("csi") or {}).get("driver") == DRIVER:
                    handles[volume["spec"]["csi"]["volumeHandle"]] = pod["metadata"]["name"]
        if len(handles) > PER_NODE:
            self._broken(
                gang,
                f"{node} has {len(handles)} volumes of a driver that takes {PER_NODE}: "
                + ", ".join(f"{one} of {pod}" for one, pod in sorted(handles.items())),
            )

    # ---- what needs time

    def look(self, passed_s: float, *, disturbed: bool) -> None:
        """Nothing stays reserved for pods that are gone."""
        living = {pod["metadata"]["uid"] for pod in self._etcd.all(PODS)}
        stale = {
            (claim["metadata"]["uid"], one["uid"])
            for claim in self._etcd.all(RESOURCE_CLAIMS)
            for one in reserved_for(claim)
            if one["uid"] not in living
        }
        self._stale_s = {
            pair: self._stale_s.get(pair, 0.0) + (0.0 if disturbed else passed_s) for pair in stale
        }
        for (claim, uid), since_s in sorted(self._stale_s.items()):
            if since_s > _RESERVED_S:
                self._broken(uid, f"{claim} stays reserved for {uid}, which is gone")

    def judge_the_end(self) -> None:
        """Gangs have ended: what they asked for is given back."""
        for name in self._claims.left():
            self._broken(gang_of({"metadata": {"name": name}}), f"{name} is left over")
        for device, uid in sorted(self._owners.items()):
            self._broken("", f"{device} is left to {uid}")


def volume_claims_of(pod: Obj) -> list[ClaimKey]:
    """Keys of the claims for volumes that a pod uses."""
    namespace, name = key_of(pod)
    return [
        (namespace, one["persistentVolumeClaim"]["claimName"])
        if "persistentVolumeClaim" in one
        else (namespace, f"{name}-{one['name']}")
        for one in pod["spec"].get("volumes") or ()
    ]


def device_claims_of(pod: Obj) -> list[ClaimKey]:
    """Keys of the claims for devices that a pod uses; of one not made yet no name is known."""
    made = {
        one["name"]: one["resourceClaimName"]
        for one in pod["status"].get("resourceClaimStatuses") or ()
    }
    names = [
        one.get("resourceClaimName") or made.get(one["name"], "?")
        for one in pod["spec"].get("resourceClaims") or ()
    ]
    if requests_devices(pod):
        names.append(extended_claim_of(pod) or "?")
    return [(pod["metadata"]["namespace"], name) for name in names]


def _users_of(claim: Obj) -> set[str]:
    return {one["uid"] for one in reserved_for(claim)}


def _unversioned(obj: Obj) -> Obj:
    return with_(obj, metadata={"resourceVersion": None})


def _taken(act: GangDecision) -> dict[Taken, str]:
    """The claim for which a decision takes each volume and each device: its UID, or its name if the
    binder makes it.
    """
    taken: dict[Taken, str] = {one.volume_uid: one.claim_uid for one in act.volumes if one.volume}
    for choice in act.devices:
        for _, _, pool, device in choice.devices if not choice.shares else ():
            taken[pool, device] = choice.claim_uid or choice.claim
    return taken
