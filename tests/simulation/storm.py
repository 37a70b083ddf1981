"""Everything that can go wrong in a run, drawn from the seed before it begins.

Each fault has an instant, a kind and a generator of its own, so that leaving one out does not
change the rest: that is what makes a failing run shrinkable. Small faults of single requests and
messages are drawn where they happen (`KubeRates`, `BusFaults`); here their shares are set.
"""

from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from shared.contracts import subjects
from tests.simulation.kube_api import KubeRates
from tests.simulation.loop import Generation, SimLoop
from tests.simulation.nats_server import BusFaults, SimNats
from tests.simulation.stream_store import Refused
from tests.simulation.truth import STATES
from tests.simulation.world import World

#: How often each kind is drawn.
WEIGHTS: Final[dict[str, float]] = {
    "kill": 14,
    "kill_at_step": 14,
    "kill_at_effect": 14,
    "terminate": 3,
    "pause": 8,
    "clock_step": 3,
    "nats_restart": 4,
    "nats_cut": 5,
    "nats_partition": 4,
    "nats_slow_disk": 3,
    "nats_delay": 4,
    "nats_lost_acks": 4,
    "nats_redelivery": 4,
    "nats_full": 2,
    "nats_leaderless": 3,
    "nats_wiped": 0.5,
    "api_down": 3,
    "api_hung": 3,
    "api_watches_cut": 3,
    "api_compacted": 2,
    "etcd_restored": 1.0,
    "node_dies": 4,
    "node_deleted": 4,
    "node_cordoned": 4,
    "foreign_burst": 8,
}
#: For so long after a fault lateness is not counted.
_SETTLE_S: Final = 5.0
#: Rare faults wait so long for a state of the protocol that their own chance picks, or chance would
#: hardly ever bring the two together.
_AIMED_FOR_S: Final = 20.0
#: Releases are seldom, and take milliseconds.
_AIMS: Final = (*STATES, "evicting", "evicting", "preempting")


class Fault(msgspec.Struct, frozen=True):
    """One thing that goes wrong."""

    number: int
    at_ms: int
    kind: str


def draw(rng: Random, over_ms: int, mean_gap_ms: int) -> list[Fault]:
    """The faults of one run, in order: storms, with lulls between them in which lateness counts."""
    faults: list[Fault] = []
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
    at_ms = float(rng.randint(1_000, 6_000))
    while at_ms < over_ms:
        ends_ms = at_ms + rng.randint(5_000, 12_000)
        while at_ms < min(ends_ms, over_ms):
            faults.append(Fault(len(faults), int(at_ms), rng.choices(kinds, weights)[0]))
            at_ms += rng.expovariate(1 / mean_gap_ms)
        at_ms = ends_ms + rng.randint(8_000, 16_000)
    return faults


class Storm:
    """Brings the faults over a run."""

    def __init__(
        self,
        loop: SimLoop,
        world: World,
        nats: SimNats,
        *,
        states: Callable[[], set[str]],
        on_fault: Callable[[str, str], None],
    ) -> None:
        """`states()` are those that the protocol is in; `on_fault(kind, what)` is called for each
        fault as it happens.
        """
        self.loop = loop
        self.world = world
        self.nats = nats
        self.kills = 0
        self.quiet_from_s = 0.0
        #: Makes the streams again after their storage was lost.
        self.on_wiped: Callable[[], None] = lambda: None
        #: Faults by kind that only some runs have.
        self.more: dict[str, Callable[[Random], str]] = {}
        self._on_fault = on_fault
        self._states = states
        #: What waits for a state, and for how long at most.
        self._aimed: list[tuple[str, float, Callable[[], object]]] = []
        self._over = False
        loop.on_kill.append(self._killed)

    def begin(self, faults: list[Fault], *, small: bool) -> None:
        """Schedule them; `small` lets requests and messages fail as well."""
        rng = self.loop.dice.rng("storm.rates")
        if small:
            drawn = {name: rng.random() ** 2 * 0.04 for name in KubeRates.__struct_fields__}
            self.world.api.rates = KubeRates(**drawn)
        for fault in faults:
            self.loop.at(fault.at_ms / 1000, self._strike, fault)

    def end(self) -> None:
        """From now on nothing goes wrong any more, and what is broken is mended."""
        self._over = True
        self.world.heal()
        self.nats.faults = BusFaults()
        for stream in self.nats.streams.values():
            stream.refuses = None
        if not self.nats.is_up:
            self.nats.start()
        for generation in self.loop.generations:
            generation.kill_at_step = generation.kill_at_effect = 0
            generation.clock_offset_ms = 0
            self.loop.resume(generation)
        self.disturb(0.0)

    def appended(self, *_: object) -> None:
        """Something was stored: what waits for a state may have found it."""
        if self._aimed:
            # Not inside the append: the server that stores it may be what is struck.
            self.loop.at(0.0, self._strike_aimed)

    def _aim(self, rng: Random, action: Callable[[], object]) -> None:
        """Do it once the protocol is in a state drawn here, or after a while."""
        self.aim_at(rng.choice(_AIMS), action)

    def aim_at(self, wanted: str, action: Callable[[], object]) -> None:
        """Likewise, in that state."""
        if wanted in self._states():
            action()
            return
        self._aimed.append((wanted, self.loop.time() + _AIMED_FOR_S, action))
        self.loop.at(_AIMED_FOR_S, self._strike_aimed)

    def _strike_aimed(self) -> None:
        states, now_s = self._states(), self.loop.time()
        for one in self._aimed[:]:
            wanted, until_s, action = one
            if wanted in states or until_s <= now_s:
                self._aimed.remove(one)
                if not self._over:
                    action()

    def disturbed(self) -> bool:
        """Whether something is broken, or has been a moment ago."""
        return self.loop.time() < self.quiet_from_s

    def disturb(self, lasts_s: float) -> None:
        """Do not count lateness for so long, and a while after it."""
        self.quiet_from_s = max(self.quiet_from_s, self.loop.time() + lasts_s + _SETTLE_S)

    def _killed(self, generation: Generation) -> None:
        self.kills += 1
        self.disturb(0.0)
        self._on_fault("killed", repr(generation))

    def _strike(self, fault: Fault) -> None:
        if self._over:
            return
        rng = Random(f"{self.loop.dice.seed}/fault/{fault.number}")
        act = self.more.get(fault.kind) or getattr(self, f"_{fault.kind}")
        what: str = act(rng)
        if what:
            self._on_fault(fault.kind, what)

    def later(self, lasts_s: float, undo: Callable[..., object], *args: object) -> None:
        """What is broken now is mended then."""
        self.disturb(lasts_s)
        self.loop.at(lasts_s, undo, *args)

    # ---- processes

    def _someone(self, rng: Random) -> Generation | None:
        alive = [one for one in self.loop.generations if one.alive and not one.paused]
        return rng.choice(alive) if alive else None

    def _kill(self, rng: Random) -> str:
        if one := self._someone(rng):
            self.loop.kill(one)
        return ""

    def _kill_at_step(self, rng: Random) -> str:
        """At any await: some callbacks from now."""
        if one := self._someone(rng):
            one.kill_at_step = one.steps + rng.randint(1, 400)
        return ""

    def _kill_at_effect(self, rng: Random) -> str:
        """Right after something was handed to the bus or the API server."""
        if one := self._someone(rng):
            one.kill_at_effect = one.effects + rng.randint(1, 12)
        return ""

    def _terminate(self, rng: Random) -> str:
        one = self._someone(rng)
        if one is None:
            return ""
        self.loop.send_signal(one)
        self.disturb(1.0)
        return repr(one)

    def _pause(self, rng: Random) -> str:
        one = self._someone(rng)
        if one is None:
            return ""
        lasts_s = rng.choice((0.3, 1.0, 2.5, 6.0, 12.0))
        self.loop.pause(one)
        self.later(lasts_s, self.loop.resume, one)
        return f"{one!r} for {lasts_s:g} s"

    def _clock_step(self, rng: Random) -> str:
        """Its wall clock is set, and set right again later."""
        one = self._someone(rng)
        if one is None:
            return ""
        by_ms = rng.choice((-10_000, -2_000, -300, 300, 2_000, 10_000))
        one.clock_offset_ms += by_ms
        self.later(rng.choice((2.0, 10.0)), self._set_clock, one, -by_ms)
        return f"{one!r} by {by_ms} ms"

    def _set_clock(self, one: Generation, by_ms: int) -> None:
        if not self._over:
            one.clock_offset_ms += by_ms

    # ---- NATS

    def _nats_restart(self, rng: Random) -> str:
        if not self.nats.is_up:
            return ""
        lasts_s = rng.choice((0.05, 0.3, 1.0, 3.0))
        self.nats.kill()
        self.later(lasts_s, self._nats_start)
        return f"for {lasts_s:g} s"

    def _nats_start(self) -> None:
        if not self.nats.is_up:
            self.nats.start()

    def _nats_wiped(self, rng: Random) -> str:
        def wipe() -> None:
            if self.nats.is_up:
                self._on_fault("nats_wiped", "and comes back empty")
                self.nats.kill()
                self.nats.wipe()
                # A planner starts cold only after the longest request has timed out.
                self.disturb(60.0)
                self.loop.at(away_s, self._nats_recreated)

        away_s = rng.choice((0.3, 2.0))
        self._aim(rng, wipe)
        return ""

    def _nats_recreated(self) -> None:
        self._nats_start()
        self.on_wiped()

    def _nats_cut(self, rng: Random) -> str:
        links = self.nats.links
        if not links:
            return ""
        link = rng.choice(links)
        self.nats.cut(link)
        self.disturb(0.0)
        return f"of {link.client.label}"

    def _nats_partition(self, rng: Random) -> str:
        links = self.nats.links
        if not links:
            return ""
        link, lasts_s = rng.choice(links), rng.choice((0.5, 2.0, 5.0, 10.0))
        self.nats.partition(link, lasts_s)
        self.disturb(lasts_s)
        return f"of {link.client.label} for {lasts_s:g} s"

    def _bus(self, rng: Random, **values: float) -> str:
        for name, value in values.items():
            setattr(self.nats.faults, name, value)
        lasts_s = rng.choice((1.0, 4.0))
        self.later(lasts_s, self._bus_well, tuple(values))
        return f"for {lasts_s:g} s"

    def _bus_well(self, names: tuple[str, ...]) -> None:
        for name in names:
            setattr(self.nats.faults, name, getattr(BusFaults(), name))

    def _nats_slow_disk(self, rng: Random) -> str:
        return self._bus(rng, disk_s=rng.choice((0.05, 0.3, 1.5)))

    def _nats_delay(self, rng: Random) -> str:
        return self._bus(rng, delay=0.2, delay_s=rng.choice((0.05, 0.5, 2.0)))

    def _nats_lost_acks(self, rng: Random) -> str:
        return self._bus(rng, lost_ack=rng.choice((0.05, 0.3)))

    def _nats_redelivery(self, rng: Random) -> str:
        return self._bus(rng, early=rng.choice((0.1, 0.5)))

    def _nats_full(self, rng: Random) -> str:
        name = rng.choice((subjects.DECISIONS, subjects.OUTCOMES, subjects.CLUSTER))
        stream = self.nats.streams.get(name)
        if stream is None:
            return ""
        stream.refuses = Refused(503, 10077, "maximum bytes exceeded")
        lasts_s = rng.choice((0.3, 2.0, 5.0))
        self.later(lasts_s, self._has_room, name)
        return f"{name} for {lasts_s:g} s"

    def _nats_leaderless(self, rng: Random) -> str:
        """Of a cluster of three: its leader is lost, and another one is elected."""
        self.nats.faults.leaderless = True
        lasts_s = rng.choice((0.2, 1.0, 3.0))
        self.later(lasts_s, self._elected)
        return f"for {lasts_s:g} s"

    def _elected(self) -> None:
        self.nats.faults.leaderless = False

    def _has_room(self, name: str) -> None:
        stream = self.nats.streams.get(name)
        if stream is not None:
            stream.refuses = None

    # ---- the API server

    def _api_down(self, rng: Random) -> str:
        lasts_s = rng.choice((0.1, 0.5, 2.0, 5.0))
        api = self.world.api
        api.down_until_s = self.loop.time() + lasts_s
        api.cut_watches()
        self.disturb(lasts_s)
        return f"for {lasts_s:g} s"

    def _api_hung(self, rng: Random) -> str:
        lasts_s = rng.choice((0.5, 2.0, 7.0))
        self.world.api.hung_until_s = self.loop.time() + lasts_s
        self.disturb(lasts_s)
        return f"for {lasts_s:g} s"

    def _api_watches_cut(self, _: Random) -> str:
        self.world.api.cut_watches()
        return "all"

    def _api_compacted(self, _: Random) -> str:
        self.world.etcd.compact()
        self.world.api.cut_watches()
        return "and all watches broken"

    def _etcd_restored(self, rng: Random) -> str:
        """A backup is taken now, and put in place some time later."""
        backup, lasts_s = self.world.etcd.backup(), rng.choice((5.0, 15.0))

        def restore() -> None:
            # Versions that repeat before a watch is back look like the first ones.
            if not self._over and self.world.etcd.version > backup.version + 150:
                self._on_fault("etcd_restored", f"as {lasts_s:g} s ago")
                self.world.etcd.restore(backup)
                self.disturb(30.0)

        self.loop.at(lasts_s, self._aim, rng, restore)
        return ""

    # ---- nodes

    def _some_node(self, rng: Random) -> str:
        alive = [name for name, kubelet in self.world.nodes.kubelets.items() if kubelet.alive]
        return rng.choice(alive) if len(alive) > 1 else ""

    def _node_dies(self, rng: Random) -> str:
        name = self._some_node(rng)
        if name:
            lasts_s = rng.choice((1.0, 6.0, 15.0))
            self.world.nodes.die(name)
            self.later(lasts_s, self.world.nodes.revive, name)
        return name

    def _node_deleted(self, rng: Random) -> str:
        name = self._some_node(rng)
        if name:
            self.world.nodes.delete(name)
            self.later(rng.choice((0.5, 3.0, 12.0)), self.world.nodes.revive, name)
        return name

    def _node_cordoned(self, rng: Random) -> str:
        name = self._some_node(rng)
        if name:
            self.world.nodes.cordon(name, unschedulable=True)
            self.loop.at(rng.choice((2.0, 10.0)), self._uncordon, name)
        return name

    def _uncordon(self, name: str) -> None:
        self.world.nodes.cordon(name, unschedulable=False)

    def _foreign_burst(self, rng: Random) -> str:
        count = rng.randint(1, 4)
        self.world.foreign_burst(count)
        return f"{count} pods"
