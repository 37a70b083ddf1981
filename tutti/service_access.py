"""Reaches the NATS of a running Tutti for operators' commands, which work while its API does not.

The flags name it, or the file that `tutti up` keeps in its data folder.
"""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.permissions import PEOPLES_API, READER
from shared.contracts import subjects
from shared.kube.credentials import load
from shared.model.invariants import required
from tutti.api.access import Access
from tutti.api.failures import Refusal
from tutti.api.flags import context_flag, gathered, kubeconfig_flag, verbosity_flag
from tutti.up.options import default_data_dir
from tutti.up.readiness import STATE_FILE, RunningFile

_CONNECT_S: Final = 3.0
#: Timeout of a request. NATS answers at once if no service listens, but never answers a user
#: without the right to send the request.
_API_S: Final = 1.0


class ServiceBus(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that select a running Tutti, and its NATS."""

    nats: str = ""
    nats_credentials: str = ""
    nats_ca: str = ""
    data_dir: Path | None = None
    kubeconfig: str = ""
    context: str = ""
    #: From 4 on, every request to the API server is reported.
    verbosity: int = 0

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
    async def connected(self, name: str) -> AsyncIterator[Bus]:
        """A connection, open until the block ends. Raises as `find` does, and BusError."""
        running = await self.find()
        credentials = self.nats_credentials or running.nats_credentials
        bus = await Bus.connect(
            running.nats_url,
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


#: The flags that select a running Tutti, given to a command as `services`.
service_options = gathered(
    ServiceBus,
    "services",
    click.option(
        "--nats",
        default="",
        metavar="URL",
        help="Ask Tutti's NATS here.",
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
    verbosity_flag("At level 4 and above, log every request to the API server."),
)
