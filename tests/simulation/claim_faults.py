"""What goes wrong with volumes and devices in runs with claims, beside all that goes wrong in every
run: their controllers die, there is no room, a binder dies between a claim and its pod.
"""

from random import Random
from typing import Final

from tests.simulation.claims import Claims
from tests.simulation.storm import Fault, Storm

WEIGHTS: Final[dict[str, float]] = {
    "kill_preparing": 6,
    "volumes_down": 2,
    "volumes_full": 2,
    "volumes_slow": 2,
    "devices_down": 2,
    "foreign_claims": 4,
}
_MEAN_GAP_MS: Final = 3_000


def draw(rng: Random, others: list[Fault], over_ms: int) -> list[Fault]:
    """The faults of one run, within the storms of the `others`."""
    faults: list[Fault] = []
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
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
        storm.more = {kind: getattr(self, f"_{kind}") for kind in WEIGHTS}

    def _kill_preparing(self, rng: Random) -> str:
        """A binder dies between the writes of claims and the binding of their pods."""

        def strike() -> None:
            for one in self._loop.generations:
                if one.alive and not one.paused and one.name.startswith("binder"):
                    one.kill_at_effect = one.effects + rng.randint(1, 6)

        self._storm.aim_at("preparing", strike)
        return ""

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
