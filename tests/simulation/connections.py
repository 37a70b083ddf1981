"""Connections between clients and the simulated nats-server, and what is in flight on them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from tests.simulation.stream_store import Headers

if TYPE_CHECKING:
    from tests.simulation.nats_server import SimNats

#: Keeps two messages on one way in their order.
TICK_S: Final = 1e-7


class Received(msgspec.Struct, gc=False):
    """A message as a client's subscription gets it."""

    subject: str
    reply: str
    data: bytes
    headers: Headers


class Client(Protocol):
    """The client's end of a connection."""

    @property
    def label(self) -> str:
        """Whose it is: the process's name."""
        ...

    def lost(self, link: "Link") -> None:
        """The connection is broken."""
        ...


class Link:
    """One connection. It lives until it is cut, and never again."""

    def __init__(self, server: "SimNats", client: Client) -> None:
        self.client = client
        self.alive = True
        #: Messages that would arrive later than this are lost; set when it is cut.
        self.cut_at = 0.0
        #: Nothing arrives before this: the way is interrupted for a while.
        self.held_until = 0.0
        self.listeners: dict[int, Listener] = {}
        self._server = server
        self._up_free = 0.0

    def up(self, action: Callable[..., object], *args: object) -> None:
        """Send something to the server: `action` is done when it arrives, if it does."""
        server = self._server
        now = server.clock.time()
        when = max(self._up_free + TICK_S, self.held_until, now + server.latency())
        self._up_free = when
        server.clock.at_instant(when, self._arrive, when, action, args)

    def passes(self, when: float) -> bool:
        """Whether a message that arrives then gets through."""
        return self.alive or when <= self.cut_at

    def _arrive(self, when: float, action: Callable[..., object], args: tuple[Any, ...]) -> None:
        if self.passes(when) and self._server.is_up:
            action(*args)


class Listener:
    """One subscription, at the server's end."""

    __slots__ = ("arrive", "free", "link", "pattern", "queue")

    def __init__(
        self, link: Link, pattern: str, queue: str, arrive: Callable[[Received], None]
    ) -> None:
        self.link = link
        self.pattern = pattern
        self.queue = queue
        #: Gives a message to the client.
        self.arrive = arrive
        self.free = 0.0
