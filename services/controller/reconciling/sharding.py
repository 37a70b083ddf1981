"""Divides keys among the replicas of the controllers, by Leases: the shell of `membership`.

Each replica renews a Lease of its own, whose annotation has its view. The cost is one write and one
list every `RENEW_S`. A replica that is stopped deletes its Lease, and the other replicas take over
in their next round.

A replica owns no keys while Volcano's own controllers are active, which renew a Lease, too.
"""

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from services.controller.other_controllers import OtherControllers
from services.controller.reconciling.membership import Heartbeat, Membership
from services.controller.reconciling.work_queue import WorkQueue
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError, NotFound
from shared.kube.leases import Lease
from shared.kube.resources import LEASES

logger = logging.getLogger(__name__)

RENEW_S: Final = 2.0
#: Three renewals may fail.
EXPIRE_S: Final = 7.0
#: After this multiple of the expiry, a dead replica's Lease is deleted: it will not return under
#: its name.
_LEASE_DELETED_AFTER: Final = 20
_LABEL: Final = "tutti.dev/controllers"
_VIEW: Final = "tutti.dev/view"


class Shards:
    """One replica's share of all keys of its controllers."""

    def __init__(
        self,
        client: KubeClient,
        identity: str,
        controllers: Iterable[str],
        *,
        namespace: str,
        others: OtherControllers,
        pod_uid: str = "",
        renew_s: float = RENEW_S,
        expire_s: float = EXPIRE_S,
    ) -> None:
        """Own no keys before `run`.

        Args:
            client: Client of the API server.
            identity: This replica's name, the same after a restart.
            controllers: Its controllers; replicas with the same controllers divide keys.
            namespace: Namespace of the Leases.
            others: Controllers of other projects; this replica owns no keys while one is active.
            pod_uid: UID of the pod named `identity` in that namespace, if there is one: it owns our
                Lease, so that garbage collection deletes it where `leave` cannot.
            renew_s: Seconds between rounds.
            expire_s: Seconds of silence after which a replica counts as dead.
        """
        self._group = f"{zlib.crc32(','.join(sorted(controllers)).encode()):08x}"
        self._client = client
        self._identity = identity
        self._namespace = namespace
        owner = {"apiVersion": "v1", "kind": "Pod", "name": identity, "uid": pod_uid}
        self._owners = [owner] if pod_uid else []
        self._renew_s = renew_s
        self._name = self._lease_of(identity)
        self._expire_s = expire_s
        self._members = Membership(identity, expire_s=expire_s)
        self._left = asyncio.Event()
        self._others = others
        self._queues: list[tuple[WorkQueue, Callable[[], Iterable[str]]]] = []
        #: Whether keys were gained and are not woken yet; a failed round leaves them to the next.
        self._gained = False

    def _lease_of(self, identity: str) -> str:
        return f"tutti-controllers-{self._group}-{identity}"

    def owns(self, key: str) -> bool:
        return self._others.none_active and self._members.owns(key, _now_s())

    def join(self, queue: WorkQueue, keys: Callable[[], Iterable[str]]) -> None:
        self._queues.append((queue, keys))

    async def run(self) -> None:
        """Publish our heartbeat and read those of other replicas, until cancelled. While the API
        server fails, this replica soon owns no keys.
        """
        while not self._left.is_set():
            try:
                await self._round()
            except KubeError as error:
                logger.warning("the controllers' Leases cannot be kept: %s", error)
            await asyncio.sleep(self._renew_s)

    async def leave(self) -> None:
        """Give up all keys and let the other replicas take over at once. Never fails."""
        self._left.set()
        self._members = Membership(self._identity, expire_s=0.0)
        with contextlib.suppress(KubeError):
            await self._client.delete(LEASES, self._name, namespace=self._namespace)

    async def _round(self) -> None:
        self._gained |= await self._others.check()
        # First publish, then read: of two replicas that start together, each sees the other.
        await self._renew()
        announced = self._members.announced
        await self._observe()
        if announced != self._members.announced:
            # Our view has changed: publish it, and read at once whether the other replicas agree.
            await self._renew()
            await self._observe()
        if self._gained:
            self._gained = False
            logger.info(
                "the controllers divide the objects among themselves: %s",
                ", ".join(self._members.view),
            )
            for queue, keys in self._queues:
                for key in keys():
                    if self.owns(key):
                        queue.add(key)

    async def _observe(self) -> None:
        heartbeats = await self._heartbeats()
        at_work = (key for queue, _ in self._queues for key in queue.at_work())
        self._gained |= self._members.observe(heartbeats, at_work, _now_s())
        for member in self._members.silent(_now_s(), self._expire_s * _LEASE_DELETED_AFTER):
            # Killed, and started again under another name. If it is alive, it creates its Lease
            # again.
            with contextlib.suppress(NotFound):
                await self._client.delete(LEASES, self._lease_of(member), namespace=self._namespace)

    async def _heartbeats(self) -> dict[str, Heartbeat]:
        page = await self._client.list(
            LEASES, Lease, namespace=self._namespace, label_selector=f"{_LABEL}={self._group}"
        )
        heartbeats: dict[str, Heartbeat] = {}
        for lease in page.items:
            if isinstance(lease, Lease) and lease.spec.holder_identity:
                view = lease.metadata.annotations.get(_VIEW, "")
                heartbeats[lease.spec.holder_identity] = Heartbeat(
                    tuple(filter(None, view.split(","))), str(lease.spec.renew_time)
                )
        return heartbeats

    async def _renew(self) -> None:
        if self._left.is_set():
            return
        sent_s = _now_s()
        manifest = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "labels": {_LABEL: self._group},
                "annotations": {_VIEW: ",".join(self._members.announced)},
                "ownerReferences": self._owners,
            },
            "spec": {
                "holderIdentity": self._identity,
                "renewTime": datetime.now(UTC).isoformat(timespec="microseconds")[:26] + "Z",
                "leaseDurationSeconds": 10,
            },
        }
        try:
            await self._client.patch(LEASES, self._name, manifest, namespace=self._namespace)
        except NotFound:
            if self._left.is_set():
                return
            # Created at the same moment by a replica of our name; the next round renews it.
            with contextlib.suppress(Conflict):
                await self._client.create(LEASES, manifest, namespace=self._namespace)
        self._members.renewed(sent_s, _now_s())


def _now_s() -> float:
    return asyncio.get_running_loop().time()
