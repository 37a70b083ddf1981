"""One session of benchmarks: runs them in turn on one testbed and collects what they showed.

A yardstick stands between any two drains, so each drain has one before and one after it from the
same minutes. A run that fails is reported and kept as such; the session continues with the next.
"""

import asyncio
import platform
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import msgspec

from bench import bars, drain, live, meters, webhook, yardstick
from bench.bars import DrainCase
from bench.burst import BurstRefused
from bench.contenders import Contender, ContenderFailed, Tutti, running
from bench.live import LiveRun
from bench.load import Load
from bench.pod_watch import Stalled, WatchBroken
from bench.testbed import Bed, open_testbed
from bench.webhook import CreationRun, WebhookRun
from bench.yardstick import Yardstick
from tests.controlplane.binaries import kubernetes_version
from tutti.nats_server import find_nats_server

DRAINS = (
    Load(gangs=20, size=500),
    Load(gangs=500, size=20),
    Load(gangs=20, size=100),
    Load(gangs=20, size=500, owned=False),
)
#: What the case of a large cluster drains, and what arrives there at full speed.
LARGE = Load(gangs=500, size=20)
WEBHOOK_CREATIONS = 10_000
#: Runs where a bar must hold in each of them, not for their median (issue 15).
_EACH_OF_LIVES = 8
_EACH_OF_DRAINS = {DRAINS[0]: bars.EACH_OF_RUNS}
_LIBRARIES = ("aiohttp", "kubernetes-asyncio", "msgspec", "nats-py", "numpy", "uvloop")
_ROOT = Path(__file__).parents[1]
T = TypeVar("T")
Say = Callable[[str], None]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A run that showed nothing but its failure."""

    contender: str
    what: str
    why: str


class Session(msgspec.Struct, kw_only=True):
    """Everything that a session found; written as JSON."""

    started_at: str
    commit: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    nodes: int
    runs: int
    drains: list[DrainCase] = []
    lives: list[LiveRun] = []
    webhooks: list[WebhookRun] = []
    creations: list[CreationRun] = []
    failures: list[Failure] = []
    took_s: float = 0.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is to run."""

    nodes: int
    runs: int
    drains: Sequence[Load]
    with_live: bool
    with_webhook: bool
    #: What arrives at full creation speed.
    crowd: Load = live.CROWD
    contenders: Sequence[Contender]
    #: As many as the largest load has; see `open_testbed`.
    warm_up_pods: int = 10_000
    #: Whether to run more often what has a bar for each run.
    each_run: bool = False

    @property
    def live_runs(self) -> int:
        """How many live runs there are."""
        return max(self.runs, _EACH_OF_LIVES) if self.each_run else self.runs

    def drain_runs(self, what: Load) -> int:
        """How many drains of this load there are."""
        return max(self.runs, _EACH_OF_DRAINS.get(what, 0)) if self.each_run else self.runs


async def run(plan: Plan, say: Say) -> Session:
    """Run everything; raises nothing for a run that fails, see `Session.failures`."""
    session = Session(
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit(),
        machine=meters.machine(),
        versions=versions(),
        nodes=plan.nodes,
        runs=plan.runs,
    )
    began_s = time.monotonic()
    say(f"starting a control plane with {plan.nodes} nodes")
    async with open_testbed(plan.nodes, warm_up_pods=plan.warm_up_pods) as bed:
        watches = await _watches_of_tutti(bed)
        say(f"the suite makes {watches} watches on pods, as the API server counts them")
        if plan.with_live:
            for _ in range(plan.live_runs):
                for contender in plan.contenders:
                    await _live(session, bed, contender, plan.crowd, say)
        for what in plan.drains:
            await _drains(session, bed, what, plan, watches, say)
    if plan.with_webhook:
        await _webhook(session, plan.runs, say)
    session.machine["load_average_after"] = meters.machine()["load_average"]
    session.took_s = time.monotonic() - began_s
    return session


async def _live(session: Session, bed: Bed, contender: Contender, crowd: Load, say: Say) -> None:
    found = await _attempt(session, contender, "live", live.measure(bed, contender, crowd), say)
    if found is not None:
        session.lives.append(found)
        say(
            f"{contender.name}: live p50 {found.crowd_p50_ms:.0f} ms, "
            f"p99 {found.crowd_p99_ms:.0f} ms, one gang {found.one_p50_ms:.0f} ms"
        )


async def _webhook(session: Session, runs: int, say: Say) -> None:
    """Several bursts of reviews, and one of creations on an API server of its own."""
    suite = Tutti()
    for _ in range(runs):
        found = await _attempt(session, suite, "webhook", webhook.measure(), say)
        if found is not None:
            session.webhooks.append(found)
            say(f"webhook: {found.per_s:.0f} reviews/s, p99 {found.p99_ms:.1f} ms")
    created = webhook.measure_creations(WEBHOOK_CREATIONS)
    burst = await _attempt(session, suite, "webhook's creations", created, say)
    if burst is not None:
        session.creations.append(burst)
        say(f"webhook: {burst.failed_open} of {burst.pods} creations admitted without an answer")


async def _drains(
    session: Session, bed: Bed, what: Load, plan: Plan, watches: int, say: Say
) -> None:
    before = await _yardstick(bed, what, watches, say)
    for _ in range(plan.drain_runs(what)):
        for contender in plan.contenders:
            title = f"drain {what.title}"
            found = await _attempt(
                session, contender, title, drain.measure(bed, contender, what), say
            )
            after = await _yardstick(bed, what, watches, say)
            if found is not None:
                case = DrainCase(before=before, run=found, after=after)
                session.drains.append(case)
                say(
                    f"{contender.name}: {title}: {found.rate:.0f} pods/s, {case.ratio:.2f} of the "
                    f"limit, first after {found.first_binding_s:.1f} s, CPU {found.cpu_s:.1f} s"
                )
            before = after


async def _yardstick(bed: Bed, what: Load, watches: int, say: Say) -> Yardstick:
    found = await yardstick.measure(bed, what, watches=watches)
    rates = ", ".join(f"{rate:.0f} at {number}" for number, rate in found.rates.items())
    say(f"bare bindings {what.title}: {rates}; {found.apiserver_ms_per_pod:.2f} ms a pod")
    return found


async def _attempt(
    session: Session, contender: Contender, what: str, work: Awaitable[T], say: Say
) -> T | None:
    try:
        return await work
    except (AssertionError, BurstRefused, ContenderFailed, Stalled, WatchBroken) as error:
        session.failures.append(Failure(contender=contender.name, what=what, why=str(error)))
        say(f"{contender.name}: {what} failed: {error}")
        return None


async def _watches_of_tutti(bed: Bed) -> int:
    """How many watches on pods are open while the suite runs, the testbed's own included."""
    async with running(Tutti(), bed.kubeconfig) as suite:
        await suite.wait_ready()
        # The webhook and the controllers may open theirs a moment later.
        await asyncio.sleep(1.0)
        return await bed.pod_watches()


def commit() -> str:
    """The commit that is measured, and whether the tree differs from it."""
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def versions() -> dict[str, str]:
    """Versions of everything that the figures depend on."""
    command = [str(find_nats_server()), "--version"]
    nats = subprocess.run(command, capture_output=True, text=True, check=False)
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "kubernetes": kubernetes_version(),
        "nats-server": nats.stdout.strip().rpartition(" ")[2] or "unknown",
        **{library: version(library) for library in _LIBRARIES},
    }
