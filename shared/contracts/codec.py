"""Encoding of messages: msgpack, one encoder and one decoder per family, made once and reused.

Unknown fields are ignored, so that an older reader understands a newer writer; an unknown tag is an
error, because a reader of a log must not skip a kind of record it does not know.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from shared.contracts.cluster import ClusterRecord, SnapshotAnswer, SnapshotRequest
from shared.contracts.decisions import Act, DecisionRecord, Note
from shared.contracts.observing import Observation, ObservationRequest
from shared.contracts.outcomes import OutcomeRecord
from shared.contracts.questions import (
    EstimatesAnswer,
    EstimatesRequest,
    FitAnswer,
    FitRequest,
    FragmentationAnswer,
    FragmentationRequest,
    LedgerAnswer,
    LedgerRequest,
    RequestRefused,
    ServiceStatus,
    StatusRequest,
    SuggestionsAnswer,
    SuggestionsRequest,
)
from shared.contracts.verdicts import Verdict
from shared.model.objects import Shape
from shared.model.terms import Resources

T = TypeVar("T")

_REASON_CHARACTERS_MAX: Final = 500

_encoder: Final = msgspec.msgpack.Encoder()
encode: Final = _encoder.encode


def _reader(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """A decoder of one family that raises msgspec.DecodeError for every message it cannot read,
    also for one that is nested too deep or is not UTF-8: no message may end a process.
    """

    def read(message: bytes) -> T:
        try:
            return decode(message)
        except RecursionError:
            raise msgspec.DecodeError("nested too deep") from None
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(str(error)) from None
        except msgspec.DecodeError as error:
            # An unknown tag is repeated in the message: it may be as long as a record.
            if len(str(error)) <= _REASON_CHARACTERS_MAX:
                raise
            raise type(error)(f"{str(error)[:_REASON_CHARACTERS_MAX]}…") from None

    return read


decode_cluster: Final = _reader(msgspec.msgpack.Decoder(ClusterRecord).decode)
decode_act: Final = _reader(msgspec.msgpack.Decoder(Act).decode)
decode_act_or_note: Final = _reader(msgspec.msgpack.Decoder(Act | Note).decode)
decode_decision_record: Final = _reader(msgspec.msgpack.Decoder(DecisionRecord).decode)
decode_outcome: Final = _reader(msgspec.msgpack.Decoder(OutcomeRecord).decode)
decode_verdict: Final = _reader(msgspec.msgpack.Decoder(Verdict).decode)
decode_snapshot_request: Final = _reader(msgspec.msgpack.Decoder(SnapshotRequest).decode)
decode_snapshot_answer: Final = _reader(msgspec.msgpack.Decoder(SnapshotAnswer).decode)
decode_status_request: Final = _reader(msgspec.msgpack.Decoder(StatusRequest).decode)
decode_status: Final = _reader(msgspec.msgpack.Decoder(ServiceStatus).decode)
decode_fit_request: Final = _reader(msgspec.msgpack.Decoder(FitRequest).decode)
decode_fit_answer: Final = _reader(msgspec.msgpack.Decoder(FitAnswer).decode)
decode_fragmentation_request: Final = _reader(msgspec.msgpack.Decoder(FragmentationRequest).decode)
decode_fragmentation_answer: Final = _reader(msgspec.msgpack.Decoder(FragmentationAnswer).decode)
decode_estimates_request: Final = _reader(msgspec.msgpack.Decoder(EstimatesRequest).decode)
decode_estimates_answer: Final = _reader(msgspec.msgpack.Decoder(EstimatesAnswer).decode)
decode_suggestions_request: Final = _reader(msgspec.msgpack.Decoder(SuggestionsRequest).decode)
decode_suggestions_answer: Final = _reader(msgspec.msgpack.Decoder(SuggestionsAnswer).decode)
decode_ledger_request: Final = _reader(msgspec.msgpack.Decoder(LedgerRequest).decode)
decode_ledger_answer: Final = _reader(msgspec.msgpack.Decoder(LedgerAnswer).decode)
decode_request_refused: Final = _reader(msgspec.msgpack.Decoder(RequestRefused).decode)
decode_observation_request: Final = _reader(msgspec.msgpack.Decoder(ObservationRequest).decode)
decode_observation: Final = _reader(msgspec.msgpack.Decoder(Observation).decode)
decode_shape: Final = _reader(msgspec.msgpack.Decoder(Shape).decode)


#: Distinct shapes are remembered; a cluster has hundreds.
@lru_cache(maxsize=20_000)
def requests_of(shape: bytes) -> Resources:
    """The requests of a pod with this shape, in the model's units."""
    return decode_shape(shape).requests
