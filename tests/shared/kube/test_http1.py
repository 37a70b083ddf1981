"""Answers as bytes: whole, in pieces, and wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kube.errors import MalformedAnswer
from shared.kube.http1 import ANSWER_BYTES_MAX, Answer, encode_post, parse_answer

PLAIN = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\ncontent-length: 5\r\n\r\nhello"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\na: b\r\n\r\n"
CHUNKED = (
    b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\nRetry-After: 3\r\n\r\n"
    b"3;x=y\r\nhel\r\nA\r\nlo, world!\r\n0\r\n\r\n"
)


def test_a_request_is_a_line_headers_and_a_body() -> None:
    assert encode_post(b"/x?y=1", b"Host: h\r\n", b"{}") == (
        b"POST /x?y=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize(
    ("data", "status", "body", "keeps_alive"),
    [
        (PLAIN, 201, b"hello", True),
        (CHUNKED, 409, b"hello, world!", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
        (b"HTTP/1.1 500 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 500, b"", False),
        (INTERIM + PLAIN, 201, b"hello", True),
    ],
    ids=["with a length", "in chunks", "without a body", "the last", "after interim answers"],
)
def test_an_answer_is_read_whole(data: bytes, status: int, body: bytes, keeps_alive: bool) -> None:
    answer = parse_answer(data)
    assert answer is not None
    assert (answer.status, answer.body, answer.keeps_alive) == (status, body, keeps_alive)


@pytest.mark.parametrize("data", [PLAIN, CHUNKED])
def test_no_piece_of_an_answer_passes_for_the_whole(data: bytes) -> None:
    assert [parse_answer(data[:end]) for end in range(len(data))] == [None] * len(data)


def test_headers_are_found_in_any_case() -> None:
    answer = parse_answer(CHUNKED)
    assert answer is not None
    assert answer.headers()["retry-after"] == "3"


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 2xx OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore",
        b"x" * (ANSWER_BYTES_MAX + 1),
    ],
)
def test_what_is_no_answer_that_we_understand_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        parse_answer(data)


@given(data=st.binary(max_size=300), at=st.integers(0, len(CHUNKED)))
def test_any_bytes_are_an_answer_a_beginning_or_malformed(data: bytes, at: int) -> None:
    for text in (data, CHUNKED[:at] + data, PLAIN[: at % len(PLAIN)] + data):
        try:
            answer = parse_answer(text)
        except MalformedAnswer:
            continue
        assert answer is None or isinstance(answer, Answer)
