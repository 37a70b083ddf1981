"""Reaches a running Tutti for a command: by its API where the user may read it, otherwise by NATS.

The API needs a kubeconfig only. NATS is for operators: flags choose it, and it is used for a `tutti
up` on this machine that serves no API. The flags name it, or the file that `tutti up` keeps in its
data folder.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import click
import msgspec

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.permissions import PEOPLES_API, READER
from shared.bus.questions import ask, ask_ledger
from shared.contracts import subjects
from shared.contracts.questions import LedgerAmount, LedgerAnswer
from shared.contracts.visibility import Queue
from shared.contracts.visibility_resources import ServedResource
from shared.kube.client import KubeClient
from shared.kube.credentials import load
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
from shared.model.invariants import required
from shared.visible_objects import build_queues, ledger_of
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, explained
from tutti.api.flags import context_flag, gathered, kubeconfig_flag, verbosity_flag
from tutti.client.asynchronous import AsyncClient, check_served
from tutti.client.gangs import ApiNotServed
from tutti.up.options import default_data_dir
from tutti.up.readiness import STATE_FILE, RunningFile

_CONNECT_S: Final = 3.0
#: Timeout of a request. NATS answers at once if no service listens, but never answers a user
#: without the right to send the request.
_API_S: Final = 1.0
#: A standby answers between two reads of its streams.
LEDGER_S: Final = 3.0

T = TypeVar("T")


class NoStandby(Refusal):
    """No standby planner answers."""

    def __init__(self) -> None:
        super().__init__("no standby planner answers")


class ServiceBus(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that select a running Tutti, and its NATS."""

    nats: str = ""
    nats_credentials: str = ""
    nats_ca: str = ""
    data_dir: Path | None = None
    kubeconfig: str = ""
    context: str = ""
    #: From 1 on, it is reported whether Tutti's API or NATS answered; from 4 on, every request.
    verbosity: int = 0

    @property
    def names_nats(self) -> bool:
        """Whether a flag chooses NATS."""
        return bool(self.nats or self.nats_credentials or self.nats_ca or self.data_dir)

    @property
    def access(self) -> Access:
        """How to reach the API server of its cluster."""
        return Access(kubeconfig=self.kubeconfig, context=self.context, verbosity=self.verbosity)

    async def folder(self) -> Path | None:
        """The data folder of the selected `tutti up`; None where only a NATS was given. Raises
        CredentialsError when the kubeconfig that names the folder cannot be read.
        """
        if self.data_dir is not None or self.nats:
            return self.data_dir
        return default_data_dir((await load(self.kubeconfig, self.context)).server)

    async def find(self) -> RunningFile:
        """Its NATS: as given, or that of the `tutti up` that runs in the data folder. Raises as
        `folder` does, and Refusal when none runs there.
        """
        if self.nats:
            return RunningFile(nats_url=self.nats, pid=0)
        folder = required(await self.folder(), "data folder", "must be known without --nats")
        path = folder / STATE_FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=RunningFile)
        except (FileNotFoundError, msgspec.MsgspecError):
            raise Refusal(f"no tutti up runs in {folder}: give --nats or --data-dir") from None

    @asynccontextmanager
    async def connected(self, name: str, found: RunningFile | None = None) -> AsyncIterator[Bus]:
        """A connection, open until the block ends; `found`: to the NATS that `find` returned.
        Raises as `find` does, and BusError.
        """
        found = found or await self.find()
        credentials = self.nats_credentials or found.nats_credentials
        bus = await Bus.connect(
            found.nats_url,
            name=name,
            user=READER,
            credentials=credentials,
            tls_ca=self.nats_ca,
            patience_s=_CONNECT_S,
        )
        try:
            if credentials:
                await _find_api(bus)
            yield bus
        finally:
            await bus.close()


async def _find_api(bus: Bus) -> None:
    """Use the JetStream API that `tutti provision` exports to readers, if we are such a reader."""
    with contextlib.suppress(NoAnswer):
        subject = f"{PEOPLES_API}.STREAM.INFO.{subjects.CLUSTER}"
        await bus.request(subject, b"", timeout_s=_API_S)
        bus.api_prefix = PEOPLES_API


async def ask_standby(
    bus: Bus,
    subject: str,
    question: msgspec.Struct,
    decode: Callable[[bytes], T],
    *,
    timeout_s: float,
) -> T:
    """Ask the standby planner one question. Raises BusError, and NoStandby when none answers in
    time.
    """
    try:
        return await ask(bus, subject, question, decode, timeout_s=timeout_s)
    except NoAnswer:
        raise NoStandby from None


async def read_ledger(bus: Bus, *, timeout_s: float = LEDGER_S) -> LedgerAnswer:
    """The used, deserved and reserved resources of all queues; the timeout is for each page. Raises
    as `ask_standby` does.
    """
    try:
        return await ask_ledger(bus, timeout_s=timeout_s)
    except NoAnswer:
        raise NoStandby from None


#: The flags that select a running Tutti, given to a command as `services`.
service_options = gathered(
    ServiceBus,
    "services",
    click.option(
        "--nats",
        default="",
        metavar="URL",
        help="Ask Tutti's NATS here, not its API: for operators.",
    ),
    click.option(
        "--nats-credentials",
        default="",
        metavar="FILE",
        help="Credentials or nkey seed for NATS.",
    ),
    click.option("--nats-ca", default="", metavar="FILE", help="CA of the NATS servers."),
    click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Data folder of a `tutti up` on this machine; default: the folder of the cluster.",
    ),
    kubeconfig_flag,
    context_flag,
    verbosity_flag(
        "From 1 on, report whether Tutti's API or NATS answered; from 4 on, every request."
    ),
)


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
    except Refusal as error:
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


def share_of(one: LedgerAmount) -> tuple[float, int]:
    """The part that a queue uses of its share of a resource, and the share: what it deserves,
    otherwise its limit. 0: it has none.
    """
    whole = (one.deserved if one.deserved is not None else one.ceiling) or 0
    return (one.used / whole if whole else 0.0), whole


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
