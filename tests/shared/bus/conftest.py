"""A set-up nats-server per test, real or simulated, buses on it that close themselves, and a bus
that loses answers.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Protocol, cast

import pytest
from nats.aio.msg import Msg
from typing_extensions import override

from shared.bus.connection import Bus, HealthListener
from shared.bus.setup import ensure_streams
from tests.shared.bus.simulated import SimulatedServer
from tests.simulation.bus import SimBus
from tests.support.nats_server import running_nats_server
from tutti.nats_server import NatsServer


class LossyBus(Bus):
    """A bus whose answers can be lost on the way back: the server has done its work, we never
    hear."""

    lose: Callable[[Msg], bool] = staticmethod(lambda _: False)

    @override
    async def _on_reply(self, raw: Msg) -> None:
        if not self.lose(raw):
            await super()._on_reply(raw)

    def lose_next(self, count: int) -> None:
        """Lose the next `count` publish acknowledgements."""
        left = count

        def lose(raw: Msg) -> bool:
            nonlocal left
            if left > 0 and raw.data.startswith(b'{"stream"'):
                left -= 1
                return True
            return False

        self.lose = lose


class LossySimBus(SimBus, LossyBus):
    """The same on the simulated server."""


class ConnectBus(Protocol):
    async def __call__(
        self, name: str = "tester", *, on_health: HealthListener | None = None
    ) -> LossyBus: ...


@pytest.fixture(params=["real", "simulated"])
async def nats_server(request: pytest.FixtureRequest) -> AsyncIterator[NatsServer]:
    """A real nats-server, or the simulation's: what holds on one must hold on the other."""
    if request.param == "real" or request.node.get_closest_marker("real_server_only"):
        if request.param != "real":
            pytest.skip("looks inside the real server or its client")
        async with running_nats_server() as server:
            yield server
    else:
        yield cast("NatsServer", SimulatedServer())


def _kind_of_bus(server: NatsServer) -> type[LossyBus]:
    if not isinstance(server, SimulatedServer):
        return LossyBus
    return type("LossySimBusHere", (LossySimBus,), {"server": server.nats})


@pytest.fixture
async def connect(nats_server: NatsServer) -> AsyncIterator[ConnectBus]:
    """Connects buses to the test's server and closes them at its end."""
    async with AsyncExitStack() as stack:

        async def connect_one(
            name: str = "tester", *, on_health: HealthListener | None = None
        ) -> LossyBus:
            bus = await _kind_of_bus(nats_server).connect(
                nats_server.url, name=name, on_health=on_health, patience_s=5.0
            )
            stack.push_async_callback(bus.close)
            return bus

        yield connect_one


@pytest.fixture
async def bus(connect: ConnectBus) -> LossyBus:
    """A bus on a server where setup has run."""
    made = await connect()
    await ensure_streams(made)
    return made
