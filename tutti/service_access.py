"""Reaches a running Tutti for a command: by its API where the user may read it, otherwise by NATS.

The API needs a kubeconfig only. NATS is for operators: flags choose it, and it is used for a
`tutti up` on this machine that serves no API.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import click
import msgspec

from shared.bus.connection import Bus
from shared.contracts.questions import LedgerAnswer
from shared.contracts.visibility import Queue
from shared.contracts.visibility_resources import ServedResource
from shared.kube.client import KubeClient
from shared.kube.errors import (
    ApiError,
    CredentialsError,
    Forbidden,
    KubeError,
    MalformedAnswer,
    TransportError,
    Unauthorized,
)
from shared.kube.quantities import QuantityError
from shared.visible_objects import build_queues, ledger_of
from tutti.api.access import open_client
from tutti.api.failures import Refusal, explained
from tutti.client.asynchronous import AsyncClient, check_served
from tutti.client.errors import ApiNotServed
from tutti.service_bus import LEDGER_S, NoStandby, NoTuttiUp, ServiceBus, read_ledger

Reached: TypeAlias = AsyncClient | Bus

#: An API server that does not answer a small question in this time is left aside for NATS.
_PROBE_S: Final = 5.0
#: Verbosity from which the way is reported.
_REPORT: Final = 1


class QueueReport(msgspec.Struct, frozen=True, kw_only=True):
    """All queues, as the API has them, and as the planner answers."""

    queues: tuple[Queue, ...]
    ledger: LedgerAnswer


@asynccontextmanager
async def reached(
    services: ServiceBus, name: str, resource: ServedResource
) -> AsyncIterator[Reached]:
    """A client of Tutti's API, or a connection to its NATS, open until the block ends.

    Args:
        services: The flags.
        name: The command, for NATS's list of connections.
        resource: What the command reads; the API is used if the user may read it.

    Raises:
        KubeError: The API is served, and fails.
        BusError: NATS fails.
        Refusal: There is neither.
    """
    if services.names_nats:
        _report(services, "NATS, as a flag chooses it")
        async with services.connected(name) as bus:
            yield bus
        return
    async with open_client(services.access) as kube:
        reason = await _reason_against(kube, resource)
        if reason is None:
            _report(services, f"the API, from {kube.credentials.server}")
            yield AsyncClient(kube=kube)
            return
    _report(services, f"NATS, since {reason}")
    try:
        found = await services.find()
    except NoTuttiUp as error:
        raise Refusal(f"{explained(reason)}; {error}") from None
    async with services.connected(name, found) as bus:
        yield bus


async def _reason_against(kube: KubeClient, resource: ServedResource) -> KubeError | None:
    """Why the API cannot be used; None: it can. Raises KubeError when it is served and fails."""
    try:
        await check_served(kube, resource, timeout_s=_PROBE_S)
    except (ApiNotServed, Unauthorized, Forbidden, TransportError, CredentialsError) as error:
        return error
    return None


def _report(services: ServiceBus, way: str) -> None:
    if services.verbosity >= _REPORT:
        click.echo(f"tutti: asks {way}", err=True)


async def read_queues(way: Reached, *, timeout_s: float = LEDGER_S) -> QueueReport:
    """All queues. Raises KubeError; BusError and NoStandby over NATS, after `timeout_s`."""
    if isinstance(way, AsyncClient):
        queues = await way.queues()
        try:
            return QueueReport(queues=tuple(queues), ledger=ledger_of(queues))
        except QuantityError as error:
            raise MalformedAnswer(f"queues: {error}") from None
    ledger = await read_ledger(way, timeout_s=timeout_s)
    return QueueReport(queues=tuple(build_queues(ledger, None)), ledger=ledger)


def is_passing(error: Exception) -> bool:
    """Whether the next round of a command that repeats itself may succeed: no planner answers."""
    return isinstance(error, NoStandby) or (isinstance(error, ApiError) and error.status == 503)
