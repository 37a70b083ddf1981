"""Tells what no planner can have written into DECISIONS from what one has.

Whoever asks a NATS server names the subject for the answer, and the server's answers are not held
to the asker's rights. So who holds any service's key can have an answer stored in DECISIONS: JSON
of JetStream's API, an empty message, or a copy of another stream's record. It cannot choose the
words, and what it has stored orders nothing: a stray. ADR 0044 says how it is stepped over.

A tagged record whose tag nobody here knows is no stray: a newer version may have written it.
"""

from typing import Final, get_args

import msgspec

from shared.contracts.cluster import ClusterRecord
from shared.contracts.decisions import DecisionRecord
from shared.contracts.outcomes import OutcomeRecord
from shared.contracts.verdicts import Verdict


class _Tagged(msgspec.Struct, frozen=True, gc=False):
    """What every record of ours has."""

    type: str


def _tags(*kinds: type[msgspec.Struct]) -> frozenset[object]:
    return frozenset(kind.__struct_config__.tag for kind in kinds)


_OWN: Final = _tags(*get_args(DecisionRecord))
_FOREIGN: Final = _tags(*get_args(ClusterRecord), *get_args(OutcomeRecord), Verdict) - _OWN
_read_tag: Final = msgspec.msgpack.Decoder(_Tagged).decode


def is_stray(payload: bytes) -> bool:
    """Whether a message in DECISIONS is no record of it, in this version or any other."""
    try:
        return _read_tag(payload).type in _FOREIGN
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
