"""Sets of durable consumers, of which each replica of a service uses one.

Setup creates them, numbered from 0, since no service has the right to create consumers. A replica
without a number of its own (a pod of a Deployment) holds a free number by a lease, which is free
again a second after its holder died on any machine. As with every lease, two replicas may hold it
for a moment; their log readers then interrupt each other and miss no records.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.lease import Lease
from shared.contracts import subjects
from shared.model.invariants import required

_LOOK_EVERY_S: Final = 0.5


class ConsumerSetLost(Exception):
    """Another replica has taken the set."""


class ConsumerSet:
    """The right of this process to one of `count` sets."""

    def __init__(self, bus: Bus, service: str, holder: str, count: int) -> None:
        """Prepare; nothing is claimed yet. Setup has made `count` sets, at least 1; `holder` is the
        name of this process, shown to operators.
        """
        self._bus = bus
        self._service = service
        self._leases = [Lease(bus, lease_key(service, n), holder) for n in range(count)]
        self._number = 0
        self._renewing: asyncio.Task[None] | None = None

    async def claim(self, on_wait: Callable[[], None]) -> int:
        """Wait until a set is free, hold it, and return its number; `on_wait` is called when no set
        is free at first.

        Raises:
            BusError: A lease cannot be renewed.
        """
        # A lost lease is taken again, and `watch` detects when another replica has it.
        waits = [asyncio.create_task(lease.wait_held()) for lease in self._leases]
        runs = [asyncio.create_task(lease.run(lambda _held: None)) for lease in self._leases]
        try:
            done, _ = await asyncio.wait(
                [*waits, *runs], timeout=2.0, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                on_wait()
                await asyncio.wait([*waits, *runs], return_when=asyncio.FIRST_COMPLETED)
            for run in runs:
                if run.done():
                    run.result()  # only an error ends it
            self._number = next(n for n, lease in enumerate(self._leases) if lease.held)
            self._renewing = runs[self._number]
        finally:
            for wait in waits:
                wait.cancel()
            others = [run for run in runs if run is not self._renewing]
            for run in others:
                run.cancel()
            await asyncio.wait([*waits, *others])
            for lease in self._leases:
                if self._renewing is None or lease is not self._leases[self._number]:
                    await lease.release()
        return self._number

    async def watch(self) -> None:
        """Run for as long as this process holds the set; call `claim` first.

        Raises:
            ConsumerSetLost: This process did not renew it in time, and another has taken it.
        """
        renewing = required(self._renewing, "consumer set", "is claimed before it is watched")
        lease = self._leases[self._number]
        while not renewing.done():
            await asyncio.sleep(_LOOK_EVERY_S)
            if not lease.held and await self._has_another_holder():
                raise ConsumerSetLost(f"another {self._service} uses consumers {self._number}")
        renewing.result()

    async def release(self) -> None:
        """Give the set up at once."""
        await self._leases[self._number].release()

    async def _has_another_holder(self) -> bool:
        key = f"$KV.{subjects.LEASES}.{lease_key(self._service, self._number)}"
        with contextlib.suppress(BusError):
            seen = await self._bus.get_last(f"KV_{subjects.LEASES}", key)
            return bool(seen and seen.payload and self._bus.writer_id.encode() not in seen.payload)
        return False


def lease_key(service: str, number: int) -> str:
    """Key of a set's lease."""
    return f"{service}-consumers-{number}"
