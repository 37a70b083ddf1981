"""A real nats-server for the length of a block."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tutti.nats_server import NatsServer, NatsServerSettings


@asynccontextmanager
async def running_nats_server(
    *, data_dir: Path | None = None, port: int = -1, extra_config: str = ""
) -> AsyncIterator[NatsServer]:
    """Run a server for the length of the block; without ``data_dir`` its store is temporary and
    removed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="tutti-nats-") as scratch:
        server = NatsServer(
            NatsServerSettings(
                data_dir=data_dir or Path(scratch), port=port, extra_config=extra_config
            )
        )
        await server.start()
        try:
            yield server
        finally:
            await server.stop()
