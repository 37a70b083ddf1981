"""A work queue of keys, as in client-go: one call per key at a time, retries with backoff.

A key added twice while it waits is handled once; a key added while it is handled is handled again.
A key whose work raises a KubeError returns after a backoff of its own; any other exception is a
bug, which is logged and delays no other key. `after` adds a key later: the earliest instant counts,
and handling the key clears it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from shared.kube.errors import KubeError
from shared.pacing import Backoff

logger = logging.getLogger(__name__)

#: Short, since a first failure is mostly a conflict with a write that the watch has just reported.
BACKOFF_S_BASE: Final = 0.05
#: Long enough for an overloaded API server, short enough for a waiting user.
BACKOFF_S_MAX: Final = 30.0
#: Delay after a bug: a user who has corrected the object waits so long at most.
BUG_S: Final = 60.0

Work = Callable[[str], Awaitable[float | None]]
"""Handles a key; returns the seconds until the next call, None: at the next change."""


class WorkQueue:
    """See the module. For one event loop; `workers` calls at a time."""

    def __init__(self, name: str, work: Work, *, workers: int = 4) -> None:
        self._name = name
        self._work = work
        self._workers = workers
        self._ready: deque[str] = deque()
        #: Keys in `_ready`, and keys to be handled again after the present call.
        self._wanted: set[str] = set()
        self._at_work: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._news = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._stopped = False

    def __len__(self) -> int:
        """Keys that wait or are being handled."""
        return len(self._wanted | self._at_work)

    def add(self, key: str) -> None:
        if key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._at_work:
            self._ready.append(key)
            self._news.set()

    def after(self, key: str, delay_s: float) -> None:
        """Queue the key after `delay_s`, unless it is queued sooner."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, delay_s)
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= at:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(at, self._due, key)

    def forget(self, key: str) -> None:
        """Discard the key's timer and its backoff."""
        self._backoffs.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._workers):
                    group.create_task(self._work_on(), name=f"{self._name}-worker-{number}")
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    def stop(self) -> None:
        """Begin no further calls."""
        self._stopped = True

    def at_work(self) -> Iterable[str]:
        return tuple(self._at_work)

    async def quiet(self) -> None:
        """Wait until no key is being handled."""
        while self._at_work:
            self._quiet.clear()
            await self._quiet.wait()

    def _due(self, key: str) -> None:
        del self._timers[key]
        self.add(key)

    async def _work_on(self) -> None:
        while True:
            while self._stopped or not self._ready:
                self._news.clear()
                await self._news.wait()
            key = self._ready.popleft()
            self._wanted.discard(key)
            timer = self._timers.pop(key, None)
            if timer is not None:
                timer.cancel()
            self._at_work.add(key)
            try:
                await self._once(key)
            finally:
                self._at_work.discard(key)
                self._quiet.set()
            if key in self._wanted:
                self._ready.append(key)
                self._news.set()

    async def _once(self, key: str) -> None:
        try:
            again_s = await self._work(key)
        except KubeError as error:
            backoff = Backoff(base_s=BACKOFF_S_BASE, max_s=BACKOFF_S_MAX)
            delay_s = self._backoffs.setdefault(key, backoff).next_s(error.retry_after_s)
            logger.info("%s %s: %s; again in %.2f s", self._name, key, error, delay_s)
            self.after(key, delay_s)
        except Exception:
            # A bug that one object triggers must not stop the work for other objects.
            logger.exception(
                "%s %s: unexpected error, a bug; again in %g s", self._name, key, BUG_S
            )
            self.after(key, BUG_S)
        else:
            self._backoffs.pop(key, None)
            if again_s is not None:
                self.after(key, again_s)
