"""Foreign messages are distinguished from a stream's records, today's or a later version's."""

from typing import get_args

import msgspec
import pytest

from shared.contracts.cluster import ClusterRecord
from shared.contracts.codec import decode_outcome, encode
from shared.contracts.decisions import DecisionRecord
from shared.contracts.foreign_messages import is_foreign, unless_foreign
from shared.contracts.outcomes import OutcomeRecord
from shared.contracts.subjects import CLUSTER, DECISIONS, OUTCOMES, STREAMS, VERDICTS
from shared.contracts.verdicts import Verdict
from tests.shared.contracts.samples import SAMPLES

OWN = {
    CLUSTER: get_args(ClusterRecord),
    DECISIONS: get_args(DecisionRecord),
    OUTCOMES: get_args(OutcomeRecord),
    VERDICTS: (Verdict,),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_our_own_record_is_no_foreign_message(stream: str) -> None:
    samples = [one for one in SAMPLES if isinstance(one, OWN[stream])]
    assert samples
    assert not [one for one in samples if is_foreign(stream, encode(one))]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_copy_of_another_streams_record_is_a_foreign_message(stream: str) -> None:
    anybodys = tuple(kind for kinds in OWN.values() for kind in kinds)
    others = [
        one for one in SAMPLES if isinstance(one, anybodys) and not isinstance(one, OWN[stream])
    ]
    assert len(others) > 3
    assert not [one for one in others if not is_foreign(stream, encode(one))]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b'{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{}}',
        b"\x81",
        b"\xff" * 40,
        b"\x91" * 100_000 + b"\xc0",
        encode({"kind": "gang.decided"}),
        encode({"type": 7}),
        b"\x81\xa4type\xa2\xff\xfe",
    ],
    ids=["empty", "json", "cut off", "noise", "deep", "no tag", "number", "no text"],
)
def test_a_message_without_a_tag_is_a_foreign_message(payload: bytes) -> None:
    assert all(is_foreign(stream, payload) for stream in STREAMS)


def test_a_tag_of_a_newer_version_is_no_foreign_message() -> None:
    praise = encode({"type": "gang.praised", "gang_id": "g"})
    assert not any(is_foreign(stream, praise) for stream in STREAMS)


def test_a_decoder_skips_a_foreign_message_and_refuses_an_unknown_record() -> None:
    decode = unless_foreign(OUTCOMES, decode_outcome)
    assert decode(b"") is None
    with pytest.raises(msgspec.ValidationError):
        decode(encode({"type": "outcome.praised"}))
    with pytest.raises(msgspec.ValidationError):
        decode(encode({"type": "decision.outcome"}))
