"""Answers `ask.watcher.snapshot`: the whole cluster state, in pages."""

import asyncio
from collections.abc import Callable
from typing import Final

from services.watcher.cluster_publisher import ClusterPublisher
from services.watcher.core.snapshots import SnapshotCache
from services.watcher.reporting import Reporting
from shared.bus import questions
from shared.bus.connection import Bus, Subscription
from shared.contracts import codec, subjects
from shared.contracts.cluster import SnapshotPage, SnapshotRequest, SnapshotUnavailable

#: A flush takes milliseconds; one that takes longer than this has lost its connection to NATS.
_BOUNDARY_TIMEOUT_S: Final = 2.0


class SnapshotServer:
    """Serves snapshots of what `ClusterPublisher` has published."""

    def __init__(
        self, publishing: ClusterPublisher, now_ms: Callable[[], int], reporting: Reporting
    ) -> None:
        self._publishing = publishing
        self._now_ms = now_ms
        self._reporting = reporting
        self._snapshots = SnapshotCache()

    async def serve(self, bus: Bus) -> Subscription:
        """Answer from now on, until the subscription is closed."""
        return await questions.serve(
            bus, subjects.ASK_SNAPSHOT, codec.decode_snapshot_request, self._answer
        )

    async def _answer(self, request: SnapshotRequest) -> SnapshotPage | SnapshotUnavailable:
        if request.snapshot:
            return self._snapshots.page(request.snapshot, request.page, self._now_ms())
        try:
            async with asyncio.timeout(_BOUNDARY_TIMEOUT_S):
                boundary = await self._publishing.boundary()
        except TimeoutError:
            return SnapshotUnavailable(reason="the watcher cannot write to CLUSTER now")
        self._reporting.snapshots.inc()
        now_ms = self._now_ms()
        kinds = tuple(sorted(request.kinds))
        snapshot = self._snapshots.current(boundary.frozen.version, kinds, now_ms)
        if snapshot is None:
            snapshot = self._snapshots.put(boundary, kinds=kinds, now_ms=now_ms)
        return self._snapshots.page(snapshot.name, request.page, now_ms)
