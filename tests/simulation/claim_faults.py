"""What goes wrong with volumes and devices in runs with claims, beside all that goes wrong in every
run: their controllers die, there is no room, a binder dies between a claim and its pod. In runs
with devices alone drivers withdraw their slices, policies refuse allocations, users delete claims
that pods wait for, and planners die while gangs get devices or evict pods for them. Where devices
have taints and shared counters, devices break, and pools are incomplete for a while.
"""

from functools import partial
from random import Random
from typing import Final

from shared.kube.resources import NODES
from tests.simulation.claims import Claims, ClaimShape
from tests.simulation.device_features import DEVICE_DRIVER, PARTS_DRIVER, devices_of_node
from tests.simulation.storm import Fault, Storm

WEIGHTS: Final[dict[str, float]] = {
    "kill_preparing": 6,
    "volumes_down": 2,
    "volumes_full": 2,
    "volumes_slow": 2,
    "devices_down": 2,
    "foreign_claims": 4,
}
DEVICE_WEIGHTS: Final[dict[str, float]] = {
    "kill_preparing": 4,
    "kill_planning": 4,
    "devices_down": 3,
    "devices_withdrawn": 4,
    "devices_refused": 3,
    "claim_deleted": 4,
}
FEATURE_WEIGHTS: Final[dict[str, float]] = {
    **DEVICE_WEIGHTS,
    "device_broken": 8,
    "pool_incomplete": 3,
}
_MEAN_GAP_MS: Final = 3_000


def draw(rng: Random, others: list[Fault], over_ms: int, shape: ClaimShape) -> list[Fault]:
    """The faults of one run, within the storms of the `others`."""
    faults: list[Fault] = []
    weighted = DEVICE_WEIGHTS if shape.device_faults else WEIGHTS
    if shape.device_features:
        weighted = FEATURE_WEIGHTS
    kinds, weights = list(weighted), list(weighted.values())
    for _ in range(over_ms // _MEAN_GAP_MS if others else 0):
        at_ms = rng.choice(others).at_ms + rng.randrange(1_000)
        number = len(others) + len(faults)
        faults.append(Fault(number, at_ms, rng.choices(kinds, weights)[0]))
    return faults


class ClaimFaults:
    """Brings them over a run, as part of its storm."""

    def __init__(self, storm: Storm, claims: Claims) -> None:
        self._storm = storm
        self._loop = storm.loop
        self._volumes = claims.volumes
        self._devices = claims.devices
        self._claims = claims
        storm.more = {kind: getattr(self, f"_{kind}") for kind in (*WEIGHTS, *FEATURE_WEIGHTS)}

    def _kill_preparing(self, rng: Random) -> str:
        """A binder dies between the writes of claims and the binding of their pods."""

        def strike() -> None:
            for one in self._loop.generations:
                if one.alive and not one.paused and one.name.startswith("binder"):
                    one.kill_at_effect = one.effects + rng.randint(1, 6)

        self._storm.aim_at("preparing", strike)
        return ""

    def _kill_planning(self, rng: Random) -> str:
        """A planner dies while a gang gets devices, or while its victims leave and their claims are
        deallocated: the other one takes over if it was the active one.
        """
        later_s = rng.random() * 2.0

        def strike() -> None:
            planners = [
                one
                for one in self._loop.generations
                if one.alive and not one.paused and one.name.startswith("gang-planner")
            ]
            if planners:
                self._loop.kill(rng.choice(planners))

        wanted = rng.choice(("preparing", "preempting"))
        self._storm.aim_at(wanted, lambda: self._loop.at(later_s, strike))
        return ""

    def _devices_withdrawn(self, rng: Random) -> str:
        """The driver of a node is replaced: its slice is gone for a while."""
        nodes = sorted(one["metadata"]["name"] for one in self._devices.etcd.all(NODES))
        if not nodes:
            return ""
        node, lasts_s = rng.choice(nodes), rng.choice((0.5, 3.0, 10.0))
        self._devices.withdraw(node)
        self._storm.later(lasts_s, self._devices.offer, node)
        return f"of {node} for {lasts_s:g} s"

    def _devices_refused(self, rng: Random) -> str:
        lasts_s = rng.choice((0.5, 3.0))
        self._devices.refuses = True
        self._storm.later(lasts_s, setattr, self._devices, "refuses", False)
        return f"for {lasts_s:g} s"

    def _device_broken(self, rng: Random) -> str:
        """A device has a taint for a while; pods that have it keep it."""
        nodes = sorted(one["metadata"]["name"] for one in self._devices.etcd.all(NODES))
        drivers = self._devices.features
        if not nodes or drivers is None:
            return ""
        node, lasts_s = rng.choice(nodes), rng.choice((1.0, 5.0, 15.0))
        names = [one.name for one in devices_of_node(node) if one.driver != PARTS_DRIVER]
        # Mostly GPUs: some requests tolerate a broken one.
        gpus = [one.name for one in devices_of_node(node) if one.driver == DEVICE_DRIVER]
        device = rng.choice(names if rng.random() < 0.3 else gpus)
        drivers.taint(node, device, broken=True)
        self._storm.later(lasts_s, partial(drivers.taint, broken=False), node, device)
        return f"{device} of {node} for {lasts_s:g} s"

    def _pool_incomplete(self, rng: Random) -> str:
        """The counters of a node's split GPUs are not published for a while."""
        nodes = sorted(one["metadata"]["name"] for one in self._devices.etcd.all(NODES))
        drivers = self._devices.features
        if not nodes or drivers is None:
            return ""
        node, lasts_s = rng.choice(nodes), rng.choice((0.5, 3.0, 10.0))
        drivers.hide_counters(node, hidden=True)
        self._storm.later(lasts_s, partial(drivers.hide_counters, hidden=False), node)
        return f"of {node} for {lasts_s:g} s"

    def _claim_deleted(self, rng: Random) -> str:
        return self._claims.delete_shared_claim(rng)

    def _volumes_down(self, rng: Random) -> str:
        lasts_s = rng.choice((0.5, 3.0, 8.0))
        self._volumes.stop()
        self._storm.later(lasts_s, self._volumes.restart)
        return f"for {lasts_s:g} s"

    def _devices_down(self, rng: Random) -> str:
        lasts_s = rng.choice((0.5, 3.0, 8.0))
        self._devices.stop()
        self._storm.later(lasts_s, self._devices.restart)
        return f"for {lasts_s:g} s"

    def _volumes_full(self, rng: Random) -> str:
        """No capacity is left in a zone, which the driver publishes some time later."""
        zone, lasts_s = rng.choice(("a", "b")), rng.choice((3.0, 10.0))
        self._volumes.full.add(zone)
        self._loop.at(rng.random() * 3.0, self._volumes.publish, zone)
        self._storm.later(lasts_s, self._has_room, zone)
        return f"{zone} for {lasts_s:g} s"

    def _has_room(self, zone: str) -> None:
        self._volumes.full.discard(zone)
        self._volumes.publish(zone)

    def _volumes_slow(self, rng: Random) -> str:
        lasts_s = rng.choice((5.0, 15.0))
        self._volumes.slow_s = rng.choice((4.0, 25.0))
        self._storm.later(lasts_s, setattr, self._volumes, "slow_s", 0.0)
        return f"for {lasts_s:g} s"

    def _foreign_claims(self, rng: Random) -> str:
        count = rng.randint(1, 4)
        for _ in range(count):
            self._loop.at(rng.random() * 2.0, self._claims.foreign_claim)
        return f"{count} volumes"
