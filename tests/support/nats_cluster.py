"""Three real nats-servers that keep every stream together, as in production."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from shared.bus.connection import Bus
from shared.bus.jetstream_api import ApiAnswer
from tests.support.free_ports import free_ports
from tutti.nats_server import NatsServer, NatsServerSettings

SERVERS = 3


class Members(msgspec.Struct, frozen=True):
    """The servers that keep a stream."""

    leader: str = ""


class ClusterInfo(ApiAnswer, frozen=True):
    """The leader of a stream, as the server reports it."""

    cluster: Members = Members()


class NatsCluster:
    """The servers, n0 to n2. Made by `a_nats_cluster`."""

    def __init__(self, servers: dict[str, NatsServer]) -> None:
        self.servers = servers

    @property
    def url(self) -> str:
        """All of them, for clients."""
        return ",".join(server.url for server in self.servers.values())

    async def leader(self, bus: Bus, stream: str) -> str:
        """Name of the server that leads a stream; "" while there is none."""
        info = await bus.api(f"STREAM.INFO.{stream}", None, ClusterInfo)
        return info.cluster.leader


@asynccontextmanager
async def a_nats_cluster(folder: Path) -> AsyncIterator[NatsCluster]:
    """Start three servers on 127.0.0.1; leaving stops them."""
    ports = free_ports(SERVERS)
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
    async with AsyncExitStack() as stack:
        servers: dict[str, NatsServer] = {}
        for number, port in enumerate(ports):
            extra = (
                f"server_name: n{number}\n"
                f'cluster {{ name: test, listen: "127.0.0.1:{port}", routes: [{routes}] }}\n'
            )
            settings = NatsServerSettings(data_dir=folder / f"n{number}", extra_config=extra)
            server = servers[f"n{number}"] = NatsServer(settings)
            stack.push_async_callback(server.stop)
            await server.start()
        yield NatsCluster(servers)
