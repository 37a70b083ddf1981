"""Puts the run's clock and chance under everything that the services import, for as long as a run
lasts.

What the services ask the machine for (time, randomness, ids, threads) comes from the loop and the
seed; what they publish (metrics, a health page) is discarded; their bus and their
Kubernetes client reach the simulated servers. The services themselves are not changed.
"""

import asyncio
import contextlib
import gc
import os
import random
import secrets
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final

from typing_extensions import override

from shared.bus.connection import Bus
from shared.bus.lease import Lease, LeaseThread
from shared.kube import credentials
from shared.kube.client import KubeClient
from shared.runtime import lifecycle
from shared.runtime.health import HealthServer
from shared.telemetry.metrics import Metrics
from tests.simulation.bus import bus_on
from tests.simulation.kube_api import ApiServer
from tests.simulation.kube_client import SimKubeClient
from tests.simulation.loop import SimLoop, current_generation, generation_or_none
from tests.simulation.nats_server import SimNats

#: Modules in which names bound by `from … import` are replaced.
_OURS: Final = ("services.", "shared.", "tutti.up.supervisor")
_HASH_SEED: Final = "0"
_NANOSECONDS: Final = 1_000_000_000


class _Nothing:
    """A metric that is never read."""

    def inc(self, amount: float = 1) -> None: ...

    def dec(self, amount: float = 1) -> None: ...

    def set(self, value: float) -> None: ...

    def observe(self, amount: float, exemplar: object = None) -> None: ...

    def set_function(self, value: Callable[[], float]) -> None: ...


_NOTHING: Final = _Nothing()


class _NoRegistry:
    """Takes metrics that a service makes itself, and discards them."""

    def register(self, collector: object) -> None: ...


class _NoMetrics:
    """Has the surface of `Metrics`; real ones cost more than the work they count."""

    registry = _NoRegistry()

    def __init__(self, service: str) -> None:
        self.component = self

    def counter(self, name: str, text: str) -> _Nothing:
        return _NOTHING

    gauge = counter

    def counters(
        self, name: str, text: str, label: str, known: Iterable[str] = ()
    ) -> Callable[[str], _Nothing]:
        return lambda _: _NOTHING

    gauges = counters

    def histogram(self, name: str, text: str, buckets: object) -> _Nothing:
        return _NOTHING

    def histograms(
        self, name: str, text: str, buckets: object, label: str, known: Iterable[str] = ()
    ) -> Callable[[str], _Nothing]:
        return lambda _: _NOTHING

    def totals(self, name: str, text: str, labels: object, values: object) -> None: ...

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None: ...

    def build_info(self, version: str) -> None: ...

    def figures(self) -> dict[str, float]:
        return {}


class _NoHealthServer:
    """Opens no port."""

    port = 1

    async def start(self, host: str, port: int, readiness: object, metrics: object) -> int:
        return self.port

    async def stop(self) -> None: ...


class _InlineLease:
    """A lease kept in the loop of the process: a simulated process has no threads, and its loop
    never stands still.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Bus]],
        key: str,
        holder: str,
        able: Callable[[], bool],
    ) -> None:
        self._connect = connect
        self._arguments = key, holder, able
        self._lease: Lease | None = None
        self._made = asyncio.Event()

    @property
    def held(self) -> bool:
        return self._lease is not None and self._lease.held

    async def wait_held(self) -> None:
        await self._made.wait()
        assert self._lease is not None
        await self._lease.wait_held()

    async def run(self, on_change: Callable[[bool], None]) -> None:
        key, holder, able = self._arguments
        self._lease = Lease(await self._connect(), key, holder, able=able)
        self._made.set()
        await self._lease.run(on_change)

    async def release(self) -> None:
        if self._lease is not None:
            await self._lease.release()


def run_with_fixed_hashes() -> None:
    """Start this program again if strings hash differently in each process: sets would then have
    another order in each.
    """
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        environ = {**os.environ, "PYTHONHASHSEED": _HASH_SEED}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)


Put = Callable[[Any, str, object], None]


@contextlib.contextmanager
def patched(loop: SimLoop, nats: SimNats, api: ApiServer) -> Iterator[None]:
    """Run what is inside on the loop's clock, the run's chance and the simulated servers."""
    with on_virtual_time(loop), _putting() as put:
        _put_servers(put, nats, api)
        yield


@contextlib.contextmanager
def on_virtual_time(loop: SimLoop) -> Iterator[None]:
    """Run what is inside on the loop's clock and the run's chance.

    The garbage collector is off inside: when it runs depends on more than the seed, and it would
    close coroutines of the dead.
    """
    gc_was_on = gc.isenabled()
    gc.disable()
    try:
        with _putting() as put:
            replaced: dict[int, object] = {}
            for (owner, name), value in _machine(loop).items():
                replaced[id(getattr(owner, name))] = value
                put(owner, name, value)
            for module in _our_modules():
                for bound, held in list(vars(module).items()):
                    if id(held) in replaced:
                        put(module, bound, replaced[id(held)])
            yield
    finally:
        if gc_was_on:
            gc.enable()


@contextlib.contextmanager
def _putting() -> Iterator[Put]:
    """Set attributes, and set them back at the end."""
    undo: list[Callable[[], None]] = []

    def put(owner: Any, name: str, value: object) -> None:
        before = getattr(owner, name)
        setattr(owner, name, value)
        undo.append(lambda: setattr(owner, name, before))

    try:
        yield put
    finally:
        for restore in reversed(undo):
            restore()


def _our_modules() -> list[Any]:
    return [module for name, module in sorted(sys.modules.items()) if name.startswith(_OURS)]


def _machine(loop: SimLoop) -> dict[tuple[Any, str], object]:
    """What stands in for the machine's clock and chance."""
    chance = loop.dice.rng("processes")

    def wall_ns() -> int:
        generation = generation_or_none()
        offset_ms = generation.clock_offset_ms if generation is not None else 0
        return loop.now_ns + offset_ms * 1_000_000

    def token_bytes(count: int | None = None) -> bytes:
        return chance.randbytes(32 if count is None else count)

    async def inline(work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return work(*args, **kwargs)

    class Random(random.Random):
        """One without a seed is seeded by the run."""

        @override
        def seed(self, a: Any = None, version: int = 2) -> None:
            super().seed(chance.getrandbits(64) if a is None else a, version)

    return {
        (time, "time"): lambda: wall_ns() / _NANOSECONDS,
        (time, "time_ns"): wall_ns,
        (time, "monotonic"): loop.time,
        (time, "clock_gettime"): lambda _clock: loop.time(),
        (time, "monotonic_ns"): lambda: int(loop.time() * _NANOSECONDS),
        (time, "perf_counter"): loop.time,
        (random, "Random"): Random,
        (secrets, "token_bytes"): token_bytes,
        (secrets, "token_hex"): lambda count=None: token_bytes(count).hex(),
        (os, "urandom"): token_bytes,
        (uuid, "uuid4"): lambda: uuid.UUID(bytes=chance.randbytes(16), version=4),
        (asyncio, "to_thread"): inline,
    }


def _put_servers(put: Put, nats: SimNats, api: ApiServer) -> None:
    """Connect the lifecycle's bus and the services' Kubernetes clients."""
    for name, held, value in (
        ("Bus", Bus, bus_on(nats)),
        ("HealthServer", HealthServer, _NoHealthServer),
        ("Metrics", Metrics, _NoMetrics),
        ("LeaseThread", LeaseThread, _InlineLease),
    ):
        assert getattr(lifecycle, name) is held
        put(lifecycle, name, value)

    def client(*_: object, **__: object) -> SimKubeClient:
        return SimKubeClient(api, current_generation())

    async def nobody(*_: object) -> None:
        """The name of a client matters to no simulated server."""

    for module in _our_modules():
        if module.__name__.startswith("services."):
            for bound, held in list(vars(module).items()):
                if held is KubeClient:
                    put(module, bound, client)
                elif held is credentials.load:
                    put(module, bound, nobody)
