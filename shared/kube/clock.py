"""The monotonic clock of a list-watch, which tests replace."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic time and sleep."""

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s` seconds."""
        ...

    async def wait(self, event: asyncio.Event, timeout_s: float) -> bool:
        """Return True as soon as the event is set, or False after `timeout_s` seconds."""
        ...


class SystemClock:
    """The clock of this machine."""

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s` seconds."""
        await asyncio.sleep(delay_s)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> bool:
        """Return True as soon as the event is set, or False after `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                return await event.wait()
        except TimeoutError:
            return False
