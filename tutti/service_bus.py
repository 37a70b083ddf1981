"""The bus of a running suite, for commands that ask its services: where it is said to be, or where
`tutti up` left word of it on this machine.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.permissions import PEOPLES_API, READER
from shared.contracts import subjects
from shared.kube.credentials import load
from tutti.up.options import default_data_dir
from tutti.up.readiness import STATE_FILE, RunningFile

_CONNECT_S: Final = 3.0
#: A server answers at once that no service listens; it does not answer a user without the right to
#: ask.
_API_S: Final = 1.0


class NotReachable(Exception):
    """No `tutti up` is known to run; the message says where it was looked for."""


class ServiceBus(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed to say which suite is meant."""

    nats: str = ""
    nats_credentials: str = ""
    nats_ca: str = ""
    data_dir: Path | None = None
    kubeconfig: str = ""
    context: str = ""

    async def folder(self) -> Path | None:
        """The data folder of the `tutti up` that is meant; None where only a NATS was given.

        Raises KubeError when the kubeconfig that names it cannot be read.
        """
        if self.data_dir is not None or self.nats:
            return self.data_dir
        return default_data_dir((await load(self.kubeconfig, self.context)).server)

    async def find(self) -> RunningFile:
        """Its NATS: as given, or of the `tutti up` that runs in the data folder.

        Raises NotReachable, KubeError when the kubeconfig that names the folder cannot be read.
        """
        if self.nats:
            return RunningFile(nats_url=self.nats, pid=0)
        folder = await self.folder()
        assert folder is not None, "without --nats there is one"
        path = folder / STATE_FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=RunningFile)
        except (FileNotFoundError, msgspec.MsgspecError):
            raise NotReachable(f"no tutti up runs in {folder}: give --nats or --data-dir") from None

    @asynccontextmanager
    async def connected(self, name: str) -> AsyncIterator[Bus]:
        """The bus, for as long as the block lasts. Raises as `find` does, and BusError."""
        found = await self.find()
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
    """Ask for streams where the user that `tutti provision` makes for people finds them, if that is
    our identity.
    """
    with contextlib.suppress(NoAnswer):
        subject = f"{PEOPLES_API}.STREAM.INFO.{subjects.CLUSTER}"
        await bus.request(subject, b"", timeout_s=_API_S)
        bus.api_prefix = PEOPLES_API


_OPTIONS: Final = (
    click.option("--nats", default="", metavar="URL", help="NATS of Tutti."),
    click.option(
        "--nats-credentials", default="", metavar="FILE", help="Credentials or nkey seed."
    ),
    click.option("--nats-ca", default="", metavar="FILE", help="CA of the NATS servers."),
    click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Data folder of a `tutti up` on this machine; else that of the cluster.",
    ),
    click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig of the cluster."),
    click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig."),
)


def service_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which suite is meant, as its argument `suite`."""

    @wraps(command)
    def wrapped(**arguments: Any) -> None:
        typed = {name: arguments.pop(name) for name in ServiceBus.__struct_fields__}
        command(suite=ServiceBus(**typed), **arguments)

    decorated: Callable[..., None] = wrapped
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
