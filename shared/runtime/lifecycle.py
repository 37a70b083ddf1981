"""The life of a process: start, serve, and one order of shutting down.

`run` starts logging, uvloop, the health server and the bus, calls the service's `main` with a `Context`, and on SIGTERM,
SIGINT or the end of `main` goes through the `Step`s in order, then cancels what is left.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from shared.bus.connection import Bus
from shared.runtime.health import Readiness
from shared.runtime.settings import CommonSettings
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import Tracer

S = TypeVar("S", bound=CommonSettings)


class Step(enum.IntEnum):
    """The shutdown order: each step's callbacks run together, and end before the next step begins."""

    STOP_TAKING = 1
    FINISH = 2
    PUBLISH = 3
    ACKNOWLEDGE = 4
    RELEASE_LEASE = 5
    CLOSE_KUBE = 6
    # After these the lifecycle itself cancels the tasks, closes the bus, the health server, and flushes telemetry.


class Context(Generic[S]):
    """What a service is given."""

    service: str
    instance: str
    ordinal: int
    settings: S
    bus: Bus
    ready: Readiness
    metrics: Metrics
    tracer: Tracer
    #: Set when the process was asked to stop, before the first step.
    stopping: asyncio.Event

    def now_ms(self) -> int:
        """Wall clock in milliseconds since the epoch."""
        raise NotImplementedError

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a named task until the shutdown's end; an exception in it ends the process with status 1."""
        raise NotImplementedError

    def on_shutdown(self, step: Step, name: str, callback: Callable[[], Awaitable[None]]) -> None:
        """Have `callback` run in `step`. All steps share the grace; what overruns it is cancelled and logged."""
        raise NotImplementedError

    def set_active(self, active: bool) -> None:
        """Say (for `ask.status`) whether this is the one that writes."""
        raise NotImplementedError


def run(service: str, settings: S, main: Callable[[Context[S]], Awaitable[None]]) -> int:
    """Run a service to its end and return the exit status.

    `main` runs as long as the service lives and is cancelled after the shutdown's steps; when it returns by itself the
    shutdown begins. Status: 0 stopped as asked, 1 crashed, 3 superseded by another writer (restart me).
    """
    raise NotImplementedError
