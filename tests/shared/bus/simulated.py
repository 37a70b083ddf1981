"""The simulation's nats-server behind the same handles as a real one, on asyncio's own clock.

It is what makes the simulation's bus trustworthy: every test here that needs nothing of the real
server's inside runs on both.
"""

import asyncio
import time
from random import Random
from typing import Any

from tests.simulation.nats_server import SimNats


class AsyncioClock:
    """The running loop's time for a simulated server."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def time(self) -> float:
        return self._loop.time()

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def at(self, delay_s: float, action: Any, *args: object) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_s, action, *args)

    def at_instant(self, when: float, action: Any, *args: object) -> asyncio.TimerHandle:
        return self._loop.call_at(when, action, *args)


class SimulatedServer:
    """Stands in for `tutti.nats_server.NatsServer`, as far as the bus's tests use it."""

    url = "nats://simulated"

    def __init__(self) -> None:
        self.nats = SimNats(AsyncioClock(), Random(1))

    async def kill(self) -> None:
        self.nats.kill()
        await asyncio.sleep(0.002)  # until its clients have noticed, as a real one's have by then

    async def start(self) -> None:
        self.nats.start()
