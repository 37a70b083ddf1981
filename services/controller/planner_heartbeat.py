"""Renews the Lease `tutti-gang-planner` while a planner is alive, so that users can see it.

Users cannot reach NATS. The planners' lease in NATS is renewed twice a second; this process
renews the Kubernetes Lease every two seconds, while verdicts are written to groups as well. So a
fresh renewal shows that each part works: planner, NATS, status controller and API server.

The written instant is the API server's time: the Date of its last answer, advanced by this
process's monotonic clock. A reader compares it with the Date of the answer in which it reads the
Lease, so no other machine's clock is involved.

The installer (the chart, `tutti up`) creates and deletes the Lease; this process never creates it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

from shared.bus.connection import Bus, Message
from shared.bus.lease import holder_of
from shared.contracts import subjects
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.leases import (
    PLANNER_LEASE,
    PLANNER_RENEWAL_S,
    PLANNER_SILENT_S,
    SCHEDULER_NAMES,
    micro_time,
    server_time,
)
from shared.kube.resources import LEASES

logger = logging.getLogger(__name__)


class PlannerHeartbeat:
    def __init__(
        self,
        bus: Bus,
        client: KubeClient,
        *,
        namespace: str,
        scheduler_names: Collection[str],
        writes_statuses: Callable[[], bool],
        renewal_s: float = PLANNER_RENEWAL_S,
    ) -> None:
        """Nothing is renewed before `run`. `namespace` is that of the Lease, `scheduler_names` are
        those that the planner serves; `writes_statuses` returns whether verdicts are written to
        groups.
        """
        self._bus = bus
        self._client = client
        self._path = LEASES.path(namespace, PLANNER_LEASE)
        self._namespace = namespace
        self._scheduler_names = ",".join(sorted(scheduler_names))
        self._writes_statuses = writes_statuses
        self._renewal_s = renewal_s
        self._holder = ""
        self._heard = asyncio.Event()
        #: The API server's time, and the loop's time when it was noted; None before an answer.
        self._server_time: tuple[datetime, float] | None = None
        self._failing = False

    async def run(self) -> None:
        """Renew while a planner is alive, until cancelled."""
        subject = subjects.lease(subjects.PLANNER_LEASE_KEY)
        subscription = await self._bus.subscribe(subject, self._on_renewal)
        try:
            while True:
                await self._heard.wait()
                if self._writes_statuses():
                    await self._renew()
                self._heard.clear()
                await asyncio.sleep(self._renewal_s)
        finally:
            await subscription.close()

    async def _on_renewal(self, renewal: Message) -> None:
        holder = holder_of(renewal)
        if holder:
            self._holder = holder
            self._heard.set()

    async def _renew(self) -> None:
        """Write the API server's time and the holder. A failed write is repeated at the next
        renewal.
        """
        try:
            if self._server_time is None:
                reply = await self._client.request("GET", self._path)
                self._note_time(reply.headers)
            reply = await self._client.patch(
                LEASES, PLANNER_LEASE, self._patch(), namespace=self._namespace
            )
            self._note_time(reply.headers)
        except KubeError as error:
            if not self._failing:
                logger.warning(
                    "Lease %s/%s not renewed, so users cannot see that the planner is alive: %s",
                    self._namespace,
                    PLANNER_LEASE,
                    error,
                )
            self._failing = True
        else:
            self._failing = False

    def _note_time(self, headers: Any) -> None:
        instant = server_time(headers)
        if instant is not None:
            self._server_time = instant, asyncio.get_running_loop().time()

    def _patch(self) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": int(PLANNER_SILENT_S),
        }
        if self._server_time is not None:
            instant, noted_s = self._server_time
            elapsed_s = asyncio.get_running_loop().time() - noted_s
            spec["renewTime"] = micro_time(instant + timedelta(seconds=elapsed_s))
        return {"metadata": {"annotations": {SCHEDULER_NAMES: self._scheduler_names}}, "spec": spec}
