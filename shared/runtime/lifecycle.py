"""The lifecycle of a process: start, serve, and an ordered shutdown.

`run` starts logging, uvloop, the health server and the bus, and calls the service's `main` with a
`Context`. On SIGTERM, SIGINT or the end of `main` it runs the shutdown's `Step`s in order, cancels
the remaining tasks, closes the bus and the health server, and flushes telemetry. A second signal
skips the remaining steps.

After a crash (an exception in `main`, in a spawned task or in a handler on the bus) only the lease
is released, so that a standby takes over at once, and the process ends: its supervisor restarts it.

A process that is superseded, or lacks NATS, a stream or a right, has not crashed. Its generation
ends in the same way, and the process begins the next one (`endings`), of which only the health
server is shared with the former one.
"""

import asyncio
import contextlib
import enum
import functools
import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import uvloop

from shared.bus.connection import Bus
from shared.bus.lease import LeaseThread
from shared.bus.questions import serve
from shared.contracts import codec, subjects
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.pacing import Backoff
from shared.runtime import collector, logs
from shared.runtime.endings import Ending, ending_of
from shared.runtime.health import HealthServer, Readiness
from shared.runtime.program_version import program_version
from shared.runtime.settings import CommonSettings, load, visible_settings
from shared.runtime.steady_clock import SteadyClock
from shared.telemetry.foreign_messages import ForeignMessageCounter
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracers import tracer_for

if TYPE_CHECKING:
    from shared.telemetry.tracing import Tracer

S = TypeVar("S", bound=CommonSettings)

#: Longest pause between two generations of one process.
PAUSE_MAX_S: Final = 5.0
#: After a generation that lasted this long, the next pause is short again.
_LASTED_S: Final = 30.0

#: A step gets at least this long, even if the steps before it have used up the grace period.
STEP_MIN_S: Final = 0.5
FLUSH_S: Final = 2.0
CANCEL_AGAIN_S: Final = 0.5

_log = logging.getLogger(__name__)


class Step(enum.IntEnum):
    """The shutdown order: the callbacks of a step run concurrently, and end before the next step.

    After the last step the lifecycle cancels the tasks, closes the bus and the health server, and
    flushes telemetry.
    """

    STOP_TAKING = 1
    FINISH = 2
    PUBLISH = 3
    RELEASE_LEASE = 4
    CLOSE_KUBE = 5


#: Steps that a crashed process still runs.
_AFTER_CRASH: Final = (Step.RELEASE_LEASE, Step.CLOSE_KUBE)

Callback = Callable[[], Awaitable[None]]


class Spawned(Protocol):
    """A task that the lifecycle supervises."""

    def cancel(self) -> bool:
        """Request its cancellation."""
        ...

    def done(self) -> bool:
        """Whether it has ended."""
        ...


class Context(Generic[S]):
    """The environment of a service. `bus` is connected before `main` is called."""

    bus: Bus
    #: Generation of the DECISIONS stream that this process works with, for `ask.status`; "" until
    #: known.
    decisions: str = ""

    def __init__(self, service: str, settings: S, group: asyncio.TaskGroup) -> None:
        self.service = service
        self.settings = settings
        self.ordinal = ordinal_of(settings)
        self.instance = instance_of(service, settings)
        self.ready = Readiness()
        self.metrics = Metrics(service)
        self.foreign_messages = ForeignMessageCounter(self.metrics)
        self.tracer: Tracer = tracer_for(
            settings.otlp_endpoint,
            service=service,
            instance=self.instance,
            ratio=settings.trace_ratio,
        )
        #: Set when the process shall stop, before the first step.
        self.stopping = asyncio.Event()
        self.active = True
        self.clock = SteadyClock()
        self._show()
        self._group = group
        self._tasks: list[asyncio.Task[Any]] = []
        self._callbacks: list[tuple[Step, str, Callback]] = []

    def _show(self) -> None:
        """Register the metrics that every service has."""
        metrics = self.metrics.component
        metrics.build_info(program_version())
        metrics.watch("ready", "1 while it can do its work.", lambda: self.ready.ready)
        metrics.watch(
            "active", "1 while it is the one that writes; 0: standby.", lambda: self.active
        )
        metrics.totals(
            "spans_lost_total", "Spans that could not be sent.", (), lambda: {(): self.tracer.lost}
        )
        metrics.watch(
            "event_loop_tasks", "Tasks of its event loop.", lambda: len(asyncio.all_tasks())
        )

    def now_ms(self) -> int:
        """Milliseconds since the epoch, without jumps (`shared.runtime.steady_clock`)."""
        return self.clock.now_ms()

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> Spawned:
        """Run a named task until the shutdown's end; an exception in it crashes the process.

        A caller that wants to await a task uses a TaskGroup of its own.
        """
        task = self._group.create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._on_done)
        return task

    async def connect(self, on_health: Callable[[str, str], None] | None = None) -> Bus:
        """A new connection to NATS with this service's settings; waits for a server without limit.
        `on_health` as in `Bus.connect`.
        """
        settings = self.settings
        return await Bus.connect(
            settings.nats_url,
            name=self.service,
            instance=self.instance,
            user=settings.nats_user,
            credentials=settings.nats_credentials,
            tls_ca=settings.nats_ca,
            on_health=on_health,
        )

    def lease(self, key: str, able: Callable[[], bool]) -> LeaseThread:
        """A lease that selects one of this service's processes. `able`, whether this process could
        do the holder's work now, is called in another thread.
        """
        return LeaseThread(self.connect, key, self.instance, able)

    def on_shutdown(self, step: Step, name: str, callback: Callback) -> None:
        """Run `callback` in `step` of the shutdown, concurrently with the step's other callbacks;
        `name` is for the log.

        All steps share the grace period; a callback that exceeds it is cancelled and logged. After
        a crash only the steps from RELEASE_LEASE on run.
        """
        self._callbacks.append((step, name, callback))

    def set_active(self, active: bool) -> None:
        """Set (for `ask.status`) whether this process is the writer."""
        self.active = active

    async def go_through(self, steps: tuple[Step, ...], deadline: float) -> None:
        """Run the callbacks of these steps in order; only the lifecycle calls it."""
        loop = asyncio.get_running_loop()
        for step in steps:
            todo = [entry for entry in self._callbacks if entry[0] is step]
            limit = max(deadline, loop.time() + STEP_MIN_S)
            await asyncio.gather(*(_bounded(name, callback, limit) for _, name, callback in todo))

    def cancel_tasks(self) -> None:
        """Cancel the spawned tasks, repeatedly until they have ended; only the lifecycle calls it.

        Some libraries swallow a cancellation (`wait_for` before Python 3.12 does), and such a task
        would keep the process alive.
        """
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            asyncio.get_running_loop().call_later(CANCEL_AGAIN_S, self.cancel_tasks)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.remove(task)
        if not task.cancelled() and task.exception() is not None:
            # The group cancels the remaining tasks only once.
            asyncio.get_running_loop().call_later(CANCEL_AGAIN_S, self.cancel_tasks)


async def _bounded(name: str, callback: Callback, limit: float) -> None:
    try:
        async with asyncio.timeout_at(limit):
            await callback()
    except TimeoutError:
        _log.warning("shutdown: %s did not end in time", name)
    except Exception:  # noqa: BLE001 - the other callbacks must still run
        _log.exception("shutdown: %s failed", name)


class _Generation(Generic[S]):
    """One generation of one service."""

    def __init__(
        self,
        service: str,
        settings: S,
        main: Callable[[Context[S]], Awaitable[None]],
        health: HealthServer,
    ) -> None:
        self._service = service
        self._settings = settings
        self._main = main
        self._started_ms = time.time_ns() // 1_000_000
        self._context: Context[S] | None = None
        self._bus: Bus | None = None
        self._health = health
        self._body: asyncio.Task[Any] | None = None
        #: After its end: why it ended; "": on request.
        self.why = ""

    async def live(self) -> Ending:
        """Serve until the end of this generation."""
        self._body = asyncio.current_task()
        ending, why = Ending.STOPPED, ""
        try:
            async with asyncio.TaskGroup() as group:
                await self._serve_and_stop(group)
        except BaseExceptionGroup as crash:
            ending, why = ending_of(crash)
        except asyncio.CancelledError:
            _log.warning("received a second signal: stopping without finishing open work")
            ending = Ending.CRASHED
        finally:
            if why and self._context is not None:
                self._context.ready.unready("main", why)
            try:
                await self._close(crashed=ending is not Ending.STOPPED)
            except asyncio.CancelledError:
                _log.warning("received another signal: exiting without closing connections")
                ending = Ending.CRASHED
        self.why = why
        return ending

    async def stopped_within(self, pause_s: float) -> bool:
        """Wait `pause_s` after the generation's end; returns whether the process shall stop."""
        if self._context is None:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._context.stopping.wait()
        return self._context.stopping.is_set()

    async def _serve_and_stop(self, group: asyncio.TaskGroup) -> None:
        context = self._context = Context(self._service, self._settings, group)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        context.ready.require("nats", "main")
        port = await self._health.start(
            self._settings.http_host, self._settings.http_port, context.ready, context.metrics
        )
        _log.info("started", extra={"http_port": port, "pid": os.getpid()})
        context.spawn("main", self._work(context))
        await context.stopping.wait()
        _log.info("stopping")
        grace = loop.time() + self._settings.shutdown_grace_s
        await context.go_through(tuple(Step), grace)
        context.cancel_tasks()

    async def _work(self, context: Context[S]) -> None:
        def on_health(topic: str, problem: str) -> None:
            if problem:
                context.ready.unready(topic, problem)
            else:
                context.ready.set(topic)

        self._bus = context.bus = await context.connect(on_health)
        context.spawn("bus", context.bus.wait_failed())
        context.metrics.component.watch(
            "nats_storage_failed",
            "1 while NATS does not confirm what this process appends to a stream.",
            lambda: bool(context.bus.appends.failed),
        )
        await serve(
            context.bus,
            subjects.ASK_STATUS,
            codec.decode_status_request,
            functools.partial(self._status, context),
        )
        # After its first wait, main has added its own conditions.
        asyncio.get_running_loop().call_soon(context.ready.set, "main")
        await self._main(context)
        context.stopping.set()

    async def _status(self, context: Context[S], request: StatusRequest) -> ServiceStatus:
        return ServiceStatus(
            service=self._service,
            instance=context.instance,
            pid=os.getpid(),
            version=program_version(),
            http_port=self._health.port,
            ready=context.ready.ready,
            not_ready=context.ready.reasons(),
            notes=context.ready.notes(),
            active=context.active,
            started_ms=self._started_ms,
            decisions=context.decisions,
            figures=context.metrics.figures(),
            settings=visible_settings(self._settings) if request.settings else {},
        )

    def _on_signal(self, number: signal.Signals) -> None:
        context, body = self._context, self._body
        if context is None or body is None:
            return
        if context.stopping.is_set():
            body.cancel()
            return
        _log.info("received signal %s", signal.Signals(number).name)
        context.stopping.set()

    async def _close(self, *, crashed: bool) -> None:
        context = self._context
        if crashed and context is not None and self._bus is not None:
            await context.go_through(_AFTER_CRASH, 0.0)
        if self._bus is not None:
            await self._bus.close()
        if context is not None:
            await context.tracer.close(FLUSH_S)


def run(service: str, kind: type[S], main: Callable[[Context[S]], Awaitable[None]]) -> int:
    """Run a service, with the settings of the command line and the environment, until it stops or
    crashes; returns the exit status: 0 stopped on request, 1 crashed, 2 a setting is invalid.

    `main` is called once for each generation (`endings`), and cancelled after the shutdown's steps.
    When it returns by itself, the shutdown begins.
    """
    settings = load(kind, sys.argv[1:], os.environ, service)
    collector.relax()
    logs.configure(
        service,
        instance_of(service, settings),
        log_format=settings.log_format,
        level=settings.log_level,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve_on(service, settings, main))


async def serve_on(service: str, settings: S, main: Callable[[Context[S]], Awaitable[None]]) -> int:
    """Run generations in the running event loop until one is stopped or crashes; returns the exit
    status. Arguments as for `run`, with the settings themselves.
    """
    loop = asyncio.get_running_loop()
    health = HealthServer()
    backoff = Backoff(max_s=PAUSE_MAX_S)
    try:
        while True:
            began_s = loop.time()
            generation = _Generation(service, settings, main, health)
            ending = await generation.live()
            if loop.time() - began_s > _LASTED_S:
                backoff.reset()
            if ending.continues and await generation.stopped_within(backoff.next_s()):
                ending = Ending.STOPPED
            if not ending.continues:
                break
    finally:
        await health.stop()
    _log.info("stopped", extra={"status": int(ending)})
    if ending is Ending.MISCONFIGURED:
        # The last line, and in plain words whatever the format of the log: as `load` does.
        sys.stderr.write(f"{service}: {generation.why}\n")
    return int(ending)


async def live(service: str, settings: S, main: Callable[[Context[S]], Awaitable[None]]) -> int:
    """Run one generation in the running event loop, without configuring logging; returns the value
    of its `Ending`. Arguments as for `serve_on`.
    """
    health = HealthServer()
    try:
        return int(await _Generation(service, settings, main, health).live())
    finally:
        await health.stop()


def ordinal_of(settings: CommonSettings) -> int:
    """Number of this replica: the setting, else in a pod the number in the host name, else 0."""
    if settings.ordinal >= 0:
        return settings.ordinal
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    numbered = re.search(r"-(\d+)$", socket.gethostname()) if in_pod else None
    return int(numbered[1]) if numbered else 0


def instance_of(service: str, settings: CommonSettings) -> str:
    """Name of this instance: the setting, else `<service>-<ordinal>`."""
    return settings.instance or f"{service}-{ordinal_of(settings)}"
