"""Every message has a committed golden sample that today's code still reads as the same value.

A golden file is what an older process may have left in a stream: if decoding it changes, running
clusters break. `python -m tests.shared.contracts.test_messages` writes the files that are missing,
and only those.
"""

import pathlib

import msgspec
import pytest

from shared.contracts import cluster, codec, decisions, observing, outcomes, questions, verdicts
from tests.shared.contracts.samples import SAMPLES

GOLDEN = pathlib.Path(__file__).parent / "golden"
MODULES = (questions, cluster, decisions, observing, outcomes, verdicts)


def _tag(message: msgspec.Struct | type[msgspec.Struct]) -> str:
    tag = message.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def _name(message: msgspec.Struct) -> str:
    """Its tag, and which sample of that tag it is when there are several."""
    place = [one for one in SAMPLES if type(one) is type(message)].index(message)
    return f"{_tag(message)}.{place + 1}" if place else _tag(message)


def _golden(message: msgspec.Struct) -> pathlib.Path:
    return GOLDEN / f"{_name(message)}.hex"


def _tagged_types() -> list[type[msgspec.Struct]]:
    return [
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, msgspec.Struct)
        and value.__module__ == module.__name__
        and value.__struct_config__.tag is not None
    ]


@pytest.mark.parametrize("sample", SAMPLES, ids=_name)
def test_a_golden_message_is_read_as_the_value_it_was_written_from(sample: msgspec.Struct) -> None:
    written = bytes.fromhex(_golden(sample).read_text(encoding="ascii"))
    assert msgspec.msgpack.decode(written, type=type(sample)) == sample


@pytest.mark.parametrize("sample", SAMPLES, ids=_name)
def test_an_unknown_field_of_a_newer_writer_is_ignored(sample: msgspec.Struct) -> None:
    newer = msgspec.msgpack.decode(codec.encode(sample)) | {"a_field_of_tomorrow": 1}
    assert msgspec.msgpack.decode(codec.encode(newer), type=type(sample)) == sample


def test_every_message_type_has_a_sample() -> None:
    sampled = {type(sample) for sample in SAMPLES}
    assert [kind.__name__ for kind in _tagged_types() if kind not in sampled] == []


def test_tags_are_unique() -> None:
    tags = [_tag(kind) for kind in _tagged_types()]
    assert sorted(tags) == sorted(set(tags))


def test_an_unknown_kind_of_record_is_an_error_not_a_gap() -> None:
    record = codec.encode({"type": "made.tomorrow"})
    with pytest.raises(msgspec.ValidationError):
        codec.decode_cluster(record)
    with pytest.raises(msgspec.ValidationError):
        codec.decode_decision_record(record)


def test_a_pod_on_the_wire_takes_a_few_hundred_bytes() -> None:
    sample = next(s for s in SAMPLES if isinstance(s, cluster.PodChanges))
    assert len(codec.encode(sample.changed[0])) < 700


def main() -> None:
    """Write the golden files that do not exist yet."""
    GOLDEN.mkdir(exist_ok=True)
    for sample in SAMPLES:
        path = _golden(sample)
        if not path.exists():
            path.write_text(codec.encode(sample).hex() + "\n", encoding="ascii")


if __name__ == "__main__":
    main()


@pytest.mark.parametrize(
    "garbage",
    [
        codec.encode({"type": "x" * 100_000}),
        b"\x91" * 100_000 + b"\xc0",
        codec.encode({"type": "x"})[:-1] + b"\xff",
        b"",
    ],
    ids=["a tag as long as a book", "nested beyond reading", "no UTF-8", "nothing"],
)
def test_garbage_is_refused_in_a_line(garbage: bytes) -> None:
    """Found by fuzzing: two of these ended the reader's process."""
    for decode in (codec.decode_cluster, codec.decode_decision_record, codec.decode_verdict):
        with pytest.raises(msgspec.DecodeError) as refused:
            decode(garbage)
        assert len(str(refused.value)) < 600
