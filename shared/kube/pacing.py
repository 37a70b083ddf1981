"""When to do the next thing: a clock that tests can replace, exponential backoff with full jitter
between failures, and a bucket of tokens for what is free in bursts and bounded for ever.
"""

import asyncio
import time
from random import Random
from typing import Protocol


class Clock(Protocol):
    """Monotonic time and sleep."""

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after so many seconds."""
        ...

    async def wait(self, event: asyncio.Event, timeout_s: float) -> bool:
        """Return True as soon as the event is set, False when it is not within the time."""
        ...


class SystemClock:
    """The real one."""

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(delay_s)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> bool:
        """Return True as soon as the event is set, False when it is not within the time."""
        try:
            async with asyncio.timeout(timeout_s):
                return await event.wait()
        except TimeoutError:
            return False


class Backoff:
    """Delays between failures in a row: drawn from 0 to a bound that doubles up to `max_s`.

    Full jitter spreads the clients of an API server that comes back; see `next_s` for the one lower
    bound.
    """

    def __init__(self, *, base_s: float, max_s: float, random: Random) -> None:
        self._base_s = base_s
        self._max_s = max_s
        self._random = random
        self._failures = 0

    def next_s(self, retry_after_s: float | None = None) -> float:
        """Count one more failure and return how long to wait.

        Never less than a hundredth of a second, so that no failure is retried in a hot loop, nor
        less than what the API server asked for (up to `max_s`: an absurd Retry-After must not
        silence us).
        """
        bound_s = min(self._max_s, self._base_s * 2 ** min(self._failures, 30))
        self._failures += 1
        least_s = min(retry_after_s or 0.0, self._max_s)
        return max(0.01, least_s, self._random.uniform(0.0, bound_s))

    def reset(self) -> None:
        """Something worked: the next failure counts as the first."""
        self._failures = 0


class TokenBucket:
    """A burst goes at once, a lasting stream at a rate. Pure: the instant is an argument."""

    def __init__(self, *, burst: int, per_s: int) -> None:
        self._burst = burst
        self._per_s = per_s
        self._tokens = float(burst)
        self._at_s: float | None = None

    def wait_s(self, now_s: float, tokens: int = 1) -> float:
        """Draw so many tokens at `now_s`; returns how long to wait for them, 0.0 mostly."""
        if self._at_s is not None:
            gained = max(0.0, now_s - self._at_s) * self._per_s
            self._tokens = min(float(self._burst), self._tokens + gained)
        self._at_s = now_s
        self._tokens -= tokens
        return max(0.0, -self._tokens / self._per_s)

    def put_back(self) -> None:
        """Return a token that was drawn and not waited for."""
        self._tokens += 1
