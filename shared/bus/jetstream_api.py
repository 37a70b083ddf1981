"""JetStream's JSON API as typed structs: only the fields that Tutti reads or sets.

Requests go to `$JS.API.<call>`; every answer may carry `error` instead of its content. Durations
are nanoseconds here and nowhere else.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

#: Key of the generation in a stream's metadata: the id that setup gave it when it created it.
GENERATION: Final = "tutti.incarnation"

NANOSECONDS: Final = 1_000_000_000

STREAM_NOT_FOUND: Final = 10059
NO_MESSAGE_FOUND: Final = 10037
WRONG_LAST_SEQUENCE: Final = 10071
BATCH_DUPLICATE_ID: Final = 10201
BATCH_INCOMPLETE: Final = 10176
INSUFFICIENT_RESOURCES: Final = 10023
STORE_FAILED: Final = 10077

_SERVICE_UNAVAILABLE: Final = 503
#: The same code, although an operator has to free space first: the stream, the account or the disk
#: is full. Nothing was stored.
_FULL: Final = frozenset({INSUFFICIENT_RESOURCES, STORE_FAILED})


class ApiError(msgspec.Struct, frozen=True):
    """JetStream's error object."""

    code: int = 0
    err_code: int = 0
    description: str = ""

    @property
    def passes_by_itself(self) -> bool:
        """Whether a retry is enough: a leader is being elected, for example."""
        return self.code == _SERVICE_UNAVAILABLE and self.err_code not in _FULL


class ApiAnswer(msgspec.Struct, frozen=True):
    """The fields of every answer."""

    error: ApiError | None = None


class StreamState(msgspec.Struct, frozen=True):
    messages: int = 0
    first_seq: int = 0
    last_seq: int = 0


class StreamConfigSeen(msgspec.Struct, frozen=True):
    """The fields of a stream's `config` that Tutti reads."""

    metadata: dict[str, str] = {}


class StreamAnswer(ApiAnswer, frozen=True):
    """Answer of STREAM.INFO, STREAM.CREATE and STREAM.UPDATE."""

    config: StreamConfigSeen = StreamConfigSeen()
    state: StreamState = StreamState()
    #: When the server answered, by its own clock.
    ts: datetime | None = None


class StoredMessage(msgspec.Struct, frozen=True):
    """A message read back from its stream's leader (STREAM.MSG.GET)."""

    subject: str
    seq: int
    #: msgspec decodes the base64 of bytes.
    payload: bytes = msgspec.field(default=b"", name="data")
    hdrs: bytes = b""
    #: When it was stored, by the server's clock.
    time: datetime | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Read from a NATS header block (`NATS/1.0`, then `Key: value` lines)."""
        lines = self.hdrs.decode("utf-8", "replace").split("\r\n")[1:]
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        return {key: value.strip() for key, value in pairs}

    @property
    def stored_ms(self) -> int | None:
        """`time` in milliseconds since the epoch."""
        return instant_ms(self.time)


class MessageAnswer(ApiAnswer, frozen=True):
    """Answer of STREAM.MSG.GET."""

    message: StoredMessage | None = None


class PublishAnswer(ApiAnswer, frozen=True):
    """A publish acknowledgement, of a single message or of a batch's commit; `seq` is the last one
    stored.
    """

    seq: int = 0


decode_publish_answer: Final = msgspec.json.Decoder(PublishAnswer).decode


class GetRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of STREAM.MSG.GET: by a sequence, or the last of a subject, or the first of a subject
    (with wildcards) from a sequence on.
    """

    seq: int = 0
    last_by_subj: str = ""
    next_by_subj: str = ""


class ResetRequest(msgspec.Struct, frozen=True):
    """Request of CONSUMER.RESET."""

    seq: int


class PullRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of CONSUMER.MSG.NEXT: for messages that come within `expires`, or with `no_wait` for
    those that wait now; with fewer than `batch`, that answer ends with status 404.
    """

    batch: int
    max_bytes: int
    expires: int = 0
    idle_heartbeat: int = 0
    no_wait: bool = False


class StreamInfo(msgspec.Struct, frozen=True, kw_only=True):
    """State of a stream. `generation` is the id that setup gave it when it created it."""

    stream: str
    generation: str
    messages: int
    first_seq: int
    last_seq: int
    #: When the server answered, by its own clock: compare it only with `stored_ms` of records.
    now_ms: int | None = None


def instant_ms(instant: datetime | None) -> int | None:
    """An instant of the server's clock in milliseconds since the epoch."""
    return None if instant is None else int(instant.timestamp() * 1000)
