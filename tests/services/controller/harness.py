"""Controllers on a real nats-server and a real kube-apiserver."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from services.controller.config import ControllerSettings
from services.controller.service import serve
from shared.bus.connection import Bus
from shared.bus.jetstream_api import ApiAnswer
from shared.bus.publisher import Publisher
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from shared.contracts.codec import encode
from shared.contracts.verdicts import Verdict
from tests.support.background import in_background
from tests.support.rbac import as_account
from tests.support.standing import Stand
from tests.support.waiting import TIMEOUT_S, eventually


class ConsumerInfo(ApiAnswer, frozen=True):
    """What a consumer says of itself."""

    num_ack_pending: int = 0
    num_pending: int = 0


class Desk:
    """The planner's end of the bus."""

    def __init__(self, bus: Bus, url: str) -> None:
        self.bus = bus
        self.url = url
        self._publisher = Publisher(bus)

    async def say(self, verdict: Verdict) -> int:
        """Publish a verdict, and its requests if it has any; returns the verdict's sequence."""
        for request in sorted(verdict.request_subjects):
            await (await self._publisher.publish(request, encode(verdict)))
        subject = subjects.verdict(verdict.gang_id)
        return (await (await self._publisher.publish(subject, encode(verdict)))).seq

    async def open_verdicts(self, consumer: str = subjects.CONTROLLER_CONSUMER) -> int:
        """Verdicts that are waiting or not acknowledged."""
        info = await self.bus.api(f"CONSUMER.INFO.{subjects.VERDICTS}.{consumer}", {}, ConsumerInfo)
        return info.num_ack_pending + info.num_pending

    async def all_written(
        self, consumer: str = subjects.CONTROLLER_CONSUMER, *, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Wait until every verdict is acknowledged."""

        async def none_left() -> bool:
            return await self.open_verdicts(consumer) == 0

        await eventually(none_left, timeout_s=timeout_s)


@asynccontextmanager
async def a_desk(url: str) -> AsyncIterator[Desk]:
    """Set up the streams and sit down."""
    bus = await Bus.connect(url, name="desk")
    try:
        await ensure_streams(bus)
        yield Desk(bus, url)
    finally:
        await bus.close()


@asynccontextmanager
async def controllers(
    url: str, kubeconfig: Path, *names: str, **settings: Any
) -> AsyncIterator[Stand[ControllerSettings]]:
    """Run controllers in one process, as the account that the chart has for them; leaving kills
    them where they stand.

    `kubeconfig` is the administrator's of a real control plane.
    """
    account = "controller-status" if names == ("status",) else "controller-jobs"
    kubeconfig = await as_account(kubeconfig, account)
    bus = await Bus.connect(url, name="controller")
    given = ControllerSettings(controllers=names, kubeconfig=str(kubeconfig), **settings)
    stand = Stand("controller", "controller-0", given, bus)
    try:
        async with in_background(serve(stand), name="controller") as task:
            await eventually(lambda: stand.ready.ready or task.done())
            yield stand
    finally:
        await bus.close()
