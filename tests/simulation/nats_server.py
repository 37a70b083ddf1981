"""A simulated nats-server: subjects, JetStream's API, connections, and every way to fail.

Messages between a client and the server take time, are never lost on a connection that lives, and
never overtake each other on their way to the server or to one subscription. When a connection
breaks, whatever was in flight arrives up to some point and not beyond it. The streams are on disk:
they outlive the server; requests for messages, atomic batches begun and the newest
acknowledgements do not.

Longer than most files here: routing, storing and the API are one server, whose every answer depends
on what is broken now. It runs on the simulation's loop, and for the contract tests in
`tests/shared/bus` on asyncio's.
"""

import base64
import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, Protocol

import msgspec

from shared.bus.jetstream_api import NO_MESSAGE_FOUND, STREAM_NOT_FOUND
from tests.simulation.connections import TICK_S, Client, Link, Listener, Received
from tests.simulation.stream_consumer import Cancellable, PullBody, SimConsumer
from tests.simulation.stream_store import Headers, Piece, Refused, SimStream, Stored
from tests.simulation.subject_matching import matches

_API: Final = "$JS.API."
_NEXT: Final = "$JS.API.CONSUMER.MSG.NEXT."
_ACK: Final = "$JS.ACK."
_NO_HEADERS: Final[Headers] = {}
_NO_RESPONDERS: Final[Headers] = {"Status": "503"}
_CONSUMER_NOT_FOUND: Final = 10014
_NO_LEADER: Final = 10008
#: A client's pings find a broken way after this time.
PARTITION_NOTICED_S: Final = 12.0
_encode: Final = msgspec.json.encode
_decode: Final = msgspec.json.decode
_decode_pull: Final = msgspec.json.Decoder(PullBody).decode


class Clockwork(Protocol):
    """Where time comes from."""

    def time(self) -> float:
        """Monotonic seconds."""
        ...

    @property
    def now_ms(self) -> int:
        """Wall clock."""
        ...

    def at(self, delay_s: float, action: Any, *args: object) -> Cancellable:
        """Do something later."""
        ...

    def at_instant(self, when: float, action: Any, *args: object) -> Cancellable:
        """Do something at an instant of `time`; of two, the one asked for first comes first."""
        ...


class Observer(Protocol):
    """Called with every record at the moment it is stored."""

    def appended(
        self, stream: str, generation: str, seq: int, subject: str, payload: bytes
    ) -> None:
        """A record is stored."""
        ...

    def recreated(self, stream: str, generation: str) -> None:
        """A stream that was lost begins again."""
        ...


class BusFaults(msgspec.Struct, kw_only=True):
    """How badly the bus behaves now; set by the faults. Probabilities are per message.

    Attributes:
        latency_s: The longest an undisturbed message takes.
        delay: Probability that a message is delayed.
        delay_s: The longest such a delay.
        lost_ack: Probability that the acknowledgement of a stored record is lost.
        early: Probability that a delivery makes something pending be given again at once.
        disk_s: The longest an append waits for the disk.
        leaderless: Streams have no leader: JetStream stores nothing, and hardly answers.
    """

    latency_s: float = 0.0004
    delay: float = 0.0
    delay_s: float = 0.05
    lost_ack: float = 0.0
    early: float = 0.0
    disk_s: float = 0.0
    leaderless: bool = False


class SimNats:
    """The server. `kill` and `start` it; its streams stay. See the module's docstring."""

    def __init__(self, clock: Clockwork, rng: Random) -> None:
        self.clock = clock
        self.faults = BusFaults()
        self.is_up = True
        self.streams: dict[str, SimStream] = {}
        self.links: list[Link] = []
        #: Called with every record that is stored.
        self.observers: list[Observer] = []
        #: What happened to the bus so far, by kind.
        self.counts: dict[str, int] = {}
        #: Names of streams that were lost with their disk.
        self._lost: set[str] = set()
        self._rng = rng
        self._random = rng.random
        self._exact: dict[str, list[Listener]] = {}
        #: Patterns `prefix.*`, by the prefix.
        self._one_token: dict[str, list[Listener]] = {}
        self._patterns: list[Listener] = []
        self._owners: dict[str, SimStream | None] = {}
        self._batches: dict[str, list[Piece]] = {}
        self._sids = itertools.count(1)
        self._calls: dict[str, Callable[[str, bytes], dict[str, Any]]] = {
            "STREAM.INFO": self._stream_info,
            "STREAM.CREATE": self._stream_create,
            "STREAM.UPDATE": self._stream_update,
            "STREAM.DELETE": self._stream_delete,
            "STREAM.PURGE": self._stream_purge,
            "STREAM.MSG.GET": self._message_get,
            "CONSUMER.CREATE": self._consumer_create,
            "CONSUMER.INFO": self._consumer_info,
            "CONSUMER.DELETE": self._consumer_delete,
        }

    # ---- life and death

    def kill(self) -> None:
        """The server dies; its disk does not."""
        self.is_up = False
        for link in list(self.links):
            self.cut(link)
        self._batches.clear()
        for stream in self.streams.values():
            for consumer in stream.consumers.values():
                consumer.server_died(self._rng.randrange(4))
        self._count("killed")

    def start(self) -> None:
        """It is back; clients find it by themselves."""
        self.is_up = True

    def wipe(self) -> None:
        """Its disk is lost. A client has to set it up again."""
        self._lost.update(self.streams)
        self.streams.clear()
        self._owners.clear()
        self._count("wiped")

    def accept(self, client: Client) -> Link | None:
        """A client connects; None if the server is down."""
        if not self.is_up:
            return None
        link = Link(self, client)
        self.links.append(link)
        return link

    def cut(self, link: Link) -> None:
        """A connection breaks; how much of what is in flight arrives is chance."""
        if not link.alive:
            return
        link.alive = False
        self.links.remove(link)
        now = self.clock.time()
        link.cut_at = now + self._random() * self.faults.latency_s
        for listener in link.listeners.values():
            self._index(listener.pattern).remove(listener)
        self.clock.at_instant(link.cut_at, link.client.lost, link)

    def partition(self, link: Link, duration_s: float) -> None:
        """Nothing passes for so long; the network delivers afterwards what was sent in that time,
        unless the client gives the connection up before.
        """
        link.held_until = max(link.held_until, self.clock.time() + duration_s)
        self._count("partitioned")
        if duration_s > PARTITION_NOTICED_S:
            self.clock.at(PARTITION_NOTICED_S, self._give_up, link)

    def _give_up(self, link: Link) -> None:
        """The client's pings were not answered."""
        if link.held_until > self.clock.time():
            self.cut(link)

    def reopen(self, link: Link) -> None:
        """The way is free again."""
        link.held_until = 0.0

    # ---- what clients send

    def subscribe(
        self, link: Link, sid: int, pattern: str, queue: str, arrive: Callable[[Received], None]
    ) -> None:
        """A client listens."""
        if not link.alive:
            return
        listener = link.listeners[sid] = Listener(link, pattern, queue, arrive)
        self._index(pattern).append(listener)

    def unsubscribe(self, link: Link, sid: int) -> None:
        """A client listens no more."""
        listener = link.listeners.pop(sid, None)
        if listener is not None and link.alive:
            self._index(listener.pattern).remove(listener)

    def publish(self, subject: str, payload: bytes, reply: str, headers: Headers) -> None:
        """A client's message has arrived."""
        if subject.startswith("$JS."):
            self._jetstream(subject, payload, reply, headers)
            return
        heard = self._route(subject, subject, reply, payload, headers)
        stream = self._owner(subject)
        if stream is not None and self.faults.leaderless:
            self._answer_without_leader(reply)
        elif stream is not None:
            self._store(stream, Piece(subject, payload, headers), reply)
        elif not heard and reply:
            self.deliver(reply, reply, "", b"", _NO_RESPONDERS)

    def _answer_without_leader(self, reply: str) -> None:
        """An election is in flight: silence, or "temporarily unavailable"."""
        if reply and self._random() < 0.5:
            answer = _error(503, _NO_LEADER, "JetStream system temporarily unavailable")
            self.deliver(reply, reply, "", _encode(answer), _NO_HEADERS)

    def _jetstream(self, subject: str, payload: bytes, reply: str, headers: Headers) -> None:
        if self.faults.leaderless:
            if subject.startswith(_API) and not subject.startswith(_NEXT):
                self._answer_without_leader(reply)
            return
        if subject.startswith(_ACK):
            _, _, stream, consumer, _, seq, *_ = subject.split(".")
            found = self._consumer(stream, consumer)
            if found is not None:
                found.acknowledge(int(seq), payload)
            return
        call = subject[len(_API) :]
        if subject.startswith(_NEXT):
            self._pull(call, payload, reply)
        elif call.startswith("CONSUMER.RESET."):
            self._consumer_reset(call, payload, reply)
        else:
            self.deliver(reply, reply, "", _encode(self._call(call, payload)), _NO_HEADERS)

    def _store(self, stream: SimStream, piece: Piece, reply: str) -> None:
        try:
            last, count, duplicate = self._stored(stream, piece)
        except Refused as error:
            answer: dict[str, Any] = {
                "error": {
                    "code": error.code,
                    "err_code": error.err_code,
                    "description": error.text,
                },
                "stream": stream.name,
                "seq": 0,
            }
        else:
            if not last:
                return  # a part of a batch
            answer = {"stream": stream.name, "seq": last}
            if duplicate:
                answer["duplicate"] = True
            if count > 1:
                answer["count"] = count
            for consumer in stream.consumers.values():
                consumer.pump()
            if self.faults.lost_ack and self._random() < self.faults.lost_ack:
                self._count("ack lost")
                return
        if reply:
            payload = _encode(answer)
            if self.faults.disk_s:
                delay_s = self._random() * self.faults.disk_s
                self.clock.at(delay_s, self.deliver, reply, reply, "", payload, _NO_HEADERS)
            else:
                self.deliver(reply, reply, "", payload, _NO_HEADERS)

    def _stored(self, stream: SimStream, piece: Piece) -> tuple[int, int, bool]:
        """Store it, or the batch that it ends: the last sequence, how many, known already."""
        before = stream.last_seq
        batch_id = piece.headers.get("Nats-Batch-Id")
        if batch_id is None:
            seq, duplicate = stream.publish(piece, self.now_ns())
        else:
            pieces = self._batches.setdefault(batch_id, [])
            pieces.append(piece)
            if "Nats-Batch-Commit" not in piece.headers:
                return 0, 0, False
            del self._batches[batch_id]
            seq, duplicate = stream.publish_batch(pieces, self.now_ns()), False
        for stored in range(before + 1, stream.last_seq + 1):
            record = stream.records.get(stored)
            if record is not None:
                self._notify(stream, record)
        return seq, stream.last_seq - before, duplicate

    def _notify(self, stream: SimStream, record: Stored) -> None:
        for observer in self.observers:
            observer.appended(
                stream.name, stream.generation, record.seq, record.subject, record.payload
            )

    # ---- what the server sends

    def deliver(self, to: str, subject: str, reply: str, payload: bytes, headers: Headers) -> None:
        """Send a message to the subscribers of `to`."""
        self._route(to, subject, reply, payload, headers)

    def interested(self, subject: str) -> bool:
        """Whether there is a subscriber."""
        return bool(self._listeners(subject))

    def _route(self, to: str, subject: str, reply: str, payload: bytes, headers: Headers) -> bool:
        listeners = self._listeners(to)
        if not listeners:
            return False
        if any(listener.queue for listener in listeners):
            listeners = self._one_of_each_queue(listeners)
        message = Received(subject, reply, payload, headers)
        for listener in listeners:
            self._send(listener, message)
        return True

    def _one_of_each_queue(self, listeners: list[Listener]) -> list[Listener]:
        chosen = [listener for listener in listeners if not listener.queue]
        for queue in sorted({listener.queue for listener in listeners if listener.queue}):
            members = [listener for listener in listeners if listener.queue == queue]
            chosen.append(members[int(self._random() * len(members))])
        return chosen

    def _send(self, listener: Listener, message: Received) -> None:
        link = listener.link
        now = self.clock.time()
        when = max(listener.free + TICK_S, link.held_until, now + self.latency())
        listener.free = when
        self.clock.at_instant(when, self._reach, listener, when, message)

    @staticmethod
    def _reach(listener: Listener, when: float, message: Received) -> None:
        if listener.link.passes(when):
            listener.arrive(message)

    def latency(self) -> float:
        """How long the next message takes."""
        faults = self.faults
        latency_s = (0.1 + 0.9 * self._random()) * faults.latency_s
        if faults.delay and self._random() < faults.delay:
            latency_s += self._random() * faults.delay_s
        return latency_s

    def redeliver_early(self, stream: str, consumer: str) -> bool:
        """A fault: give something that is pending again now. False: there is nothing."""
        found = self._consumer(stream, consumer)
        done = found is not None and found.redeliver_early(self._rng.randrange(1 << 30))
        if done:
            self._count("redelivered early")
        return done

    # ---- a consumer's host

    def now_ns(self) -> int:
        """The server's wall clock."""
        return self.clock.now_ms * 1_000_000

    def after(self, delay_s: float, action: Any, *args: object) -> Cancellable:
        """Do something later."""
        return self.clock.at(delay_s, action, *args)

    # ---- subjects

    def _index(self, pattern: str) -> list[Listener]:
        if "*" not in pattern and ">" not in pattern:
            return self._exact.setdefault(pattern, [])
        prefix, _, last = pattern.rpartition(".")
        if last == "*" and "*" not in prefix:
            return self._one_token.setdefault(prefix, [])
        return self._patterns

    def _listeners(self, subject: str) -> list[Listener]:
        found = self._exact.get(subject) or []
        more = self._one_token.get(subject.rpartition(".")[0])
        if more:
            found = found + more
        if self._patterns:
            found = found + [each for each in self._patterns if matches(each.pattern, subject)]
        return found

    def _owner(self, subject: str) -> SimStream | None:
        if subject not in self._owners:
            self._owners[subject] = next(
                (stream for stream in self.streams.values() if stream.takes(subject)), None
            )
        return self._owners[subject]

    def _consumer(self, stream: str, consumer: str) -> SimConsumer | None:
        found = self.streams.get(stream)
        return found.consumers.get(consumer) if found is not None else None

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # ---- JetStream's API

    def _pull(self, call: str, payload: bytes, reply: str) -> None:
        stream, consumer = call.removeprefix("CONSUMER.MSG.NEXT.").split(".")
        found = self._consumer(stream, consumer)
        if found is None:
            self.deliver(reply, reply, "", b"", _NO_RESPONDERS)
            return
        self.streams[stream].expire(self.now_ns())
        if self.faults.early and self._random() < self.faults.early:
            self.redeliver_early(stream, consumer)
        found.pull(reply, _decode_pull(payload))

    def _consumer_reset(self, call: str, payload: bytes, reply: str) -> None:
        stream, consumer = call.removeprefix("CONSUMER.RESET.").split(".")
        found = self._consumer(stream, consumer)
        if found is None:
            return  # as the real one: silence
        # The answer first: the messages that the reset sets free come behind it.
        self.deliver(reply, reply, "", _encode(found.describe()), _NO_HEADERS)
        found.reset(_decode(payload).get("seq", 0))

    def _call(self, call: str, payload: bytes) -> dict[str, Any]:
        if call == "INFO":
            return {"streams": len(self.streams)}
        for name, handle in self._calls.items():
            if call.startswith(name + "."):
                try:
                    return handle(call[len(name) + 1 :], payload)
                except Refused as error:
                    return _error(error.code, error.err_code, error.text)
        return _error(400, 10025, f"{call}: not in this server")

    def _stream(self, name: str) -> SimStream:
        found = self.streams.get(name)
        if found is None:
            raise Refused(404, STREAM_NOT_FOUND, "stream not found")
        found.expire(self.now_ns())
        return found

    def _stream_info(self, name: str, _: bytes) -> dict[str, Any]:
        return {**self._stream(name).describe(), "ts": _timestamp(self.now_ns())}

    def _stream_create(self, name: str, payload: bytes) -> dict[str, Any]:
        if name in self.streams:
            raise Refused(400, 10058, "stream name already in use with a different configuration")
        made = self.streams[name] = SimStream(_decode(payload), self.now_ns())
        made.on_ttl = lambda stored, ttl_s: self.clock.at(ttl_s, self._forget, made, stored.seq)
        self._owners.clear()
        if name in self._lost:
            for observer in self.observers:
                observer.recreated(name, made.generation)
        return made.describe()

    def _forget(self, stream: SimStream, seq: int) -> None:
        stream.remove(seq)

    def _stream_update(self, name: str, payload: bytes) -> dict[str, Any]:
        stream = self._stream(name)
        stream.configure(_decode(payload))
        self._owners.clear()
        return stream.describe()

    def _stream_delete(self, name: str, _: bytes) -> dict[str, Any]:
        del self.streams[self._stream(name).name]
        self._owners.clear()
        return {"success": True}

    def _stream_purge(self, name: str, payload: bytes) -> dict[str, Any]:
        below = _decode(payload).get("seq", 0) if payload else 0
        return {"success": True, "purged": self._stream(name).purge(below)}

    def _message_get(self, name: str, payload: bytes) -> dict[str, Any]:
        stream, body = self._stream(name), _decode(payload)
        seq, subject = body.get("seq", 0), body.get("last_by_subj")
        pattern = body.get("next_by_subj")
        if pattern:
            later = (one for at, one in sorted(stream.records.items()) if at >= seq)
            found = next((one for one in later if matches(pattern, one.subject)), None)
        else:
            found = stream.last_of(subject) if subject else stream.records.get(seq)
        if found is None:
            raise Refused(404, NO_MESSAGE_FOUND, "no message found")
        return {
            "message": {
                "subject": found.subject,
                "seq": found.seq,
                "data": base64.b64encode(found.payload).decode(),
                "hdrs": base64.b64encode(_header_block(found.headers)).decode(),
                "time": _timestamp(found.at_ns),
            }
        }

    def _consumer_create(self, path: str, payload: bytes) -> dict[str, Any]:
        stream_name, consumer_name = path.split(".")[:2]
        stream = self._stream(stream_name)
        config = _decode(payload)["config"]
        found = stream.consumers.get(consumer_name)
        if found is None:
            found = stream.consumers[consumer_name] = SimConsumer(stream, config, self)
        else:
            found.configure(config)
        return found.describe()

    def _consumer_info(self, path: str, _: bytes) -> dict[str, Any]:
        return self._known(path).describe()

    def _consumer_delete(self, path: str, _: bytes) -> dict[str, Any]:
        stream, consumer = path.split(".")
        self._known(path)
        del self.streams[stream].consumers[consumer]
        return {"success": True}

    def _known(self, path: str) -> SimConsumer:
        stream, consumer = path.split(".")
        self._stream(stream)
        found = self._consumer(stream, consumer)
        if found is None:
            raise Refused(404, _CONSUMER_NOT_FOUND, "consumer not found")
        return found


def _error(code: int, err_code: int, text: str) -> dict[str, Any]:
    return {"error": {"code": code, "err_code": err_code, "description": text}}


def _header_block(headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode()


def _timestamp(at_ns: int) -> str:
    """An instant as the server writes it into its answers."""
    return datetime.fromtimestamp(at_ns / 1_000_000_000, UTC).isoformat()
