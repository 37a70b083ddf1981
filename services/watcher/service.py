"""The watcher's shell: waits for the lease, lists, opens an epoch, and publishes until superseded.

A standby has no watches: on takeover it lists with a consistent read, which takes about a second
for ten thousand pods, less than the age at which readers count their cluster state as stale. The
lease only decides which watcher tries; losing it changes nothing. A watcher that is superseded in
the log begins again as a standby.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from services.watcher.cluster_publisher import RENEWAL_S, ClusterPublisher
from services.watcher.config import WatcherSettings
from services.watcher.core.snapshots import SnapshotCache
from services.watcher.reporting import Reporting
from services.watcher.resource_watches import ResourceWatches
from services.watcher.state import WatcherState
from shared.bus import questions
from shared.bus.connection import Bus, Subscription
from shared.contracts import codec, subjects
from shared.contracts.cluster import SnapshotPage, SnapshotRequest, SnapshotUnavailable
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.runtime.lifecycle import Context, Step
from shared.telemetry.metrics import ApiCalls

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


LEASE: Final = "watcher"
#: A watcher without the lease after this time is a standby, and ready as one.
_STANDBY_AFTER_S: Final = 2.0

logger = logging.getLogger(__name__)


async def serve(ctx: Context[WatcherSettings]) -> None:
    """Run a watcher until it is stopped.

    Raises:
        CredentialsError: The API server does not accept the credentials.
        Superseded: Another watcher has taken over.
    """
    ctx.ready.require("synced")
    ctx.set_active(False)
    credentials = await load(ctx.settings.kubeconfig, ctx.settings.context)
    reporting = Reporting(ctx.metrics, ctx.tracer)
    async with (
        KubeClient(
            credentials, user_agent="tutti-watcher", on_call=ApiCalls(ctx.metrics)
        ) as client,
        asyncio.TaskGroup() as tasks,
    ):
        await _wait_for_turn(ctx, tasks)
        ctx.set_active(True)
        active = tasks.create_task(_be_active(ctx, client, reporting), name="watcher-active")

        async def stop() -> None:
            # Pending changes are dropped: the next watcher lists, and opens its own epoch.
            active.cancel()
            await asyncio.wait([active])

        ctx.on_shutdown(Step.STOP_TAKING, "watching", stop)


async def _wait_for_turn(ctx: Context[WatcherSettings], tasks: asyncio.TaskGroup) -> None:
    """Return once this process has the lease, which is renewed from then on."""
    lease = ctx.lease(LEASE, lambda: True)

    def on_change(held: bool) -> None:
        logger.info(
            "the lease is %s", "held" if held else "lost: writing until another watcher takes over"
        )

    renewing = tasks.create_task(lease.run(on_change), name="watcher-lease")

    async def release() -> None:
        renewing.cancel()
        await asyncio.wait([renewing])
        await lease.release()

    ctx.on_shutdown(Step.RELEASE_LEASE, "lease", release)
    try:
        async with asyncio.timeout(_STANDBY_AFTER_S):
            await lease.wait_held()
    except TimeoutError:
        logger.info("another watcher is active: standing by")
        ctx.ready.set("synced")
        await lease.wait_held()


async def _be_active(
    ctx: Context[WatcherSettings], client: KubeClient, reporting: Reporting
) -> None:
    """Fence, list, open an epoch, publish; until cancelled or overtaken."""
    settings = ctx.settings
    ctx.ready.unready("synced", "listing the cluster")
    state = WatcherState(settings.scheduler_name, podgroup_controller=settings.podgroup_controller)
    publishing = ClusterPublisher(
        state, watcher=ctx.instance, now_ms=ctx.now_ms, reporting=reporting
    )
    watching = ResourceWatches(client, state, on_change=publishing.poke, reporting=reporting)
    answering = SnapshotServer(publishing, ctx.now_ms, reporting)

    def report() -> None:
        why = (
            watching.ill()
            or publishing.stuck
            or ("" if reporting.epoch else "no epoch is open yet")
        )
        if why:
            ctx.ready.unready("synced", why)
        else:
            ctx.ready.set("synced")
        reporting.observe(state, watching.relists())

    # Before the new epoch is in the log: its readers request the snapshot at once, and without a
    # living watcher a request lasts until its timeout.
    subscription = await answering.serve(ctx.bus)
    try:
        # Before the lists: then these contain everything that a predecessor has published.
        await publishing.take_over(ctx.bus)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watching.run(), name="watcher-watching")
            tasks.create_task(_keep_reporting(report), name="watcher-reporting")
            await watching.listed.wait()
            epoch = await publishing.open()
            pods, nodes = state.cluster_state.count("pod"), state.cluster_state.count("node")
            logger.info("epoch %d is open with %d pods and %d nodes", epoch, pods, nodes)
            reporting.opened(epoch, state.cluster_state.groups(), ctx.now_ms())
            report()
            await publishing.run(watching.ill)
    finally:
        await subscription.close()


async def _keep_reporting(report: Callable[[], None]) -> None:
    """Report readiness and gauges each second: they change without an event."""
    while True:
        report()
        await asyncio.sleep(RENEWAL_S)
