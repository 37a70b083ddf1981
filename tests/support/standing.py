"""What the lifecycle gives a service, without the process around it: for tests of shells."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from typing_extensions import override

from shared.bus.connection import Bus
from shared.runtime.health import Readiness
from shared.runtime.lifecycle import Context, Step
from shared.runtime.settings import CommonSettings
from shared.runtime.steady_clock import SteadyClock
from shared.telemetry.foreign_messages import ForeignMessageCounter
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracers import tracer_for

S = TypeVar("S", bound=CommonSettings)


class Stand(Context[S], Generic[S]):
    """A context whose shutdown is a method."""

    def __init__(self, service: str, instance: str, settings: S, bus: Bus) -> None:
        self.service = service
        self.instance = instance
        self.ordinal = 0
        self.settings = settings
        self.bus = bus
        self.ready = Readiness()
        self.metrics = Metrics(service)
        self.foreign_messages = ForeignMessageCounter(self.metrics)
        self.tracer = tracer_for("", service=service, instance=instance)
        self.stopping = asyncio.Event()
        self.active = True
        self.clock = SteadyClock()
        self.steps: list[tuple[Step, Callable[[], Awaitable[None]]]] = []

    @override
    def on_shutdown(self, step: Step, name: str, callback: Callable[[], Awaitable[None]]) -> None:
        self.steps.append((step, callback))

    async def shut_down(self) -> None:
        """Go through the steps as the lifecycle does."""
        self.stopping.set()
        for _, callback in sorted(self.steps, key=lambda entry: entry[0]):
            await callback()
