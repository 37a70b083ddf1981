"""Clocks that a test moves."""

import asyncio


class ManualClock:
    """Returns the seconds in `now_s`, which only the test changes."""

    def __init__(self, now_s: float = 100.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


class SleepingClock(ManualClock):
    """Time passes also by sleeping, and that at once; `sleeps` has the seconds of each."""

    def __init__(self, now_s: float = 0.0) -> None:
        super().__init__(now_s)
        self.sleeps: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        """Let `delay_s` pass, and other tasks run."""
        self.sleeps.append(delay_s)
        self.now_s += delay_s
        await asyncio.sleep(0)
