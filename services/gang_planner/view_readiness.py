"""Reports in readiness whether the cluster state is new enough for decisions.

A leader with an old state repairs and releases, and decides nothing else. That it cannot must be
seen from outside, and its lease goes to a standby that can (`shared.bus.lease`).
"""

import asyncio
from typing import Final, NoReturn

from services.gang_planner.applier import Applier
from services.gang_planner.core.ingest.cluster import FRESH_MS
from shared.runtime.health import Readiness

TOPIC: Final = "cluster view"
_PERIOD_S: Final = 1.0
#: Reports in a row, each in time, that find the state stale before the lease is offered to another
#: process. A report that is late says only that this process computed, or was not given the CPU:
#: what the watcher sent meanwhile is not read yet.
_STALE_MAX: Final = 5


class ViewReadiness:
    """Keeps one topic of the readiness true."""

    def __init__(self, ready: Readiness, applier: Applier) -> None:
        self._ready = ready
        self._applier = applier
        self._stale = 0

    @property
    def able(self) -> bool:
        """Whether this process could decide, as far as the cluster state goes; False only when it
        has been stale for a while although the event loop ran. Read in another thread.
        """
        return self._stale < _STALE_MAX

    def age_s(self) -> float:
        """Age of the cluster state in seconds; 0 before the first one."""
        return (self._applier.view_age_ms or 0) / 1000

    async def watch(self) -> NoReturn:
        """Compare once a second, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._report()
            due_s = loop.time() + _PERIOD_S
            await asyncio.sleep(_PERIOD_S)
            if loop.time() - due_s > _PERIOD_S / 2:
                self._stale = 0

    def _report(self) -> None:
        if not self._applier.caught_up or self._applier.view_is_fresh:
            # Until it has caught up, another topic says so.
            self._stale = 0
            self._ready.set(TOPIC)
            return
        self._stale += 1
        if self._applier.view_age_ms is None:
            why = "the snapshot of a new watcher has not arrived"
        else:
            why = f"no cluster.synced has arrived for {FRESH_MS // 1000} s"
        self._ready.unready(TOPIC, f"{why}: nothing new is decided")
