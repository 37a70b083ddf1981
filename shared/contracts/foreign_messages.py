"""Distinguishes foreign messages in a stream: messages that none of its writers can have written.

A client of a NATS server names the subject for the answer, and the client's permissions do not
apply to the server's answer. So a client with any service's key can have an answer stored in any
stream: JSON of JetStream's API, an empty message, or a copy of another stream's record. It cannot
choose the content. Readers step over such messages (ADR 0044).

A tagged record with an unknown tag is no foreign message: a newer version may have written it.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar, get_args

import msgspec

from shared.contracts import subjects
from shared.contracts.cluster import ClusterRecord
from shared.contracts.decisions import DecisionRecord
from shared.contracts.outcomes import OutcomeRecord
from shared.contracts.verdicts import Verdict

#: Called with a foreign message: its stream, its sequence, its subject, its content.
OnForeign = Callable[[str, int, str, bytes], None]

T = TypeVar("T")


class _Tagged(msgspec.Struct, frozen=True, gc=False):
    """The field common to all records."""

    type: str


def _tags(*kinds: type[msgspec.Struct]) -> frozenset[object]:
    return frozenset(kind.__struct_config__.tag for kind in kinds)


_OWN: Final[Mapping[str, frozenset[object]]] = {
    subjects.CLUSTER: _tags(*get_args(ClusterRecord)),
    subjects.DECISIONS: _tags(*get_args(DecisionRecord)),
    subjects.OUTCOMES: _tags(*get_args(OutcomeRecord)),
    subjects.VERDICTS: _tags(Verdict),
}
_KNOWN: Final[frozenset[object]] = frozenset[object]().union(*_OWN.values())
_read_tag: Final = msgspec.msgpack.Decoder(_Tagged).decode


def is_foreign(stream: str, payload: bytes) -> bool:
    """Whether a message in `stream` can be no record of it, in this version or any other."""
    try:
        tag = _read_tag(payload).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return tag in _KNOWN and tag not in _OWN[stream]


def unless_foreign(stream: str, decode: Callable[[bytes], T]) -> Callable[[bytes], T | None]:
    """A decoder of a stream's messages that returns None for a foreign message, and raises like
    `decode` for any other message that it cannot read. Records cost nothing extra.
    """

    def read(payload: bytes) -> T | None:
        try:
            return decode(payload)
        except msgspec.MsgspecError:
            if is_foreign(stream, payload):
                return None
            raise

    return read
