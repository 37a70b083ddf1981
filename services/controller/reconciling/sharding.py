"""Divides keys among the replicas of the controllers, by Leases: the shell of `membership`.

Each replica keeps a Lease of its own; its annotation says under which view it acts. One write and
one list every `RENEW_S` is all that this costs. A replica that stops in order deletes its Lease,
and the other replicas take over at their next look.

Nothing is ours while Volcano's own controllers live: their Lease is renewed.
"""

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from services.controller.other_controllers import OtherControllers
from services.controller.reconciling.membership import Membership, Word
from services.controller.reconciling.work_queue import WorkQueue
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError, NotFound
from shared.kube.leases import Lease
from shared.kube.resources import LEASES

logger = logging.getLogger(__name__)

RENEW_S: Final = 2.0
#: Three renewals may be lost.
EXPIRE_S: Final = 7.0
#: A replica that is dead for so many times as long will not come back under its name.
_FORGOTTEN_AFTER: Final = 20
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
        """Own nothing before `run`.

        Args:
            client: Of the API server.
            identity: This replica's name, the same when it is started again.
            controllers: What it runs: only replicas that run the same divide keys.
            namespace: Where the Leases are.
            others: While one lives, nothing is ours.
            pod_uid: Of the pod named `identity` in that namespace, if there is one: it owns our
                Lease, so that garbage collection removes it where `leave` cannot.
            renew_s: Seconds between rounds.
            expire_s: A replica silent for so long is taken for dead.
        """
        self._group = f"{zlib.crc32(','.join(sorted(controllers)).encode()):08x}"
        self._client = client
        self._identity = identity
        self._namespace = namespace
        self._owners = _owned_by_pod(identity, pod_uid) if pod_uid else []
        self._renew_s = renew_s
        self._name = self._lease_of(identity)
        self._expire_s = expire_s
        self._members = Membership(identity, expire_s=expire_s)
        self._left = asyncio.Event()
        self._others = others
        self._queues: list[tuple[WorkQueue, Callable[[], Iterable[str]]]] = []
        #: Keys have become ours and are not woken yet: a round that fails leaves it to the next.
        self._gained = False

    def _lease_of(self, identity: str) -> str:
        return f"tutti-controllers-{self._group}-{identity}"

    def owns(self, key: str) -> bool:
        """Whether this replica may act on the key now."""
        return self._others.none_lives and self._members.owns(key, _now_s())

    def join(self, queue: WorkQueue, keys: Callable[[], Iterable[str]]) -> None:
        """Divide the keys of one more controller."""
        self._queues.append((queue, keys))

    async def run(self) -> None:
        """Publish our heartbeat, and read those of other replicas, until cancelled. Problems of the
        API server are waited out: meanwhile this replica stops acting.
        """
        while not self._left.is_set():
            try:
                await self._round()
            except KubeError as error:
                logger.warning("the controllers' Leases cannot be kept: %s", error)
            await asyncio.sleep(self._renew_s)

    async def leave(self) -> None:
        """Let the other replicas take over at once; nothing is owned any more. Never fails."""
        self._left.set()
        self._members = Membership(self._identity, expire_s=0.0)
        with contextlib.suppress(KubeError):
            await self._client.delete(LEASES, self._name, namespace=self._namespace)

    async def _round(self) -> None:
        self._gained |= await self._others.look()
        # First be seen, then look: of two that start together, each sees the other.
        await self._renew()
        said = self._members.said
        await self._hear()
        if said != self._members.said:
            # Our heartbeat has changed: publish it, and read at once whether the other replicas
            # agree.
            await self._renew()
            await self._hear()
        if self._gained:
            self._gained = False
            logger.info("keys are divided among %s", ", ".join(self._members.view))
            for queue, keys in self._queues:
                for key in keys():
                    if self.owns(key):
                        queue.add(key)

    async def _hear(self) -> None:
        words = await self._words()
        self._gained |= self._members.hear(words, self._at_work(), _now_s())
        for member in self._members.silent(_now_s(), self._expire_s * _FORGOTTEN_AFTER):
            # Killed, and started again under another name. Were it alive, it would say so again.
            with contextlib.suppress(NotFound):
                await self._client.delete(LEASES, self._lease_of(member), namespace=self._namespace)

    def _at_work(self) -> Iterator[str]:
        for queue, _ in self._queues:
            yield from queue.at_work()

    async def _words(self) -> dict[str, Word]:
        page = await self._client.list(
            LEASES, Lease, namespace=self._namespace, label_selector=f"{_LABEL}={self._group}"
        )
        words: dict[str, Word] = {}
        for lease in page.items:
            if isinstance(lease, Lease) and lease.spec.holder_identity:
                view = lease.metadata.annotations.get(_VIEW, "")
                words[lease.spec.holder_identity] = Word(
                    tuple(filter(None, view.split(","))), str(lease.spec.renew_time)
                )
        return words

    async def _renew(self) -> None:
        if self._left.is_set():
            return
        asked_s = _now_s()
        manifest = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "labels": {_LABEL: self._group},
                "annotations": {_VIEW: ",".join(self._members.said)},
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
            # A replica of our name was quicker: the next round renews it.
            with contextlib.suppress(Conflict):
                await self._client.create(LEASES, manifest, namespace=self._namespace)
        self._members.renewed(asked_s, _now_s())


def _owned_by_pod(name: str, uid: str) -> list[dict[str, str]]:
    return [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}]


def _now_s() -> float:
    return asyncio.get_running_loop().time()
