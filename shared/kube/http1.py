"""The part of HTTP/1.1 that small POSTs and their answers need: pure functions over bytes.

Only for the binding path (`post_pool`): there, a general client costs more CPU than TLS and the
socket together. Features that an API server does not use there (answers that end with the
connection, trailers, upgrades) are refused.
"""

from typing import Final

import msgspec
from multidict import CIMultiDict

from shared.kube.errors import MalformedAnswer

#: A Status is below a kilobyte; a longer answer than this is none.
ANSWER_BYTES_MAX: Final = 1024 * 1024

_END_OF_HEAD: Final = b"\r\n\r\n"


class Answer(msgspec.Struct, frozen=True, gc=False):
    """One whole answer."""

    status: int
    #: Status line and header lines, without the empty line.
    head: bytes
    body: bytes
    #: Whether the connection may carry another request.
    keeps_alive: bool

    def headers(self) -> CIMultiDict[str]:
        """The header lines, parsed on demand: no caller reads those of a success."""
        headers: CIMultiDict[str] = CIMultiDict()
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            name, _, value = line.partition(":")
            headers.add(name, value.strip())
        return headers


def encode_post(target: bytes, headers: bytes, body: bytes) -> bytes:
    """A whole POST request. `target` is the percent-encoded path and query; each of the header
    lines has its line end, and Content-Length is added.
    """
    return b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (
        target,
        headers,
        len(body),
        body,
    )


def parse_answer(data: bytes) -> Answer | None:
    """The answer that `data` is, or None when more bytes are needed.

    Raises:
        MalformedAnswer: It is no HTTP/1.1 answer, has no known length, is too long, or something
            follows it.
    """
    if len(data) > ANSWER_BYTES_MAX:
        raise MalformedAnswer(f"an answer is longer than {ANSWER_BYTES_MAX} bytes")
    at = 0
    while True:
        end = data.find(_END_OF_HEAD, at)
        if end < 0:
            return None
        head = data[at:end]
        at = end + len(_END_OF_HEAD)
        status = _status(head)
        if status >= 200:  # Below it is an interim answer; the real one follows.
            break
    lower = head.lower()
    body = _body(lower, data[at:], status)
    if body is None:
        return None
    return Answer(status, head, body, keeps_alive=b"\r\nconnection: close" not in lower)


def _status(head: bytes) -> int:
    code = head[9:12]
    if not head.startswith(b"HTTP/1.1 ") or not code.isdigit():
        raise MalformedAnswer(f"no HTTP/1.1 answer: {head[:64]!r}")
    return int(code)


def _body(lower: bytes, rest: bytes, status: int) -> bytes | None:
    at = lower.find(b"\r\ncontent-length:")
    if at >= 0:
        text = lower[at + 17 :].split(b"\r\n", 1)[0].strip()
        if not text.isdigit():
            raise MalformedAnswer(f"Content-Length is no number: {text[:32]!r}")
        length = int(text)
        if len(rest) < length:
            return None
        if len(rest) > length:
            raise MalformedAnswer("something follows the answer")
        return rest
    if b"\r\ntransfer-encoding: chunked" in lower:
        return _joined_chunks(rest)
    if status in {204, 304}:
        return b""
    raise MalformedAnswer("an answer without a length")


def _joined_chunks(rest: bytes) -> bytes | None:
    parts: list[bytes] = []
    at = 0
    while True:
        line_end = rest.find(b"\r\n", at)
        if line_end < 0:
            return None
        size_text = rest[at:line_end].split(b";", 1)[0].strip()
        try:
            size = int(size_text, 16)
        except ValueError:
            raise MalformedAnswer(f"a chunk's size is no number: {size_text[:32]!r}") from None
        start = line_end + 2
        if len(rest) < start + size + 2:
            return None
        if rest[start + size : start + size + 2] != b"\r\n":
            raise MalformedAnswer("a chunk does not end where it says")
        if size == 0:
            if len(rest) > start + 2:
                raise MalformedAnswer("something follows the answer")
            return b"".join(parts)
        parts.append(rest[start : start + size])
        at = start + size + 2
