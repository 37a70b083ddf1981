"""Announces a running `tutti up` to the cluster by a Lease, for information.

Only the next `tutti up` reads it (`other_schedulers`); safety depends on the fence, not on it
(`shared.bus.fence`). Without the right to write it, that is reported, and `tutti up` continues.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError
from shared.kube.leases import LIVES_S, Lease, micro_time
from shared.kube.resources import LEASES
from tutti.api.failures import Refusal
from tutti.api.fetches import find
from tutti.api.objects import new_object
from tutti.lifeline import start_ticks
from tutti.up.other_schedulers import OWN_LEASE

_RENEW_S: Final = 20.0
_RELEASE_TIMEOUT_S: Final = 2.0


class AnotherIsHere(Refusal):
    """Another `tutti up` took the Lease at the same moment."""


def identity() -> str:
    """Our identity: host, boot and process namespace, process id and start time.

    It is exact enough to recognize that the holder of a Lease is a dead process of this machine.
    """
    pid = os.getpid()
    return f"{socket.gethostname()}/{_machine()}/{pid}/{start_ticks(pid) or 0}"


def is_dead(holder: str) -> bool:
    """Whether a holder is known to be dead: a process of this machine that has ended."""
    parts = holder.rsplit("/", 3)
    if len(parts) != 4 or parts[1] != _machine() or not parts[1]:
        return False
    pid, ticks = parts[2], parts[3]
    if not (pid.isdigit() and ticks.isdigit()):
        return False
    return start_ticks(int(pid)) != int(ticks)


def _machine() -> str:
    """The boot and the namespace of process ids; "" if the kernel does not report them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


class Presence:
    """The Lease, from `announce` to `leave`."""

    def __init__(
        self,
        client: KubeClient,
        say: Callable[[str], None],
        holder: str,
        *,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._say = say
        self._holder = holder
        self._wall = wall
        self._uid = ""

    async def announce(self, *, take_over: bool) -> None:
        """Write the Lease.

        Raises:
            AnotherIsHere: Another `tutti up` has written it since the checks.
        """
        try:
            await self._write(take_over=take_over)
        except KubeError as error:
            self._say(
                f"no Lease {'/'.join(OWN_LEASE)}, other tutti up cannot detect this one: {error}"
            )

    async def keep(self) -> None:
        """Renew until cancelled."""
        while self._uid:
            await asyncio.sleep(_RENEW_S)
            try:
                await self._write(take_over=False)
            except AnotherIsHere as error:
                self._say(str(error))
                self._uid = ""
            except KubeError:
                # The Lease expires after a minute; the next attempt may succeed.
                continue

    async def leave(self) -> None:
        """Delete the Lease if it is ours; after a failure it expires within a minute."""
        if not self._uid:
            return
        namespace, name = OWN_LEASE
        with contextlib.suppress(KubeError, TimeoutError):
            async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                await self._client.delete(LEASES, name, namespace=namespace, uid=self._uid)

    async def _write(self, *, take_over: bool) -> None:
        namespace, name = OWN_LEASE
        lease = await find(self._client, LEASES, name, Lease, namespace=namespace)
        held = lease is not None and self._is_held(lease)
        if lease is not None and held and not take_over:
            raise AnotherIsHere(
                f"another tutti up is on this cluster: {lease.spec.holder_identity}"
            )
        try:
            if lease is None:
                reply = await self._client.create(LEASES, self._manifest(None), namespace=namespace)
            else:
                reply = await self._client.replace(
                    LEASES, name, self._manifest(lease), namespace=namespace
                )
        except Conflict:
            raise AnotherIsHere("another tutti up is starting on this cluster") from None
        self._uid = msgspec.json.decode(reply.body, type=Lease).metadata.uid

    def _is_held(self, lease: Lease) -> bool:
        spec = lease.spec
        if spec.holder_identity in {"", self._holder} or is_dead(spec.holder_identity):
            return False
        return spec.lives(self._wall())

    def _manifest(self, lease: Lease | None) -> dict[str, Any]:
        namespace, name = OWN_LEASE
        now = self._wall()
        ours = lease is not None and lease.spec.holder_identity == self._holder
        acquired = lease.spec.acquire_time if lease is not None and ours else now
        metadata = {"name": name, "namespace": namespace}
        if lease is not None:
            metadata["resourceVersion"] = lease.metadata.resource_version
        spec = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": int(LIVES_S),
            "acquireTime": micro_time(acquired or now),
            "renewTime": micro_time(now),
        }
        return new_object(LEASES, metadata, spec=spec)
