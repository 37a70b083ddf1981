"""Keeps the processes of all services running, and stops them in order.

A process that ends is restarted after a delay that grows while it ends early; a hung one is killed
first. Only exit status 2 is final: it reports wrong flags, which a restart would not change. Every
other failure may be transient, so restarts never stop.
"""

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import groupby
from typing import Final

from shared.pacing import Backoff
from tutti.api.failures import Refusal
from tutti.lifeline import log_tail
from tutti.up.processes import Child, Launcher, ProcessSpec
from tutti.up.watchdog import Heartbeats, Say, kill_when_hung

#: The first delay: a killed process restarts almost at once, a failing one must not occupy a core.
FIRST_S: Final = 0.1
MAX_S: Final = 15.0
#: After this lifetime a process counts as healthy, and its next end as the first.
HEALTHY_AFTER_S: Final = 10.0


class Restarts:
    """The delays of one process: they grow while it ends early, and start over after a healthy
    lifetime.
    """

    def __init__(self, rng: random.Random) -> None:
        self._backoff = Backoff(base_s=FIRST_S, max_s=MAX_S, random=rng)

    def delay_s(self, lived_s: float) -> float:
        """The delay after an end, by the lifetime of the process."""
        if lived_s >= HEALTHY_AFTER_S:
            self._backoff.reset()
        return self._backoff.next_s()


#: Exit status of a service with a wrong setting (`shared.runtime.settings.load`).
WRONG_SETTINGS: Final = 2
#: Services finish their work within a grace period of 10 s of their own; then they are killed.
GRACE_S: Final = 12.0

Sleep = Callable[[float], Awaitable[None]]


class ServiceRefused(Refusal):
    """A service refused its flags; a restart would not help."""


class Keeper:
    """Keeps one process running from `run` to `stop`."""

    def __init__(
        self,
        spec: ProcessSpec,
        launcher: Launcher,
        say: Say,
        *,
        heartbeats: Heartbeats | None = None,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.spec = spec
        self._launcher = launcher
        self._say = say
        self._heartbeats = heartbeats
        self._restarts = Restarts(random.Random())  # noqa: S311 - jitter, no secret
        self._clock_s = clock_s
        self._sleep = sleep
        self._child: Child | None = None
        self._stopping = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The process that runs now; None while it restarts."""
        return None if self._child is None else self._child.pid

    async def run(self) -> None:
        """Start the process, and restart it whenever it ends; return after `stop`.

        After a cancellation the process continues: `stop` ends it.

        Raises:
            ServiceRefused: It refused its flags.
        """
        while not self._stopping.is_set():
            started_s = self._clock_s()
            try:
                child = self._child = await self._launcher.launch(self.spec)
            except OSError as error:
                delay_s = self._restarts.delay_s(0.0)
                self._say(
                    f"{self.spec.title} cannot be started: {error}; next attempt in {delay_s:.1f} s"
                )
                await self._sleep(delay_s)
                continue
            status = await self._end_of(child)
            self._child = None
            if self._stopping.is_set():
                return
            if status == WRONG_SETTINGS:
                # The last line has the reason; before it there may be a log.
                reason = log_tail(self.spec.log).rpartition("\n")[2]
                raise ServiceRefused(f"{self.spec.title} refuses its flags: {reason}")
            delay_s = self._restarts.delay_s(self._clock_s() - started_s)
            self._say(
                f"{self.spec.title} (pid {child.pid}) {how_it_ended(status)}, "
                f"starts again in {delay_s:.1f} s"
            )
            await self._sleep(delay_s)

    async def _end_of(self, child: Child) -> int:
        """Wait for the end of a process, and kill it when it hangs."""
        heartbeats = self._heartbeats
        if heartbeats is None or not heartbeats.supported:
            return await child.wait()
        watching = asyncio.create_task(
            kill_when_hung(child, self.spec.title, lambda: heartbeats.last_s(child.pid), self._say),
            name=f"watch-{self.spec.title}",
        )
        try:
            return await child.wait()
        finally:
            watching.cancel()
            heartbeats.forget(child.pid)

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """End the process with SIGTERM, and with SIGKILL after the grace period. Idempotent.

        Afterwards, also after a cancellation, the process has ended, and `run` returns.
        """
        self._stopping.set()
        child = self._child
        if child is None:
            return
        child.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await child.wait()
        except TimeoutError:
            self._say(f"{self.spec.title} (pid {child.pid}) did not stop in {grace_s:g} s: killed")
            await _kill(child)
        except BaseException:
            await _kill(child)
            raise
        self._child = None


class Supervisor:
    """The keepers of all processes."""

    def __init__(
        self,
        specs: Iterable[ProcessSpec],
        launcher: Launcher,
        say: Say,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        self._say = say
        self.keepers: Sequence[Keeper] = [
            Keeper(spec, launcher, say, heartbeats=heartbeats) for spec in specs
        ]
        self._hurry = asyncio.Event()

    async def run(self) -> None:
        """Keep all processes running until cancelled; they then continue until `stop`.

        Raises:
            ServiceRefused: A service refused its flags.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for keeper in self.keepers:
                    group.create_task(keeper.run(), name=f"keep-{keeper.spec.title}")
        except* ServiceRefused as failures:
            # One of the failures is sufficient for the message.
            raise failures.exceptions[0] from None

    def hurry(self) -> None:
        """End the grace period: kill the processes that still run."""
        self._hurry.set()

    async def stop(self) -> None:
        """Stop all processes, service by service in the reverse order of starting."""
        for _, group in groupby(reversed(self.keepers), key=lambda keeper: keeper.spec.service):
            async with asyncio.TaskGroup() as tasks:
                for keeper in group:
                    tasks.create_task(self._stop_one(keeper), name=f"stop-{keeper.spec.title}")

    async def _stop_one(self, keeper: Keeper) -> None:
        stopping = asyncio.create_task(keeper.stop(), name=f"grace-{keeper.spec.title}")
        hurried = asyncio.create_task(self._hurry.wait(), name="hurry")
        try:
            await asyncio.wait((stopping, hurried), return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                stopping.cancel()
        finally:
            hurried.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await stopping


def how_it_ended(status: int) -> str:
    """The text for an exit status."""
    if status >= 0:
        return f"ended with status {status}"
    known = -status in signal.valid_signals() and -status in {int(each) for each in signal.Signals}
    return f"was killed by {signal.Signals(-status).name if known else f'signal {-status}'}"


async def _kill(child: Child) -> None:
    child.send_signal(signal.SIGKILL)
    # It ends at once, so a cancellation may wait for it.
    await asyncio.shield(asyncio.ensure_future(child.wait()))
