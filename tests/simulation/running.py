"""One run: a seed becomes a world, a storm and a suite; what comes out is a `Result`.

A run has two parts. In the storm gangs arrive while everything goes wrong. Then faults stop, and
within a bounded time every gang must have come to its end.
"""

import hashlib
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from tests.simulation import claim_faults
from tests.simulation import storm as storms
from tests.simulation.checkers import Checkers, Violation
from tests.simulation.claims import DEVICE_FEATURES, DEVICES, ClaimShape
from tests.simulation.coverage import Coverage
from tests.simulation.kube_server import Write
from tests.simulation.loop import EPOCH_MS, Dice, SimLoop, Stuck
from tests.simulation.nats_server import SimNats
from tests.simulation.patches import patched
from tests.simulation.run_history import RunHistory
from tests.simulation.suite import Suite
from tests.simulation.truth import Truth
from tests.simulation.workload import Shape
from tests.simulation.world import World

#: Virtual time from the last fault within which everything must have ended.
CALM_S: Final = 240.0
#: CPU time of a run that is given up; they take a second. Not the clock's: the machine is shared.
_CPU_S_MAX: Final = 60.0
#: Users wait so long before they delete a gang that can never become whole; how often they check.
_PATIENCE_S: Final = 40.0
_UNFINISHABLE_EVERY_S: Final = 15.0


#: Runs in which the status controller takes part: it makes a run half as dear again.
_CONTROLLER_EVERY: Final = 8
#: Runs in which gangs may evict each other, and the policy of those.
_PREEMPTION_EVERY: Final = 4
#: Runs in which half of the gangs ask for volumes and devices, and how long binders wait for those.
#: Every other one of them has evictions, too.
_CLAIMS_EVERY: Final = 10
_CLAIMS_WAIT_S: Final = 12.0
#: Runs in which half of the gangs want devices, and may evict others for them: as dear as four
#: others.
_DEVICES_EVERY: Final = 40
#: Likewise, with constraints, alternatives, shared counters and taints: one seed in so many, from
#: `_FEATURES_FROM` on. The seeds before it are those of the certified range and of the canaries.
_FEATURES_EVERY: Final = 25
_FEATURES_FROM: Final = 1000
#: Runs in which a user of another namespace is hostile.
_TENANT_EVERY: Final = 3
#: Runs in which few pods may be in flight, so that gangs wait for binders in each.
_THROTTLING_EVERY: Final = 3
_THROTTLED_PODS: Final = 4
_PREEMPTING: Final = Path(__file__).with_name("preempting.conf")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. Leaving gangs or faults out does not change the rest."""

    seed: int
    shape: Shape = Shape()
    #: Virtual time between two faults of a storm, on average; 0: none at all.
    fault_gap_ms: int = 700
    #: Names of gangs that take part; None: all.
    gangs: frozenset[str] | None = None
    #: Numbers of faults that happen; None: all.
    faults: frozenset[int] | None = None
    #: Whether single requests and messages fail as well.
    small: bool = True
    #: Gangs ask for volumes and devices like this; None: the seed says whether.
    claims: ClaimShape | None = None
    #: A user of another namespace is hostile; None: the seed says whether.
    tenant: bool | None = None
    #: Words of broken promises that count as kept.
    overlook: tuple[str, ...] = ()


class Result(msgspec.Struct, kw_only=True):
    """What came of a run."""

    seed: int
    #: Of everything that was appended and written, in order.
    digest: str
    violations: list[Violation]
    gangs: int
    #: Gangs in whose life at least one fault happened.
    gangs_with_fault: int
    faults: dict[str, int]
    kills: int
    virtual_ms: int
    cpu_ms: int
    steps: int
    counts: dict[str, int]
    coverage: list[tuple[str, str, int]]
    partial_s: float
    worst_partly_s: float
    #: Numbers of the faults that were drawn.
    drawn: list[int] = []


class Run:
    """Everything of one run, put together. Use it once, then `close` it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.loop = SimLoop(Dice(options.seed))
        self.history = RunHistory(self.loop)
        self.coverage = Coverage()
        self.faults: dict[str, int] = {}
        self._fault_times: list[int] = []
        self._digest = hashlib.sha256()
        self.truth = Truth(lambda: self.loop.now_ms)
        claims = options.claims
        if claims is None and options.seed % _CLAIMS_EVERY == 7:
            claims = ClaimShape()
        elif claims is None and options.seed % _DEVICES_EVERY == 9:
            claims = DEVICES
        elif claims is None and options.seed >= _FEATURES_FROM:
            # Never one of the seeds above.
            claims = DEVICE_FEATURES if options.seed % _FEATURES_EVERY == 3 else None
        tenant = options.tenant
        if tenant is None:
            tenant = options.seed % _TENANT_EVERY == 0
        self.world = World(
            self.loop,
            options.shape,
            on_fault=self._small_fault,
            note=self.history.note,
            claims=claims,
            tenant=tenant,
        )
        self.world.only = options.gangs
        self.nats = SimNats(self.loop, self.loop.dice.rng("nats"))
        self.storm = storms.Storm(
            self.loop, self.world, self.nats, states=self.truth.states, on_fault=self._fault
        )
        if self.world.claims is not None:
            claim_faults.ClaimFaults(self.storm, self.world.claims)
        self.truth.listeners.append(self.storm.appended)
        self.checkers = Checkers(
            self.world,
            self.truth,
            disturbed=self.storm.disturbed,
            overlook=options.overlook,
        )
        preempts = options.seed % _PREEMPTION_EVERY == 1
        self.suite = Suite(
            self.loop,
            self.nats,
            note=self._process,
            scheduler_conf=str(_PREEMPTING) if preempts else "",
            claims_wait_s=_CLAIMS_WAIT_S,
            ahead_pods_min=_THROTTLED_PODS if options.seed % _THROTTLING_EVERY == 2 else 32,
        )
        if options.seed % _CONTROLLER_EVERY == 0:
            self.suite.add_controller()
        self.history.listen(self.checkers)
        self.nats.observers.append(self.truth)
        self.world.etcd.observers.append(self._written)
        self.storm.on_wiped = self.suite.set_up

    def run(self) -> Result:
        """Run to the end, or to the first broken promise."""
        began = time.process_time()
        with patched(self.loop, self.nats, self.world.api), self.suite.logging():
            try:
                drawn = self._go()
            except Stuck as stuck:
                self.checkers.violations.append(Violation(self.loop.now_ms, "", str(stuck)))
                drawn = []
        cpu_ms = int((time.process_time() - began) * 1000)
        return self._result(drawn, cpu_ms)

    def close(self) -> None:
        """Forget everything that is still in flight."""
        self.loop.discard()

    def _go(self) -> list[storms.Fault]:
        options, loop = self.options, self.loop
        self.suite.start()
        self.world.begin()
        over_ms = options.shape.over_ms
        drawn: list[storms.Fault] = []
        if options.fault_gap_ms:
            rng = loop.dice.rng("storm")
            drawn = storms.draw(rng, over_ms, options.fault_gap_ms)
            if self.world.claims is not None:
                rng = loop.dice.rng("storm.claims")
                drawn += claim_faults.draw(rng, drawn, over_ms, self.world.claims.shape)
        kept = [one for one in drawn if options.faults is None or one.number in options.faults]
        self.storm.begin(kept, small=options.small)
        loop.run_until(self._failed, limit_s=over_ms / 1000)
        self.storm.end()
        if not self._failed():
            loop.at(_PATIENCE_S, self._bury)
            loop.run_until(self._finished, limit_s=CALM_S, every_s=0.5)
        if not self._failed():
            self.checkers.judge_the_end()
        return drawn

    def _failed(self) -> bool:
        for problem in self.suite.bugs():
            self.checkers.violations.append(Violation(self.loop.now_ms, "", problem))
        self.suite.crashes.clear()
        self.loop.unhandled.clear()
        return bool(self.checkers.violations)

    def _finished(self) -> bool:
        """All gangs have ended, and the streams are at rest."""
        if self._failed():
            return True
        busy = self.truth.states() - {"backoff"}
        return self.world.settled() and not busy

    def _bury(self) -> None:
        self.world.lives.delete_unfinishable()
        self.loop.at(_UNFINISHABLE_EVERY_S, self._bury)

    # ---- what is reported

    def _small_fault(self, kind: str) -> None:
        if kind == "api.silence":
            # A list or a watch hangs: the watcher reads no changes while it lasts.
            self.storm.disturb(8.0)
        self._fault(kind, "")

    def _fault(self, kind: str, what: str) -> None:
        if kind == "killed":
            kind = f"killed {what.partition('#')[0].rpartition('-')[0] or what}"
        self.faults[kind] = self.faults.get(kind, 0) + 1
        self._fault_times.append(self.loop.now_ms)
        self.coverage.hit(kind, self.truth.states())
        self.history.note("", f"{kind} {what}")

    def _process(self, name: str, what: str) -> None:
        self.history.note("", f"{name} {what}")

    def _written(self, write: Write) -> None:
        metadata = write.new["metadata"]
        self._digest.update(
            b"%d %s %s" % (write.at_ms, metadata["name"].encode(), write.verb.encode())
        )

    def _result(self, drawn: list[storms.Fault], cpu_ms: int) -> Result:
        lives = [life for life in self.world.lives.lives.values() if life.made]
        arrived = {life.name: EPOCH_MS + life.plan.arrives_ms for life in lives}
        hit = [
            life
            for life in lives
            if any(
                arrived[life.name] <= at <= (life.ended_ms or self.loop.now_ms)
                for at in self._fault_times
            )
        ]
        return Result(
            seed=self.options.seed,
            digest=f"{self.suite.digest()[:16]}{self._digest.hexdigest()[:16]}",
            violations=self.checkers.violations,
            gangs=len(lives),
            gangs_with_fault=len(hit),
            faults=dict(sorted(self.faults.items())),
            kills=self.storm.kills,
            virtual_ms=self.loop.now_ms - EPOCH_MS,
            cpu_ms=cpu_ms,
            steps=self.loop.steps,
            counts=dict(sorted(self.truth.counts.items())),
            coverage=self.coverage.rows(),
            partial_s=self.checkers.partial_s,
            worst_partly_s=self.checkers.worst_partly_s,
            drawn=[one.number for one in drawn],
        )


def run(options: Options) -> Result:
    """Run one seed and clean up."""
    one = Run(options)
    try:
        with bounded():
            return one.run()
    finally:
        one.close()


@contextmanager
def bounded() -> Iterator[None]:
    """What never lets time pass, not even the loop's, is stuck."""

    def ring(*_: object) -> NoReturn:
        raise Stuck("it does not end:\n" + "".join(traceback.format_stack(limit=12)))

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, _CPU_S_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
