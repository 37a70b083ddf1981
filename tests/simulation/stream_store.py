"""A simulated JetStream stream: what is stored, what is refused, what ages out.

As nats-server 2.15 does it on file storage with one replica (`tests/shared/bus` runs the same tests
on both). Time is given by the caller; nothing here waits.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from shared.bus.jetstream_api import (
    BATCH_DUPLICATE_ID,
    BATCH_INCOMPLETE,
    GENERATION,
    NANOSECONDS,
    WRONG_LAST_SEQUENCE,
)
from tests.simulation.subject_matching import matches

if TYPE_CHECKING:
    from tests.simulation.stream_consumer import SimConsumer

Headers = Mapping[str, str]
Config = dict[str, Any]

_NO_HEADERS: Final[Headers] = {}
_TTL_INVALID: Final = 10165
_TTL_DISABLED: Final = 10166
_BATCH_MAX: Final = 1000
_BATCH_TOO_LARGE: Final = 10199
#: What a record costs on disk beside its subject, headers and payload; only its order matters.
_RECORD_BYTES: Final = 30


class Stored(msgspec.Struct, frozen=True, gc=False):
    """One record."""

    seq: int
    subject: str
    payload: bytes
    headers: Headers
    at_ns: int

    def size(self) -> int:
        """Its bytes in the stream's limits."""
        return len(self.subject) + len(self.payload) + _RECORD_BYTES


class Refused(Exception):
    """The server answers a publish with an error and stores nothing."""

    def __init__(self, code: int, err_code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.err_code = err_code
        self.text = text


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A message that is to be stored."""

    subject: str
    payload: bytes
    headers: Headers = _NO_HEADERS


class SimStream:
    """One stream on file storage: it outlives restarts of its server."""

    def __init__(self, config: Config, created_ns: int) -> None:
        self.name: str = config["name"]
        self.created_ns = created_ns
        self.consumers: dict[str, SimConsumer] = {}
        #: In the order of sequences.
        self.records: dict[int, Stored] = {}
        self.first_seq = 1
        self.last_seq = 0
        self.bytes = 0
        #: Set by a fault: every publish is refused so.
        self.refuses: Refused | None = None
        #: Called when a record with a time to live of its own was stored.
        self.on_ttl: Callable[[Stored, int], object] | None = None
        self._by_subject: dict[str, deque[int]] = {}
        self._ids: dict[str, tuple[int, int]] = {}
        self._id_order: deque[tuple[int, str]] = deque()
        self.configure(config)

    def configure(self, config: Config) -> None:
        """Take a configuration, the first or a newer one."""
        self.config = config
        self.subjects: tuple[str, ...] = tuple(config["subjects"])
        self._age_ns: int = config.get("max_age", 0)
        self._bytes_max: int = config.get("max_bytes", -1)
        self._per_subject: int = config.get("max_msgs_per_subject", -1)
        self._window_ns: int = config.get("duplicate_window", 120 * NANOSECONDS)
        self.trim()

    @property
    def generation(self) -> str:
        """The id that setup gave it."""
        return str(self.config.get("metadata", {}).get(GENERATION, ""))

    def takes(self, subject: str) -> bool:
        """Whether messages on that subject are stored here."""
        return any(matches(pattern, subject) for pattern in self.subjects)

    # ---- writing

    def publish(self, piece: Piece, now_ns: int) -> tuple[int, bool]:
        """Store one message; returns its sequence, and whether it was known already.

        Raises:
            Refused: It is not stored.
        """
        self.expire(now_ns)
        self._check(piece, now_ns)
        record_id = piece.headers.get("Nats-Msg-Id")
        if record_id is not None and record_id in self._ids:
            return self._ids[record_id][0], True
        return self._store(piece, now_ns).seq, False

    def publish_batch(self, pieces: list[Piece], now_ns: int) -> int:
        """Store an atomic batch, all or nothing; returns the last sequence. Raises Refused."""
        self.expire(now_ns)
        numbers = [piece.headers.get("Nats-Batch-Sequence") for piece in pieces]
        if numbers != [str(number) for number in range(1, len(pieces) + 1)]:
            raise Refused(400, BATCH_INCOMPLETE, "atomic publish batch is incomplete")
        if len(pieces) > _BATCH_MAX:
            raise Refused(400, _BATCH_TOO_LARGE, "atomic publish batch is too large: 1000")
        self._check(pieces[0], now_ns)
        ids = [piece.headers["Nats-Msg-Id"] for piece in pieces if "Nats-Msg-Id" in piece.headers]
        if any(record_id in self._ids for record_id in ids):
            raise Refused(
                400, BATCH_DUPLICATE_ID, "atomic publish batch contains duplicate message id"
            )
        return [self._store(piece, now_ns).seq for piece in pieces][-1]

    def _check(self, piece: Piece, now_ns: int) -> None:
        if self.refuses is not None:
            raise self.refuses
        self._forget_ids(now_ns)
        headers = piece.headers
        ttl = headers.get("Nats-TTL")
        if ttl is not None:
            if not self.config.get("allow_msg_ttl"):
                raise Refused(400, _TTL_DISABLED, "per-message TTL is disabled")
            if not ttl.removesuffix("s").isdigit():
                raise Refused(400, _TTL_INVALID, "invalid per-message TTL")
        expected = headers.get("Nats-Expected-Last-Sequence")
        if expected is not None and int(expected) != self.last_seq:
            raise Refused(400, WRONG_LAST_SEQUENCE, f"wrong last sequence: {self.last_seq}")
        expected = headers.get("Nats-Expected-Last-Subject-Sequence")
        if expected is not None:
            seqs = self._by_subject.get(piece.subject)
            last = seqs[-1] if seqs else 0
            if int(expected) != last:
                raise Refused(400, WRONG_LAST_SEQUENCE, f"wrong last sequence: {last}")

    def _store(self, piece: Piece, now_ns: int) -> Stored:
        self.last_seq += 1
        stored = Stored(self.last_seq, piece.subject, piece.payload, piece.headers, now_ns)
        self.records[stored.seq] = stored
        self.bytes += stored.size()
        seqs = self._by_subject.setdefault(piece.subject, deque())
        seqs.append(stored.seq)
        record_id = piece.headers.get("Nats-Msg-Id")
        if record_id is not None:
            self._ids[record_id] = (stored.seq, now_ns)
            self._id_order.append((now_ns, record_id))
        if self._per_subject > 0 and len(seqs) > self._per_subject:
            self.remove(seqs[0])
        self.trim()
        ttl = piece.headers.get("Nats-TTL")
        if ttl is not None and self.on_ttl is not None:
            self.on_ttl(stored, int(ttl.removesuffix("s")))
        return stored

    # ---- removing

    def remove(self, seq: int) -> None:
        """Remove one record, if it is there."""
        gone = self.records.pop(seq, None)
        if gone is None:
            return
        self.bytes -= gone.size()
        seqs = self._by_subject[gone.subject]
        seqs.remove(seq)
        if not seqs:
            del self._by_subject[gone.subject]
        if seq == self.first_seq:
            self.first_seq = next(iter(self.records), self.last_seq + 1)

    def purge(self, below_seq: int) -> int:
        """Remove everything below that sequence (0: everything); returns how many went."""
        gone = [seq for seq in self.records if not below_seq or seq < below_seq]
        for seq in gone:
            self.remove(seq)
        return len(gone)

    def trim(self) -> None:
        """Drop the oldest while the stream is over its size."""
        while 0 < self._bytes_max < self.bytes and len(self.records) > 1:
            self.remove(self.first_seq)

    def expire(self, now_ns: int) -> None:
        """Drop what is over its age."""
        if not self._age_ns:
            return
        while self.records:
            oldest = self.records[self.first_seq]
            if oldest.at_ns + self._age_ns > now_ns:
                return
            self.remove(oldest.seq)

    def _forget_ids(self, now_ns: int) -> None:
        while self._id_order and self._id_order[0][0] + self._window_ns < now_ns:
            _, record_id = self._id_order.popleft()
            self._ids.pop(record_id, None)

    # ---- reading

    def last_of(self, pattern: str) -> Stored | None:
        """The newest record on a subject, which may be a pattern."""
        if "*" not in pattern and ">" not in pattern:
            seqs = self._by_subject.get(pattern)
            return self.records[seqs[-1]] if seqs else None
        return next(
            (found for found in reversed(self.records.values()) if matches(pattern, found.subject)),
            None,
        )

    def newest_of_each(self, wanted: Callable[[str], bool]) -> list[int]:
        """Sequences of the newest record of each subject, in order."""
        return sorted(seqs[-1] for subject, seqs in self._by_subject.items() if wanted(subject))

    def describe(self) -> dict[str, Any]:
        """What STREAM.INFO says."""
        return {
            "config": self.config,
            "state": {
                "messages": len(self.records),
                "bytes": self.bytes,
                "first_seq": self.first_seq if self.last_seq else 0,
                "last_seq": self.last_seq,
                "consumer_count": len(self.consumers),
            },
        }
