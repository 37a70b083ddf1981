"""One connection to NATS: publish, ask, subscribe, and JetStream's API by its JSON.

The connection heals itself: it reconnects every 0.1 s for as long as the process lives. What is wrong with it is told
to one listener, which readiness shows. An exception in a subscription's handler is a bug: it is kept in `failure`,
which the lifecycle awaits, so that the service crashes instead of going on deaf.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Self

import msgspec

HealthListener = Callable[[str, str], None]
"""Called with a topic ("nats", "nats permissions") and what is wrong with it; "" when it is well again."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it arrived on a subscription; `reply` "" when nobody waits for an answer."""

    subject: str
    payload: bytes
    reply: str = ""
    headers: Mapping[str, str] = {}


class StreamInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream holds. `incarnation` is the id that setup gave it when it was made."""

    stream: str
    incarnation: str
    messages: int
    first_seq: int
    last_seq: int


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message read back from its stream's leader."""

    subject: str
    seq: int
    payload: bytes
    headers: Mapping[str, str] = {}


class Subscription:
    """A subscription that ends with `close`, or with its bus."""

    async def close(self) -> None:
        """Stop receiving; what has arrived already may still be handled."""
        raise NotImplementedError


class Bus:
    """A connection of one service instance. Make it with `Bus.connect`."""

    name: str
    instance: str

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        name: str,
        instance: str = "0",
        credentials: str = "",
        tls_ca: str = "",
        on_health: HealthListener | None = None,
        patience_s: float | None = None,
    ) -> Self:
        """Connect, and wait for a server as long as it takes.

        Args:
            url: One or more `nats://host:port`, separated by commas.
            name: The service's name: part of the inbox prefix `_INBOX_<name>.<instance>`.
            instance: Which of the service's instances this is.
            credentials: Path of a credentials file or an nkey seed; "" for none.
            tls_ca: Path of the CA that signed the server's certificate; "" for the system's.
            on_health: Told when the connection becomes unwell or well.
            patience_s: Give up after this time; None: never.

        Raises:
            BusUnavailable: No server within `patience_s`.
        """
        raise NotImplementedError

    async def publish(
        self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send without asking for an acknowledgement.

        Raises:
            MessageTooLarge: It exceeds `payload_bytes_max`.
            BusUnavailable: Not connected, and the buffer is full.
        """
        raise NotImplementedError

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        """Ask, and return the first answer.

        Raises:
            NoAnswer: Nobody listens, or nobody answered in time.
        """
        raise NotImplementedError

    async def subscribe(
        self, subject: str, handler: Callable[[Message], Awaitable[None]], *, queue: str = ""
    ) -> Subscription:
        """Call `handler` for each message, one after the other; subscribers of one `queue` share the messages."""
        raise NotImplementedError

    async def stream_info(self, stream: str) -> StreamInfo:
        """What the stream holds now.

        Raises:
            ApiRefused: It does not exist (code 404).
            NoAnswer: JetStream did not answer.
        """
        raise NotImplementedError

    async def get_message(self, stream: str, seq: int) -> StoredMessage | None:
        """Read one record from the stream's leader (STREAM.MSG.GET, not Direct Get); None: it is not there."""
        raise NotImplementedError

    async def get_last(self, stream: str, subject: str) -> StoredMessage | None:
        """Read the newest record of a subject from the stream's leader; None: there is none."""
        raise NotImplementedError

    async def reset_consumer(self, stream: str, consumer: str, seq: int) -> None:
        """Make a durable consumer deliver from sequence `seq` on."""
        raise NotImplementedError

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        raise NotImplementedError

    @property
    def payload_bytes_max(self) -> int:
        """The longest payload: what the server takes less 1 KiB for headers."""
        raise NotImplementedError

    async def wait_failed(self) -> None:
        """Wait until this bus is of no use any more, and raise why: a handler's exception, or `BusClosed`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Flush what was published and close; safe to call twice."""
        raise NotImplementedError
