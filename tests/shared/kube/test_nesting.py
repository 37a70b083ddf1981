"""What is nested beyond all sense is cut out, and nothing else."""

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kube import decoding
from shared.kube.decoding import (
    DEPTH_MAX,
    TOKENS_MAX,
    Change,
    KindDecoder,
    Undecodable,
    shallow,
)
from shared.kube.objects import Pod

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('[]{}"\\,:a', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('[{"\\', max_size=2), inner, max_size=3)
    ),
    max_leaves=20,
)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@given(value=JSON)
def test_what_is_not_deep_stays_byte_for_byte(value: object) -> None:
    body = msgspec.json.encode(value)
    assert shallow(body) == body


def test_only_what_is_too_deep_becomes_null() -> None:
    body = f'{{"a":"]]","deep":{nested(DEPTH_MAX + 5)},"b":[{nested(2)},"["]}}'.encode()
    found = msgspec.json.decode(shallow(body))
    assert (found["a"], found["b"]) == ("]]", [[[]], "["])
    text = msgspec.json.encode(found["deep"])
    assert text.count(b"[") == DEPTH_MAX - 1
    assert b"[null]" in text


@pytest.mark.parametrize("levels", [500, 900, 100_000])
@pytest.mark.parametrize("node", ['"n-1"', "7"], ids=["fits", "does not fit"])
def test_a_deeply_nested_object_costs_neither_the_watch_nor_its_name(
    levels: int, node: str
) -> None:
    item = (
        f'{{"metadata":{{"name":"deep","uid":"u"}},"extra":{nested(levels)},'
        f'"spec":{{"nodeName":{node}}}}}'
    )
    decoder = KindDecoder(Pod)
    change = decoder.change(f'{{"type":"ADDED","object":{item}}}'.encode())
    assert isinstance(change, Change)
    assert change.object.metadata.name == "deep"
    page = decoder.page(f'{{"metadata":{{}},"items":[{item},{item}]}}'.encode())
    assert [one.metadata.uid for one in page.items] == ["u", "u"]
    assert decoder.object(item.encode()).metadata.name == "deep"


@pytest.mark.parametrize(
    "deep",
    [
        "[" * 500_000 + "]" * 500_000,
        '{"a":' * 200_000 + "1" + "}" * 200_000,
        nested(2_000) + ',"b":[' + "[]," * 400_000 + "[]]",
        nested(2_000) + ',"b":[' + '"",' * 400_000 + "[]]",
    ],
    ids=["lists", "maps", "many lists", "many texts"],
)
def test_a_watch_reads_only_the_beginning_of_what_is_long_and_too_deep(
    deep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_bytes: list[int] = []

    def counted(body: bytes) -> bytes:
        read_bytes.append(len(body))
        return shallow(body)

    monkeypatch.setattr(decoding, "shallow", counted)
    item = f'{{"metadata":{{"name":"deep","uid":"u"}},"extra":{deep},"spec":{{}}}}'
    change = KindDecoder(Pod).change(f'{{"type":"DELETED","object":{item}}}'.encode())
    assert isinstance(change, Change)
    found = KindDecoder(Pod).object(item.encode())
    assert sum(read_bytes) <= 2 * 10 * TOKENS_MAX, "no second pass over the whole text"
    for one in (change.object, found):
        assert isinstance(one, Undecodable), "fields after the beginning are not known"
        assert (one.metadata.name, one.metadata.uid) == ("deep", "u")
        assert f"more than {DEPTH_MAX} levels" in one.error
    assert change.type == "DELETED"


def test_metadata_are_read_whole_even_if_they_are_long_and_deep() -> None:
    notes = ",".join(f'"k{number}":"v"' for number in range(TOKENS_MAX))
    item = (
        f'{{"metadata":{{"annotations":{{{notes}}},"managedFields":{nested(100_000)},'
        f'"name":"deep","uid":"u"}},"spec":{nested(100_000)}}}'
    )
    found = KindDecoder(Pod).object(item.encode())
    assert isinstance(found, Undecodable)
    assert (found.metadata.name, found.metadata.uid) == ("deep", "u")


def test_what_is_deep_but_short_is_still_read_whole() -> None:
    item = f'{{"metadata":{{"name":"d"}},"extra":{nested(5_000)},"spec":{{"nodeName":"n"}}}}'
    found = KindDecoder(Pod).object(item.encode())
    assert isinstance(found, Pod)
    assert found.spec.node_name == "n"


def test_brackets_that_never_close_are_no_json() -> None:
    with pytest.raises(msgspec.DecodeError):
        KindDecoder(Pod).object(b"[" * 100_000)


@pytest.mark.parametrize("unit", [b'\\"', b'"', b"[", b'["', b"]", b'[\\"'])
def test_what_is_broken_takes_the_time_of_its_length_too(unit: bytes) -> None:
    began_s = time.process_time()
    shallow(b'"' + unit * 200_000)
    assert time.process_time() - began_s < 5
