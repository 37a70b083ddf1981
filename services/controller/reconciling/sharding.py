"""Divides keys among the replicas of the controllers, by Leases: the shell of `membership`.

Each replica keeps a Lease of its own; its annotation says under which view it acts. One write and
one list every `RENEW_S` is all that this costs. A replica that stops in order deletes its Lease,
and the others take over at their next look.
"""

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from services.controller.reconciling.membership import Membership, Word
from services.controller.reconciling.work_queue import WorkQueue
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError, NotFound
from shared.kube.resources import LEASES

logger = logging.getLogger(__name__)

RENEW_S: Final = 2.0
#: Three renewals may be lost.
EXPIRE_S: Final = 7.0
_LABEL: Final = "tutti.dev/controllers"
_VIEW: Final = "tutti.dev/view"


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str = ""
    renew_time: str = ""


class _Lease(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: _LeaseSpec = _LeaseSpec()


class Shards:
    """One replica's share of all keys of its controllers."""

    def __init__(
        self,
        client: KubeClient,
        identity: str,
        controllers: Iterable[str],
        *,
        namespace: str,
        renew_s: float = RENEW_S,
        expire_s: float = EXPIRE_S,
    ) -> None:
        """Own nothing before `run`.

        Args:
            client: Of the API server.
            identity: This replica's name, the same when it is started again.
            controllers: What it runs: only replicas that run the same divide keys.
            namespace: Where the Leases are.
            renew_s: Seconds between rounds.
            expire_s: A replica silent for so long is taken for dead.
        """
        self._group = f"{zlib.crc32(','.join(sorted(controllers)).encode()):08x}"
        self._client = client
        self._identity = identity
        self._namespace = namespace
        self._renew_s = renew_s
        self._name = f"tutti-controllers-{self._group}-{identity}"
        self._members = Membership(identity, expire_s=expire_s)
        self._left = False
        self._queues: list[tuple[WorkQueue, Callable[[], Iterable[str]]]] = []

    def owns(self, key: str) -> bool:
        """Whether this replica may act on the key now."""
        return self._members.owns(key, _now_s())

    def join(self, queue: WorkQueue, keys: Callable[[], Iterable[str]]) -> None:
        """Divide the keys of one more controller."""
        self._queues.append((queue, keys))

    async def run(self) -> None:
        """Say that we live, and hear who else does, until cancelled. Problems of the API server
        are waited out: meanwhile this replica stops acting.
        """
        while not self._left:
            try:
                await self._round()
            except KubeError as error:
                logger.warning("the controllers' Leases cannot be kept: %s", error)
            await asyncio.sleep(self._renew_s)

    async def leave(self) -> None:
        """Let the others take over at once; nothing is owned any more. Never fails."""
        self._left = True
        self._members = Membership(self._identity, expire_s=0.0)
        with contextlib.suppress(KubeError):
            await self._client.delete(LEASES, self._name, namespace=self._namespace)

    async def _round(self) -> None:
        # First be seen, then look: of two that start together, each sees the other.
        await self._renew()
        said = self._members.said
        gained = self._members.hear(await self._words(), self._at_work(), _now_s())
        if said != self._members.said:
            # What we say has changed: say it, and hear at once whether the others agree.
            await self._renew()
            gained |= self._members.hear(await self._words(), self._at_work(), _now_s())
        if gained:
            logger.info("keys are divided among %s", ", ".join(self._members.view))
            for queue, keys in self._queues:
                for key in keys():
                    if self.owns(key):
                        queue.add(key)

    def _at_work(self) -> Iterator[str]:
        for queue, _ in self._queues:
            yield from queue.at_work()

    async def _words(self) -> dict[str, Word]:
        page = await self._client.list(
            LEASES, _Lease, namespace=self._namespace, label_selector=f"{_LABEL}={self._group}"
        )
        words: dict[str, Word] = {}
        for lease in page.items:
            if isinstance(lease, _Lease) and lease.spec.holder_identity:
                view = lease.metadata.annotations.get(_VIEW, "")
                words[lease.spec.holder_identity] = Word(
                    tuple(filter(None, view.split(","))), lease.spec.renew_time
                )
        return words

    async def _renew(self) -> None:
        if self._left:
            return
        now_s = _now_s()
        manifest = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "labels": {_LABEL: self._group},
                "annotations": {_VIEW: ",".join(self._members.said)},
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
            # Somebody of our name was quicker: the next round renews it.
            with contextlib.suppress(Conflict):
                await self._client.create(LEASES, manifest, namespace=self._namespace)
        self._members.renewed(now_s)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
