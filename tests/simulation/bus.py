"""The client's end of the simulated NATS: what nats-py is to `shared.bus.connection`, and a `Bus`
that uses it. Everything above the wire is the real code.

It mends itself as nats-py does: it connects again every 0.1 s, then subscribes again, then sends
what was published in between.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

import nats.errors
from typing_extensions import override

from shared.bus.connection import RECONNECT_WAIT_S, Bus
from tests.simulation.connections import Link, Received
from tests.simulation.loop import Generation, generation_or_none
from tests.simulation.nats_server import SimNats
from tests.simulation.stream_store import Headers

if TYPE_CHECKING:
    from nats.aio.client import Client

_PAYLOAD_BYTES_MAX: Final = 1 << 20
_HANDSHAKE_S: Final = 0.0005
_NO_HEADERS: Final[Headers] = {}


class _Version(NamedTuple):
    major: int
    minor: int


class SimSubscription:
    """One subscription: messages wait in line for one task that handles them."""

    def __init__(
        self,
        wire: "SimWire",
        sid: int,
        pattern: str,
        queue: str,
        handler: Callable[[Any], Awaitable[None]],
    ) -> None:
        self.sid = sid
        self.pattern = pattern
        self.queue = queue
        self._wire = wire
        self._handler = handler
        self._arrived: deque[Received] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._task = asyncio.get_running_loop().create_task(
            self._handle_all(), name=f"subscription {pattern}"
        )

    def arrive(self, message: Received) -> None:
        """The network has brought a message."""
        self._arrived.append(message)
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def unsubscribe(self) -> None:
        """Receive no more."""
        self._wire.unsubscribe(self)

    def stop(self) -> None:
        """Handle no more."""
        self._task.cancel()

    async def _handle_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._arrived:
                self._waiting = loop.create_future()
                await self._waiting
                continue
            try:
                await self._handler(self._arrived.popleft())
            except Exception as error:  # noqa: BLE001 - as nats-py: passed to the error callback
                await self._wire.problem(error)


class SimWire:
    """A client of the simulated server, with as much of nats-py's surface as `Bus` uses."""

    def __init__(self, server: SimNats) -> None:
        self._server = server
        self._owner: Generation | None = generation_or_none()
        self._context = copy_context()
        self._link: Link | None = None
        self._closed = False
        self._sids = 0
        self._subscriptions: dict[int, SimSubscription] = {}
        #: Published while there was no connection.
        self._unsent: list[tuple[str, bytes, str, Headers]] = []
        self._callbacks: dict[str, Callable[..., Awaitable[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.last_error: Exception | None = None
        self.connected_server_version = _Version(2, 15)
        self.max_payload = _PAYLOAD_BYTES_MAX
        if self._owner is not None:
            self._owner.on_death.append(self._die)

    @property
    def label(self) -> str:
        """Whose it is."""
        return repr(self._owner) if self._owner is not None else "client"

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._link is not None

    async def connect(self, **options: Any) -> None:
        """Connect, however long it takes."""
        self._callbacks = {name: value for name, value in options.items() if name.endswith("_cb")}
        await self._find_server()

    async def publish(
        self, subject: str, payload: bytes, reply: str = "", headers: Headers | None = None
    ) -> None:
        """Send; without a connection, once there is one again."""
        if self._closed:
            raise nats.errors.ConnectionClosedError
        if self._owner is not None and not self._owner.alive:
            return  # it died at its last effect, and this is only what it would have done next
        if self._link is None:
            self._unsent.append((subject, payload, reply, headers or _NO_HEADERS))
        else:
            self._link.up(self._server.publish, subject, payload, reply, headers or _NO_HEADERS)
        if self._owner is not None:
            self._owner.effect()

    async def subscribe(
        self, subject: str, queue: str = "", cb: Callable[[Any], Awaitable[None]] | None = None
    ) -> SimSubscription:
        """Have `cb` called with each message, one after the other."""
        if self._closed:
            raise nats.errors.ConnectionClosedError
        assert cb is not None
        self._sids += 1
        made = SimSubscription(self, self._sids, subject, queue, cb)
        self._subscriptions[made.sid] = made
        self._announce(made)
        return made

    def unsubscribe(self, subscription: SimSubscription) -> None:
        """Receive no more on it."""
        if self._closed:
            raise nats.errors.ConnectionClosedError
        if self._subscriptions.pop(subscription.sid, None) is None:
            return
        subscription.stop()
        if self._link is not None:
            self._link.up(self._server.unsubscribe, self._link, subscription.sid)

    async def flush(self, timeout: float = 10) -> None:
        """Wait until the server has seen what was sent."""
        link = self._link
        if link is None:
            return
        seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answer() -> None:
            self._server.clock.at(self._server.latency(), _settle, seen)

        link.up(answer)
        async with asyncio.timeout(timeout):
            await seen

    async def close(self) -> None:
        """Say good-bye; what was sent before still arrives."""
        if self._closed:
            return
        self._closed = True
        link, self._link = self._link, None
        if link is not None:
            link.up(self._server.cut, link)
        for subscription in self._subscriptions.values():
            subscription.stop()
        for task in self._tasks:
            task.cancel()
        await self._call("closed_cb")

    # ---- what happens to it

    def lost(self, link: Link) -> None:
        """The network reports that the connection is lost."""
        if link is not self._link or self._closed:
            return
        self._link = None
        if self._owner is None or self._owner.alive:
            task = asyncio.get_running_loop().create_task(
                self._mend(), name="reconnect", context=self._context
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def problem(self, error: Exception) -> None:
        """Call the error callback."""
        self.last_error = error
        callback = self._callbacks.get("error_cb")
        if callback is not None:
            await callback(error)

    async def _mend(self) -> None:
        await self._call("disconnected_cb")
        await asyncio.sleep(RECONNECT_WAIT_S)
        await self._find_server()
        for subscription in self._subscriptions.values():
            self._announce(subscription)
        unsent, self._unsent = self._unsent, []
        for message in unsent:
            if self._link is None:
                self._unsent.append(message)
            else:
                self._link.up(self._server.publish, *message)
        if self._link is not None:
            await self._call("reconnected_cb")

    async def _find_server(self) -> None:
        while True:
            await asyncio.sleep(_HANDSHAKE_S)
            link = self._server.accept(self)
            if link is not None:
                self._link = link
                return
            await self.problem(ConnectionRefusedError("connection refused"))
            await asyncio.sleep(RECONNECT_WAIT_S)

    def _announce(self, subscription: SimSubscription) -> None:
        link = self._link
        if link is not None:
            link.up(
                self._server.subscribe,
                link,
                subscription.sid,
                subscription.pattern,
                subscription.queue,
                subscription.arrive,
            )

    async def _call(self, name: str) -> None:
        callback = self._callbacks.get(name)
        if callback is not None:
            await callback()

    def _die(self) -> None:
        """The process is dead: the connection breaks with what was in flight."""
        link, self._link = self._link, None
        if link is not None:
            self._server.cut(link)


class SimBus(Bus):
    """A `Bus` on a simulated server; see `bus_on`."""

    server: ClassVar[SimNats]

    @override
    def _new_client(self) -> "Client":
        return cast("Client", SimWire(self.server))


def bus_on(server: SimNats) -> type[SimBus]:
    """The kind of bus that connects to this server."""
    return type("BusOnServer", (SimBus,), {"server": server})


def _settle(seen: asyncio.Future[None]) -> None:
    if not seen.done():
        seen.set_result(None)
