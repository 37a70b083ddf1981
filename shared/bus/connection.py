"""One connection to NATS: publish, request, subscribe, and JetStream's API by its JSON.

The connection reconnects by itself, every 0.1 s for as long as the process lives. It reports its
problems to one listener, which readiness shows. An exception in a subscription's handler is a bug:
`wait_failed` raises it in the lifecycle, so that the service crashes instead of running without the
subscription.

Longer than most files here, because the client library's callbacks and what follows from them
(readiness, failure, replies) are one state, and no other file may use the library.
"""

import asyncio
import contextlib
import itertools
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self, TypeVar

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as ClientSubscription

from shared.bus.aborting_client import AbortingClient
from shared.bus.append_health import AppendHealth
from shared.bus.errors import (
    ApiRefused,
    BusClosed,
    BusUnavailable,
    MessageTooLarge,
    NoAnswer,
    NoResponder,
    check_subject,
    describe,
)
from shared.bus.jetstream_api import (
    GENERATION,
    NO_MESSAGE_FOUND,
    ApiAnswer,
    GetRequest,
    MessageAnswer,
    PublishAnswer,
    ResetRequest,
    StoredMessage,
    StreamAnswer,
    StreamInfo,
    decode_publish_answer,
    instant_ms,
)
from shared.bus.security import Security
from shared.model.invariants import required


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """False for asyncio's warning about every TLS connection that a server closes."""
    return "eof_received() has no effect" not in str(record.msg)


logging.getLogger("asyncio").addFilter(_is_worth_logging)

HealthListener = Callable[[str, str], None]
"""Called with a topic ("nats", "nats permissions") and its problem; "" when it is solved.
"""

#: The server counts headers in its limit and closes the connection of a client that exceeds it.
HEADERS_BYTES_MAX: Final = 1024
#: JetStream answers within milliseconds; a leader election takes about a second.
API_TIMEOUT_S: Final = 2.0
RECONNECT_WAIT_S: Final = 0.1
FLUSH_TIMEOUT_S: Final = 2
#: A denial without another one for this long is over.
DENIED_S: Final = 30.0
#: Between two attempts to read credentials and the CA.
FILES_PAUSE_S: Final = 0.5
#: Limit of bytes that wait to be sent. Callers keep below it (appends are awaited, publishers have
#: a bound): at the limit the client would block, and while it blocks it swallows cancellations.
PENDING_BYTES_MAX: Final = 32 << 20
#: A half-open connection, to a server whose machine died, is found after at most three of these.
PING_INTERVAL_S: Final = 2

_log = logging.getLogger(__name__)
_encode_json = msgspec.json.encode
A = TypeVar("A", bound=ApiAnswer)


class Message(msgspec.Struct, frozen=True):
    """A message as it arrived on a subscription; `reply` "" when no client waits for an answer."""

    subject: str
    payload: bytes
    reply: str = ""
    headers: Mapping[str, str] = {}


class Subscription:
    """A subscription that ends with `close`, or with its bus."""

    def __init__(self, inner: ClientSubscription) -> None:
        self._inner = inner

    async def close(self) -> None:
        """Stop receiving, and drop messages that have arrived already. Safe to call twice, and on a
        closed bus.
        """
        with contextlib.suppress(nats.errors.Error):
            await self._inner.unsubscribe()


class Bus:
    """A connection of one service instance. Make it with `Bus.connect`."""

    def __init__(
        self, name: str, instance: str, user: str, on_health: HealthListener | None
    ) -> None:
        self.name = name
        self.instance = instance
        #: Distinguishes this connection's writes from every other's.
        self.writer_id = f"{name}.{instance}.{secrets.token_hex(6)}"
        self._record_numbers = itertools.count(1)
        #: Prefix of the subjects of JetStream's API.
        self.api_prefix = "$JS.API"
        self._client = self._new_client()
        self._security: Security | None = None
        self._on_health = on_health
        self._problems: dict[str, str] = {}
        #: Health of the streams to which this connection appends.
        self.appends = AppendHealth(self.report)
        self._connected = asyncio.Event()
        #: How many connections there have been: a caller that remembers it recognizes a new one.
        self.connections = 0
        self._denials = 0
        self._closing = False
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reconnect_listeners: list[Callable[[], None]] = []
        token = re.sub(r"[^A-Za-z0-9_-]", "_", instance) or "0"
        self._inbox_prefix = f"_INBOX_{user or name}.{token}"
        self._reply_prefix = f"{self._inbox_prefix}.{secrets.token_hex(6)}."
        self._reply_numbers = itertools.count(1)
        self._reply_handlers: dict[str, Callable[[Message], None]] = {}

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        name: str,
        instance: str = "0",
        user: str = "",
        credentials: str = "",
        tls_ca: str = "",
        on_health: HealthListener | None = None,
        patience_s: float | None = None,
    ) -> Self:
        """Connect, and wait for a server as long as it takes.

        Args:
            url: One or more `nats://host:port`, separated by commas.
            name: The service's name.
            instance: Which of the service's instances this is.
            user: The NATS user (`shared.bus.permissions`), part of the inbox prefix
                `_INBOX_<user>.<instance>`; "": the service's name.
            credentials: Path of a credentials file or an nkey seed; "" for none.
            tls_ca: Path of the CA that signed the server's certificate; "" for the system's. Read
                again when a connection is lost, so that it may be replaced.
            on_health: Called when the connection gets a problem or loses it.
            patience_s: Give up after this time; None: never.

        Raises:
            BusUnavailable: No server within `patience_s`.
        """
        loop = asyncio.get_running_loop()
        bus = cls(name, instance, user, on_health)
        deadline = None if patience_s is None else loop.time() + patience_s
        bus._security = await bus._read_security(credentials, tls_ca, deadline)
        connecting = loop.create_task(
            bus._client.connect(
                servers=[part.strip() for part in url.split(",")],
                name=f"{name}/{instance}",
                error_cb=bus._on_error,
                disconnected_cb=bus._on_disconnected,
                reconnected_cb=bus._on_reconnected,
                closed_cb=bus._on_closed,
                reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # a float works
                max_reconnect_attempts=-1,
                ping_interval=PING_INTERVAL_S,
                pending_size=PENDING_BYTES_MAX,
                inbox_prefix=bus._inbox_prefix,
                **bus._security.options,
            ),
            name="connect to NATS",
        )
        try:
            left_s = None if deadline is None else max(0.0, deadline - loop.time())
            await asyncio.wait([connecting], timeout=left_s)
        finally:
            if not connecting.done():
                connecting.cancel()
                await bus.close()
        if connecting.cancelled() or not connecting.done():
            problem = bus._problems.get("nats", "no answer")
            raise BusUnavailable(f"no NATS server at {url}: {problem}")
        try:
            connecting.result()
        except (nats.errors.Error, OSError) as error:
            raise BusUnavailable(f"no NATS server at {url}: {error}") from error
        bus.connections += 1
        bus._connected.set()
        bus.report("nats", "")
        await bus._client.subscribe(f"{bus._reply_prefix}*", cb=bus._on_reply)
        return bus

    async def _read_security(
        self, credentials: str, tls_ca: str, deadline: float | None
    ) -> Security:
        """Read the files as soon as they exist: a pod's volume may be filled after the pod started.

        Raises:
            BusUnavailable: They are missing, or not readable, at `deadline`.
        """
        while True:
            try:
                return await asyncio.to_thread(Security, credentials, tls_ca)
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                if deadline is not None and asyncio.get_running_loop().time() >= deadline:
                    raise BusUnavailable(f"cannot read the files for NATS: {error}") from error
                self.report("nats", f"cannot read the files for NATS: {error}")
            await asyncio.sleep(FILES_PAUSE_S)

    def _new_client(self) -> Client:
        """The client library's connection; a simulated bus overrides this."""
        return AbortingClient()

    # ---- plain messages

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        reply: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send without an acknowledgement.

        Raises:
            InvalidSubject: NATS would refuse it, or understand another one.
            MessageTooLarge: It exceeds `payload_bytes_max`.
            BusUnavailable: Not connected, and the buffer is full.
        """
        check_subject(subject)
        if len(payload) > self.payload_bytes_max:
            raise MessageTooLarge(
                f"{subject}: {len(payload)} bytes, at most {self.payload_bytes_max} can be sent"
            )
        try:
            await self._client.publish(subject, payload, reply, dict(headers) if headers else None)
        except nats.errors.ConnectionClosedError as error:
            raise BusClosed("the connection to NATS is closed") from error
        except nats.errors.Error as error:
            raise BusUnavailable(f"{subject}: {error}") from error

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        """Send a request and return the first answer, within `timeout_s` in total; while there is
        no connection, wait for one first.

        Raises:
            NoResponder: No process subscribes to the subject.
            NoAnswer: No answer came in time.
        """
        answered: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def settle(message: Message) -> None:
            if not answered.done():
                answered.set_result(message)

        deadline = asyncio.get_running_loop().time() + timeout_s
        reply = self.expect_reply(settle)
        try:
            async with asyncio.timeout_at(deadline):
                await self._connected.wait()
                await self.publish(subject, payload, reply=reply, headers=headers)
            # A second one: the client may swallow the first one's cancellation.
            async with asyncio.timeout_at(deadline):
                message = await answered
        except TimeoutError:
            raise NoAnswer(f"{subject}: no answer within {timeout_s} s") from None
        finally:
            self.forget_reply(reply)
        if not message.payload and message.headers.get("Status") == "503":
            raise NoResponder(f"{subject}: no process listens")
        return message

    async def append(
        self,
        subject: str,
        payload: bytes,
        *,
        timeout_s: float,
        headers: Mapping[str, str],
    ) -> PublishAnswer:
        """Publish to a stream, and return its acknowledgement, or the error with which the server
        refused. A missing answer counts against the stream's health (`appends`).

        Raises:
            NoAnswer: See `request`.
        """
        try:
            answer = await self.request(subject, payload, timeout_s=timeout_s, headers=headers)
        except NoAnswer:
            if self.connected:
                self.appends.unanswered(subject)
            raise
        self.appends.confirmed(subject)
        return decode_publish_answer(answer.payload)

    def expect_reply(self, handler: Callable[[Message], None]) -> str:
        """Register `handler` for replies, and return the subject for them. `forget_reply` ends the
        registration.
        """
        token = str(next(self._reply_numbers))
        self._reply_handlers[token] = handler
        return self._reply_prefix + token

    def forget_reply(self, reply: str) -> None:
        """Remove the handler of a subject from `expect_reply`; later replies are dropped."""
        self._reply_handlers.pop(reply[len(self._reply_prefix) :], None)

    def new_record_id(self) -> str:
        """A unique id for the header `Nats-Msg-Id`."""
        return f"{self.writer_id}.{next(self._record_numbers)}"

    def new_inbox(self) -> str:
        """A new subject that only this instance may subscribe to."""
        return f"{self._inbox_prefix}.{secrets.token_hex(6)}"

    async def subscribe(
        self, subject: str, handler: Callable[[Message], Awaitable[None]]
    ) -> Subscription:
        """Call `handler` for each message on the subject, which may have wildcards; the next one
        waits until it returns.

        When this returns, the server has the subscription. An exception of the handler fails the
        bus (`wait_failed`).

        Raises:
            BusClosed: The connection was closed.
        """

        async def guarded(raw: Msg) -> None:
            try:
                await handler(Message(raw.subject, raw.data, raw.reply, raw.headers or {}))
            except Exception as error:  # noqa: BLE001 - handed to the task that awaits wait_failed
                self._fail(error)

        try:
            made = await self._client.subscribe(subject, cb=guarded)
        except nats.errors.ConnectionClosedError as error:
            raise BusClosed("the connection to NATS is closed") from error
        await self._flush()  # a connection that breaks now subscribes again by itself
        return Subscription(made)

    # ---- JetStream

    async def api(
        self, call: str, body: msgspec.Struct | Mapping[str, Any] | None, answer: type[A]
    ) -> A:
        """Send one request, "STREAM.INFO.CLUSTER" for example, to JetStream's API; a body of None
        is no content.

        Raises:
            ApiRefused: JetStream answered with an error.
            NoAnswer: JetStream did not answer, or cannot now: it is not enabled, this user has no
                rights, or there is no leader or no such consumer.
        """
        payload = b"" if body is None else _encode_json(body)
        message = await self.request(f"{self.api_prefix}.{call}", payload, timeout_s=API_TIMEOUT_S)
        decoded = msgspec.json.decode(message.payload, type=answer)
        if decoded.error is not None:
            error = decoded.error
            if error.passes_by_itself:
                raise NoAnswer(f"{call}: {error.description}")
            raise ApiRefused(call, error.code, error.err_code, error.description)
        return decoded

    async def stream_info(self, stream: str) -> StreamInfo:
        """The current state of a stream.

        Raises:
            ApiRefused: It does not exist (code 404).
            NoAnswer: JetStream did not answer.
        """
        answer = await self.api(f"STREAM.INFO.{stream}", None, StreamAnswer)
        return StreamInfo(
            stream=stream,
            generation=answer.config.metadata.get(GENERATION, ""),
            messages=answer.state.messages,
            first_seq=answer.state.first_seq,
            last_seq=answer.state.last_seq,
            now_ms=instant_ms(answer.ts),
        )

    async def get_message(self, stream: str, seq: int) -> StoredMessage | None:
        """Read one record from the stream's leader (STREAM.MSG.GET, not Direct Get); None: the
        stream does not have it. Raises like `api`.
        """
        return await self._get(stream, GetRequest(seq=seq))

    async def get_last(self, stream: str, subject: str) -> StoredMessage | None:
        """Read the newest record of a subject from the stream's leader; None: there is none."""
        return await self._get(stream, GetRequest(last_by_subj=subject))

    async def get_next(self, stream: str, subject: str, seq: int) -> StoredMessage | None:
        """Read the oldest record of a subject, which may have wildcards, whose sequence is at least
        `seq` (1 or more), from the stream's leader; None: there is none.
        """
        return await self._get(stream, GetRequest(seq=seq, next_by_subj=subject))

    async def _get(self, stream: str, request: GetRequest) -> StoredMessage | None:
        try:
            answer = await self.api(f"STREAM.MSG.GET.{stream}", request, MessageAnswer)
        except ApiRefused as error:
            if error.err_code == NO_MESSAGE_FOUND:
                return None
            raise
        return required(answer.message, "STREAM.MSG.GET", "answers with a message or an error")

    async def reset_consumer(self, stream: str, consumer: str, seq: int) -> None:
        """Make a durable consumer deliver from sequence `seq` on.

        Raises:
            ApiRefused: The consumer's policy forbids it.
            NoAnswer: There is no such consumer, or JetStream does not answer.
        """
        await self.api(f"CONSUMER.RESET.{stream}.{consumer}", ResetRequest(seq), ApiAnswer)

    # ---- state

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._connected.is_set()

    async def wait_connected(self) -> None:
        """Wait until there is a connection."""
        await self._connected.wait()

    @property
    def payload_bytes_max(self) -> int:
        """The longest payload: the server's limit less 1 KiB for headers."""
        return self._client.max_payload - HEADERS_BYTES_MAX

    @property
    def server_version(self) -> tuple[int, int]:
        """Major and minor version of the server."""
        version = self._client.connected_server_version
        return version.major, version.minor

    def on_reconnect(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each reconnection; the function returned ends that."""
        self._reconnect_listeners.append(listener)
        return lambda: self._reconnect_listeners.remove(listener)

    def report(self, topic: str, problem: str) -> None:
        """Report the problem of `topic` to the health listener, "" when it has none; repetitions
        are not reported.
        """
        if self._problems.get(topic, "") == problem and topic in self._problems:
            return
        self._problems[topic] = problem
        if problem:
            _log.warning("%s: %s", topic, problem)
        if self._on_health is not None:
            self._on_health(topic, problem)

    async def wait_failed(self) -> None:
        """Wait until this bus fails finally, and raise the cause: a handler's exception, or
        `BusClosed`.
        """
        await asyncio.shield(self._failure)

    async def close(self) -> None:
        """Send the buffered messages, and close. Safe to call twice."""
        self._closing = True
        self._connected.clear()
        await self._flush()
        await self._client.close()
        if not self._failure.done():
            self._failure.cancel()

    async def _flush(self) -> None:
        """Wait until the server has received all messages, two seconds at most. Never fails."""
        if not self._client.is_connected:
            return
        # In a task of its own: before Python 3.12 `wait_for`, which the client uses, may swallow a
        # cancellation.
        flushing = asyncio.get_running_loop().create_task(self._client.flush(FLUSH_TIMEOUT_S))
        flushing.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.wait([flushing])

    # ---- the client's callbacks

    async def _on_reply(self, raw: Msg) -> None:
        handler = self._reply_handlers.get(raw.subject[len(self._reply_prefix) :])
        if handler is not None:
            handler(Message(raw.subject, raw.data, raw.reply, raw.headers or {}))

    async def _refresh_security(self) -> None:
        if self._security is not None and self._security.may_change:
            await asyncio.to_thread(self._security.refresh)

    async def _on_error(self, error: Exception) -> None:
        text = describe(error)
        if "permissions violation" in text.lower():
            # The only sign of a denied publish: its caller only gets no answer.
            self.report("nats permissions", text)
            self._denials += 1
            asyncio.get_running_loop().call_later(DENIED_S, self._forget_denial, self._denials)
        elif isinstance(error, nats.errors.SlowConsumerError):
            _log.warning("a message on %s was dropped: its reader is too slow", error.subject)
        elif not self._client.is_connected:
            self.report("nats", text)
            await self._refresh_security()
        else:
            _log.warning("nats: %s", text)

    def _forget_denial(self, number: int) -> None:
        """Without a further denial the right may have been granted; a caller that still lacks it
        retries, and is denied again.
        """
        if number == self._denials:
            self.report("nats permissions", "")

    async def _on_disconnected(self) -> None:
        self._connected.clear()
        if not self._closing:
            self.report("nats", "disconnected")
            await self._refresh_security()

    async def _on_reconnected(self) -> None:
        self.connections += 1
        self._connected.set()
        self.report("nats", "")
        self.report("nats permissions", "")
        self.appends.reconnected()
        for listener in list(self._reconnect_listeners):
            listener()

    async def _on_closed(self) -> None:
        if not self._closing:
            self._fail(BusClosed(f"NATS ended the connection: {self._client.last_error}"))

    def _fail(self, error: Exception) -> None:
        if self._failure.done():
            _log.error("another error of the NATS connection", exc_info=error)
        else:
            self._failure.set_exception(error)
