"""Whether this process may decide: how old its cluster state is, and whether NATS lost DECISIONS.

A leader with an old cluster state repairs and releases, and decides nothing else. Readiness reports
that, and its lease goes to a standby with a newer state (`shared.bus.lease`).
"""

import asyncio
from typing import Final, NoReturn

from services.gang_planner.applier import Applier
from services.gang_planner.core.state.tables import FRESH_MS
from shared.contracts.cluster import StreamOpened
from shared.runtime.health import Readiness

TOPIC: Final = "cluster view"
_PERIOD_S: Final = 1.0
#: Checks in a row, each in time, that find the state stale before the lease is offered to another
#: process. A late check proves only that this process computed, or had no CPU: records that the
#: watcher sent in that time are not applied yet.
_STALE_MAX: Final = 5


class ViewReadiness:
    """Reports the age of the cluster state in one topic of the readiness."""

    def __init__(self, ready: Readiness, applier: Applier) -> None:
        self._ready = ready
        self._applier = applier
        self._stale = 0

    @property
    def able(self) -> bool:
        """Whether this process could decide, as far as the cluster state goes; False only when it
        has been stale for a while although the event loop ran. Read by another thread.
        """
        return self._stale < _STALE_MAX

    def age_s(self) -> float:
        """Age of the cluster state in seconds; 0 before the first one."""
        return (self._applier.view_age_ms or 0) / 1000

    async def watch(self) -> NoReturn:
        """Check once a second, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._report()
            due_s = loop.time() + _PERIOD_S
            await asyncio.sleep(_PERIOD_S)
            if loop.time() - due_s > _PERIOD_S / 2:
                self._stale = 0

    def _report(self) -> None:
        if not self._applier.caught_up or self._applier.view_is_fresh:
            # Until it has caught up, another topic reports that.
            self._stale = 0
            self._ready.set(TOPIC)
            return
        self._stale += 1
        if self._applier.view_age_ms is None:
            why = "the snapshot of a new watcher has not arrived"
        else:
            why = f"no cluster.synced has arrived for {FRESH_MS // 1000} s"
        self._ready.unready(TOPIC, f"{why}: nothing new is decided")


class ColdStart:
    """How long a planner waits after NATS lost its storage, before it decides.

    DECISIONS remembers what is in flight. When it was created again, bindings that the lost stream
    ordered may still arrive at the API server, and no service knows their reservations. So the
    planner waits until the longest request must have ended; the cluster state is current by then.
    Setup knows that a stream replaces another one (`StreamOpened.replaces`), because services that
    worked with that one still ran. A first start does not wait.
    """

    def __init__(self, wait_s: int) -> None:
        """Wait for `wait_s` after a stream was created in place of a lost one."""
        self._wait_ms = wait_s * 1000
        self._until_ms: int | None = None

    def observe(self, opened: StreamOpened | None, now_ms: int, age_ms: int) -> None:
        """Take the first record of DECISIONS, which was stored `age_ms` ago; None: it has aged out,
        so no wait is needed.

        The record's own instant is not used: it is of another machine's clock.
        """
        if opened is not None and opened.replaces:
            until_ms = now_ms - age_ms + self._wait_ms
            self._until_ms = until_ms if self._until_ms is None else min(until_ms, self._until_ms)

    def until_ms(self, now_ms: int) -> int | None:
        """When the planner may decide; None: now."""
        if self._until_ms is None or now_ms >= self._until_ms:
            return None
        return self._until_ms
