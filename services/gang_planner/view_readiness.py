"""Reports in readiness whether the cluster state is new enough for decisions.

A leader with an old state repairs and releases, and decides nothing else. That it cannot must be
seen from outside, and its lease goes to a standby that can (`shared.bus.lease`).
"""

import asyncio
from typing import Final, NoReturn

from services.gang_planner.applying import Applier
from services.gang_planner.core.picture import FRESH_MS
from shared.runtime.health import Readiness

TOPIC: Final = "cluster view"
_PERIOD_S: Final = 1.0


class ViewReadiness:
    """Keeps one topic of the readiness true."""

    def __init__(self, ready: Readiness, applier: Applier) -> None:
        self._ready = ready
        self._applier = applier

    def age_s(self) -> float:
        """Age of the cluster state in seconds; 0 before the first one."""
        return (self._applier.view_age_ms or 0) / 1000

    async def watch(self) -> NoReturn:
        """Compare once a second, until cancelled."""
        while True:
            self._report()
            await asyncio.sleep(_PERIOD_S)

    def _report(self) -> None:
        if not self._applier.caught_up or self._applier.view_is_fresh:
            # Until it has caught up, another topic says so.
            self._ready.set(TOPIC)
            return
        if self._applier.view_age_ms is None:
            why = "the snapshot of a new watcher has not arrived"
        else:
            why = f"no cluster.synced has arrived for {FRESH_MS // 1000} s"
        self._ready.unready(TOPIC, f"{why}: nothing new is decided")
