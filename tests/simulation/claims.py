"""Claims that users make for their gangs, and what becomes of them with their gangs.

A run with claims has the same gangs as it would have without: some of them ask for volumes or
devices as well. What is asked for is chosen so that every gang could be placed whole on the empty
cluster, whatever other gangs keep while they wait.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Final, Literal

import msgspec

from shared.kube.resources import PODS, RESOURCE_CLAIMS, VOLUME_CLAIMS, VOLUMES
from tests.simulation.device_features import claim_devices
from tests.simulation.devices import EXTENDED, DeviceControllers, delete_claim, device_claim
from tests.simulation.kube_server import Etcd, Obj, Write, with_
from tests.simulation.lives import NAMESPACE, Life, Lives
from tests.simulation.volumes import (
    CAPACITY_GIB,
    LOCAL,
    READY,
    ZONAL,
    ClaimKey,
    VolumeControllers,
    key_of,
)
from tests.simulation.workload import Plan, Shape

Kind = Literal[
    "local",
    "zonal",
    "scratch",
    "shared",
    "exclusive",
    "gpus",
    "shared_gpus",
    "extended",
    "parts",
    "matched",
    "apart",
    "beside",
    "partition",
    "alternatives",
    "shared_alternatives",
]
"""local, zonal: each place has a claim of its own that outlives its pods. scratch: each pod has one
that goes with it (an ephemeral volume). shared: all pods one volume, on one node. exclusive: the
first place has a claim for one pod at a time, which other gangs want, too. gpus: each pod has a
claim from a template. shared_gpus: all pods one claim. extended: each pod requests devices by the
extended resource of their class. parts: each pod has a claim for a part of a device. matched: for
two devices of one NUMA node. apart: of two NUMA nodes. beside: for two devices of two drivers at
one PCIe root. partition: for a split GPU, or a partition of one. alternatives: for the first of
these that can be had; shared_alternatives: all pods one such claim."""

#: Claims for one pod at a time, over which gangs meet.
_EXCLUSIVES: Final = 2
_USER: Final = "user"
_EPHEMERAL: Final = "ephemeral-controller"
#: Of a pod's volume: no service reads this name.
_VOLUME: Final = "data"
_FOREIGN_S: Final = 8.0
_APART: Final[tuple[Kind, ...]] = ("local", "zonal", "scratch", "gpus", "gpus", "exclusive")
_TOGETHER: Final[tuple[Kind, ...]] = ("shared", "shared_gpus", "shared", "shared_gpus")
_SHARED_DEVICES: Final[tuple[Kind, ...]] = ("shared_gpus", "shared_alternatives")
_ON_ONE_NODE: Final = frozenset((*_TOGETHER, *_SHARED_DEVICES))
#: Each pod has a claim from a template.
_FROM_TEMPLATES: Final[tuple[Kind, ...]] = (
    "gpus",
    "parts",
    "matched",
    "apart",
    "beside",
    "partition",
    "alternatives",
)


class ClaimShape(msgspec.Struct, frozen=True, kw_only=True):
    """How many gangs have claims, and of which kinds; what serves them. As it stands every gang can
    be placed in the end; one that is made tighter need not let that be so.
    """

    #: Gangs that have any.
    share: float = 0.5
    #: Only these; (): all.
    kinds: tuple[Kind, ...] = ()
    zone_gib: int = CAPACITY_GIB
    #: The provisioner takes up to so much longer.
    slow_s: float = 0.0
    #: The garbage collector deletes the claim of a deleted pod within so much.
    collector_s: float = 3.0
    #: What goes wrong concerns devices only.
    device_faults: bool = False
    #: Devices have attributes, taints, and counters that they share.
    device_features: bool = False


#: Half of the gangs want devices, of which there are too few for all at once: gangs are evicted for
#: them.
DEVICES: Final = ClaimShape(
    share=0.5, kinds=("gpus", "gpus", "extended", "parts", "shared_gpus"), device_faults=True
)
#: Likewise, with all that claims can request of devices.
DEVICE_FEATURES: Final = ClaimShape(
    share=0.9,
    kinds=(
        *("matched", "apart", "beside", "partition", "partition", "alternatives", "alternatives"),
        *("shared_alternatives", "gpus", "extended", "parts"),
    ),
    device_faults=True,
    device_features=True,
)


class Asked(msgspec.Struct, frozen=True):
    """What the pods of one gang ask for."""

    kind: Kind
    #: GiB of a volume, devices of a claim, or which of the exclusive ones.
    number: int


def draw(rng: Random, plans: Iterable[Plan], shape: Shape, claims: ClaimShape) -> dict[str, Asked]:
    """By gang: what its pods ask for."""
    asked: dict[str, Asked] = {}
    for plan in plans:
        if rng.random() >= claims.share:
            continue
        # It may grow by one, and with these all of it goes to one node.
        on_one_node = (plan.size + 1) * plan.cpu_milli <= shape.node_cpu_milli
        kinds = claims.kinds or (*_APART, *_TOGETHER)
        possible: list[Kind] = [one for one in kinds if on_one_node or one not in _ON_ONE_NODE]
        kind = rng.choice(possible)
        number = {
            "exclusive": rng.randrange(_EXCLUSIVES),
            "gpus": rng.randint(1, 2),
            "shared_gpus": rng.randint(1, 3),
        }
        number |= {"extended": number["gpus"], "parts": 2 * number["gpus"]}
        number |= {"matched": 2, "beside": 1, "apart": number["gpus"]}
        # Quarters, halves and wholes.
        number["partition"] = 1 << (number["shared_gpus"] - 1)
        number |= dict.fromkeys(("alternatives", "shared_alternatives"), number["shared_gpus"])
        asked[plan.name] = Asked(kind, number.get(kind, rng.randint(1, 5)))
    return asked


class Claims:
    """Users with claims, and the controllers that serve them."""

    def __init__(
        self, etcd: Etcd, lives: Lives, shape: ClaimShape, *, note: Callable[[str, str], None]
    ) -> None:
        self.etcd = etcd
        self.loop = etcd.loop
        self.shape = shape
        self.volumes = VolumeControllers(
            etcd, note=note, zone_gib=shape.zone_gib, slow_s=shape.slow_s
        )
        self.devices = DeviceControllers(
            etcd, every_kind=shape.device_faults, every_feature=shape.device_features
        )
        self.lives = lives
        self.asked: dict[str, Asked] = {}
        self._rng = etcd.loop.dice.rng("claims")
        self._foreign = 0
        lives.dress = self._dress
        lives.on_arrival = self._arrived
        lives.on_end = self._tidy_soon
        etcd.observers.append(self._wrote)
        etcd.on_restore.append(self._restored)

    def begin(self, plans: list[Plan], shape: Shape) -> None:
        """What there is before the first gang arrives."""
        self.asked = draw(self._rng, plans, shape, self.shape)
        self.volumes.begin()
        self.devices.begin()
        for number in range(_EXCLUSIVES):
            self.claim_volume(f"exclusive-{number}", READY, 1, mode="ReadWriteOncePod")

    def heal(self) -> None:
        """No more faults."""
        self.volumes.heal()
        self.devices.heal()

    def left(self) -> list[str]:
        """What gangs that have ended have left behind: nothing may, once time was given."""
        claims = [*self.etcd.all(VOLUME_CLAIMS), *self.etcd.all(RESOURCE_CLAIMS)]
        names = [key_of(claim)[1] for claim in claims]
        kept = [
            volume["metadata"]["name"]
            for volume in self.etcd.all(VOLUMES)
            if (volume["spec"].get("claimRef") or {}).get("name") not in {None, *names}
        ]
        return [name for name in names if not name.startswith("exclusive-")] + kept

    # ---- pods

    def _dress(self, pod: Obj, life: Life, slot: int) -> Obj:
        """What its pod asks for."""
        asked = self.asked.get(life.name)
        if asked is None:
            return pod
        name = _claim_of(life.name, slot, asked)
        spec: Obj
        if asked.kind in _FROM_TEMPLATES:
            template = f"{asked.kind}-{asked.number}"
            spec = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": template}]}
        elif asked.kind in _SHARED_DEVICES:
            spec = {"resourceClaims": [{"name": "gpus", "resourceClaimName": name}]}
        elif asked.kind == "extended":
            (container,) = pod["spec"]["containers"]
            requests = {**container["resources"]["requests"], EXTENDED: str(asked.number)}
            spec = {"containers": [with_(container, resources={"requests": requests})]}
        elif asked.kind == "scratch":
            spec = {"volumes": [{"name": _VOLUME, "ephemeral": {"volumeClaimTemplate": {}}}]}
        elif name:
            claim = {"claimName": name}
            spec = {"volumes": [{"name": _VOLUME, "persistentVolumeClaim": claim}]}
        else:
            return pod
        return with_(pod, spec=spec)

    # ---- claims of gangs

    def _arrived(self, life: Life) -> None:
        """Its user makes the claims, before its pods or a moment after."""
        asked = self.asked.get(life.name)
        if asked is None:
            return
        for slot in range(life.plan.size + 1):
            self.loop.at(self._rng.random() * 0.3, self._make, life, slot, asked)

    def _make(self, life: Life, slot: int, asked: Asked) -> None:
        name = _claim_of(life.name, slot, asked)
        if not name or life.ended or name.startswith("exclusive-"):
            return
        if asked.kind in _SHARED_DEVICES:
            claim = device_claim(name, NAMESPACE, claim_devices(asked.kind, asked.number))
            self.etcd.create(RESOURCE_CLAIMS, claim, by=_USER)
        elif asked.kind not in {*_FROM_TEMPLATES, "extended"}:
            of = LOCAL if asked.kind == "local" else ZONAL
            self.claim_volume(name, of, asked.number)

    def claim_volume(
        self, name: str, of: str, gib: int, *, mode: str = "ReadWriteOnce", **metadata: object
    ) -> Obj | None:
        """Make a claim for a volume of that class; None: there is one of that name."""
        claim = {
            "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
            "spec": {
                "storageClassName": of,
                "accessModes": [mode],
                "volumeMode": "Filesystem",
                "resources": {"requests": {"storage": f"{gib}Gi"}},
            },
            "status": {"phase": "Pending"},
        }
        return self.etcd.create(VOLUME_CLAIMS, claim, by=_USER)

    def _wrote(self, write: Write) -> None:
        if write.resource != PODS:
            return
        life = self.lives.life_of(write.new)
        asked = self.asked.get(life.name) if life is not None else None
        if life is None or asked is None:
            return
        if asked.kind == "scratch":
            self.loop.at(0.02 + self._rng.random() * 0.3, self._scratch, key_of(write.new), asked)
        if write.type == "DELETED" and life.ended:
            self._tidy_soon(life)

    def _scratch(self, key: ClaimKey, asked: Asked) -> None:
        """The claim of a pod is made for it and goes with it."""
        pod = self.etcd.get(PODS, *key)
        claim = self.etcd.get(VOLUME_CLAIMS, key[0], f"{key[1]}-{_VOLUME}")
        uid = pod["metadata"]["uid"] if pod is not None else ""
        if claim is None and pod is not None:
            owner: Obj = {"apiVersion": "v1", "kind": "Pod", "name": key[1]}
            owner |= {"uid": uid, "controller": True}
            self.claim_volume(f"{key[1]}-{_VOLUME}", ZONAL, asked.number, ownerReferences=[owner])
        elif claim is not None and claim["metadata"]["ownerReferences"][0]["uid"] != uid:
            # A pod made again under the name waits until the garbage collector has been here.
            self.loop.at(self._rng.random() ** 2 * self.shape.collector_s, self._collect, claim)
            self.loop.at(self.shape.collector_s + 0.1, self._scratch, key, asked)

    def _collect(self, claim: Obj) -> None:
        self.etcd.remove(VOLUME_CLAIMS, claim, by="gc")

    def _tidy_soon(self, life: Life) -> None:
        if life.name in self.asked:
            self.loop.at(0.1 + self._rng.random() * 0.5, self._tidy, life)

    def _tidy(self, life: Life) -> None:
        """Its user deletes the claims once no pod uses them."""
        pods = [pod for pod in self.etcd.all(PODS) if self.lives.life_of(pod) is life]
        if not life.ended or pods:
            return
        asked = self.asked[life.name]
        for slot in range(life.plan.size + 1):
            name = _claim_of(life.name, slot, asked)
            if not name or name.startswith("exclusive-"):
                continue
            if claim := self.etcd.get(VOLUME_CLAIMS, NAMESPACE, name):
                self.etcd.remove(VOLUME_CLAIMS, claim, by=_USER)
            if claim := self.etcd.get(RESOURCE_CLAIMS, NAMESPACE, name):
                delete_claim(self.etcd, claim, by=_USER)

    def _restored(self) -> None:
        """etcd went back: what was made since is made again, what is left over is deleted."""
        for claim in self.etcd.all(VOLUME_CLAIMS):
            if key_of(claim)[1].startswith("foreign-"):
                self.loop.at(1.0, self._collect, claim)
        for name, asked in self.asked.items():
            life = self.lives.lives.get(name)
            if life is not None and life.ended:
                self._tidy_soon(life)
            elif life is not None and life.arrived:
                self._arrived(life)
            if asked.kind == "scratch":
                for row in [*self.etcd.all(PODS), *self.etcd.all(VOLUME_CLAIMS)]:
                    pod = row["metadata"]["name"].removesuffix(f"-{_VOLUME}")
                    if pod.startswith(f"{name}-"):
                        self.loop.at(self._rng.random(), self._scratch, (NAMESPACE, pod), asked)

    def delete_shared_claim(self, rng: Random) -> str:
        """The user of a gang deletes the claim that its pods wait with, and makes it again; returns
        the claim's name, "" if there is none.
        """
        waiting = [
            (life, claim)
            for name, asked in self.asked.items()
            if asked.kind in _SHARED_DEVICES and (life := self.lives.lives.get(name)) is not None
            if (claim := self.etcd.get(RESOURCE_CLAIMS, NAMESPACE, _claim_of(name, 0, asked)))
            # One with devices stays until its pods are gone.
            and not life.ended
            and not claim["metadata"].get("finalizers")
        ]
        if not waiting:
            return ""
        life, claim = rng.choice(waiting)
        delete_claim(self.etcd, claim, by=_USER)
        self.loop.at(0.1 + rng.random() * 3.0, self._make, life, 0, self.asked[life.name])
        return key_of(claim)[1]

    # ---- the other scheduler

    def foreign_claim(self) -> None:
        """A foreign claim takes a free local volume, by its name."""
        free = [one for one in self.etcd.all(VOLUMES) if _is_free(one)]
        if not free:
            return
        self._foreign += 1
        volume = self._rng.choice(free)
        claim = self.claim_volume(f"foreign-claim-{self._foreign}", LOCAL, 1)
        assert claim is not None
        owner = {"namespace": NAMESPACE, "name": key_of(claim)[1], "uid": claim["metadata"]["uid"]}
        self.etcd.change(
            VOLUMES, volume, lambda now: with_(now, spec={"claimRef": owner}), by="other-scheduler"
        )
        self.loop.at(1.0 + self._rng.random() * _FOREIGN_S, self._collect, claim)


def _is_free(volume: Obj) -> bool:
    spec = volume["spec"]
    return spec["storageClassName"] == LOCAL and "claimRef" not in spec


def _claim_of(gang: str, slot: int, asked: Asked) -> str:
    """Name of the claim of one place that its user makes; "": none."""
    match asked.kind:
        case "local" | "zonal":
            return f"{gang}-{slot}"
        case "shared" | "shared_gpus" | "shared_alternatives":
            return f"{gang}-all"
        case "exclusive":
            return "" if slot else f"exclusive-{asked.number}"
        case _:
            return ""
