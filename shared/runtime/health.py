"""Health over HTTP.

`/healthz` (liveness): the event loop runs. The loop that does the work also serves it, so a process
that was stopped, waits in a system call or computes without end does not answer at all, and a
prober must take a missing answer for a process that hangs. It does not cover what the process
needs: without NATS or the API server the process is alive and not ready, and a restart would not
help.

A supervisor that restarts a silent process must wait longer than its longest legitimate work: a
large cluster's first list or a long planning cycle may block the loop for seconds (metric
`event_loop_late_seconds`). The chart allows 15 s, `tutti up` 60 s while the process uses CPU
(`tutti.up.watchdog`).

`/readyz`: able to do its work, or why not. `/metrics`: Prometheus.
"""

import asyncio
import logging

import msgspec
from aiohttp import web

from shared.model.invariants import InvariantViolation, required
from shared.runtime.heartbeat import Heartbeat
from shared.telemetry.metrics import Metrics

_log = logging.getLogger(__name__)


class Readiness:
    """Conditions under which a process is ready: each has a name, and is met or has a reason."""

    def __init__(self) -> None:
        #: Condition -> why it is not met; "" when it is.
        self._conditions: dict[str, str] = {}
        self._notes: dict[str, str] = {}

    def require(self, *names: str) -> None:
        """Add conditions that are not met yet; existing ones keep their state."""
        for name in names:
            self._conditions.setdefault(name, "not yet")

    def set(self, name: str) -> None:
        """Mark a condition as met."""
        self._change(name, "")

    def unready(self, name: str, why: str) -> None:
        """Mark a condition as not met, for a reason, which is not empty."""
        if not why:
            raise InvariantViolation(name, "has a reason while it is not met")
        self._change(name, why)

    @property
    def ready(self) -> bool:
        """Whether every condition is met."""
        return not any(self._conditions.values())

    def reasons(self) -> tuple[str, ...]:
        """`name: why` of all that are not met."""
        return tuple(f"{name}: {why}" for name, why in self._conditions.items() if why)

    def note(self, topic: str, text: str) -> None:
        """Set a remark for operators that does not affect readiness; "" removes it."""
        self._notes[topic] = text

    def notes(self) -> dict[str, str]:
        """The remarks for operators, by topic."""
        return {topic: text for topic, text in self._notes.items() if text}

    def _change(self, name: str, why: str) -> None:
        if self._conditions.get(name) == why:
            return
        was_ready = self.ready
        self._conditions[name] = why
        if self.ready and not was_ready:
            _log.info("ready")
        elif why:
            _log.info("not ready: %s: %s", name, why)


class HealthServer:
    """Serves the three pages on one port for all generations of a process, and sends heartbeats to
    a supervisor that wants them, also between two generations.
    """

    def __init__(self) -> None:
        self._heartbeat = Heartbeat()
        self._beating: asyncio.Task[None] | None = None
        self._shown: tuple[Readiness, Metrics] | None = None
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int, readiness: Readiness, metrics: Metrics) -> int:
        """Serve the pages of a generation, and return the port. A server that listens already keeps
        its own; with port 0 the kernel chooses one.

        Raises:
            OSError: The address is in use, or not of this machine.
        """
        self._shown = (readiness, metrics)
        metrics.component.watch(
            "event_loop_late_seconds",
            "By how much the event loop was late, at worst in the last minute.",
            lambda: self._heartbeat.late_s,
        )
        if self._runner is not None:
            return self.port
        self._beating = asyncio.create_task(self._heartbeat.run(), name="heartbeat")
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._exposition)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self.port

    async def stop(self) -> None:
        """Stop listening and sending heartbeats. Safe to call twice."""
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _required_pages(self) -> tuple[Readiness, Metrics]:
        return required(self._shown, "health server", "has pages before it listens")

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, _: web.Request) -> web.Response:
        readiness = self._required_pages()[0]
        report = {"ready": readiness.ready, "reasons": readiness.reasons()}
        return web.Response(
            body=msgspec.json.encode(report),
            content_type="application/json",
            status=200 if readiness.ready else 503,
        )

    async def _exposition(self, request: web.Request) -> web.Response:
        metrics = self._required_pages()[1]
        exposition = metrics.exposition(request.headers.get("Accept", ""))
        return web.Response(body=exposition.body, headers={"Content-Type": exposition.content_type})
