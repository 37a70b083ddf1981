"""What is no record of DECISIONS is told from what is one, today's or a later version's."""

from typing import get_args

import msgspec
import pytest

from shared.contracts.codec import encode
from shared.contracts.decisions import DecisionRecord
from shared.contracts.strays import is_stray
from tests.shared.contracts.samples import SAMPLES

OWN = get_args(DecisionRecord)


@pytest.mark.parametrize("sample", [one for one in SAMPLES if isinstance(one, OWN)], ids=repr)
def test_what_planners_write_is_no_stray(sample: msgspec.Struct) -> None:
    assert not is_stray(encode(sample))


@pytest.mark.parametrize("tag", ["gang.verdict", "decision.outcome", "nodes.changed"])
def test_a_copy_of_another_streams_record_is_a_stray(tag: str) -> None:
    (first, *_) = [one for one in SAMPLES if one.__struct_config__.tag == tag]
    assert is_stray(encode(first))


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
def test_what_has_no_tag_is_a_stray(payload: bytes) -> None:
    assert is_stray(payload)


def test_a_tag_of_a_newer_version_is_no_stray() -> None:
    assert not is_stray(encode({"type": "gang.praised", "gang_id": "g"}))
