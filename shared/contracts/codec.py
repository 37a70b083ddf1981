"""Encoding of messages: msgpack, one encoder and one decoder per family, made once and reused.

Unknown fields are ignored, so that an older reader understands a newer writer; an unknown tag is an
error, because whoever reads a log must not skip a kind of record it does not know.
"""

from typing import Final

import msgspec

from shared.contracts.asking import (
    FitAnswer,
    FitRequest,
    LedgerAnswer,
    LedgerRequest,
    ServiceStatus,
    StatusRequest,
)
from shared.contracts.cluster import ClusterRecord, SnapshotAnswer, SnapshotRequest
from shared.contracts.decisions import Act, DecisionRecord
from shared.contracts.observing import Observation, ObservationRequest
from shared.contracts.outcomes import OutcomeRecord
from shared.contracts.verdicts import Verdict
from shared.model.objects import Shape

_encoder: Final = msgspec.msgpack.Encoder()
encode: Final = _encoder.encode

decode_cluster: Final = msgspec.msgpack.Decoder(ClusterRecord).decode
decode_act: Final = msgspec.msgpack.Decoder(Act).decode
decode_decision_record: Final = msgspec.msgpack.Decoder(DecisionRecord).decode
decode_outcome: Final = msgspec.msgpack.Decoder(OutcomeRecord).decode
decode_verdict: Final = msgspec.msgpack.Decoder(Verdict).decode
decode_snapshot_request: Final = msgspec.msgpack.Decoder(SnapshotRequest).decode
decode_snapshot_answer: Final = msgspec.msgpack.Decoder(SnapshotAnswer).decode
decode_status_request: Final = msgspec.msgpack.Decoder(StatusRequest).decode
decode_status: Final = msgspec.msgpack.Decoder(ServiceStatus).decode
decode_fit_request: Final = msgspec.msgpack.Decoder(FitRequest).decode
decode_fit_answer: Final = msgspec.msgpack.Decoder(FitAnswer).decode
decode_ledger_request: Final = msgspec.msgpack.Decoder(LedgerRequest).decode
decode_ledger_answer: Final = msgspec.msgpack.Decoder(LedgerAnswer).decode
decode_observation_request: Final = msgspec.msgpack.Decoder(ObservationRequest).decode
decode_observation: Final = msgspec.msgpack.Decoder(Observation).decode
decode_shape: Final = msgspec.msgpack.Decoder(Shape).decode
