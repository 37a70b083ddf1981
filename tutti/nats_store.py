"""Whether a nats-server can store what is appended, and whether a restart would help it.

A server whose write failed (disk full, read-only or lost volume) remembers the error for as long as
it lives: publishers get no acknowledgement, also when there is space again. Only a restart ends
that (tried with nats-server 2.15.1). A restart while nothing can be written does not help: so it is
due when the server has such an error *and* its folder takes a file.

Read from the server's monitoring port: `/healthz?details=true`. The probes that nats-server
documents for Kubernetes, `js-enabled-only` and `js-server-only`, do not see this error.
"""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

#: It answers within a millisecond, unless it waits for its disk.
_ANSWER_S: Final = 2.0
_ANSWER_BYTES_MAX: Final = 1 << 20
_OK: Final = 200
#: More than a stream's next block and its index need to begin with.
_PROBE_BYTES: Final = 1 << 20
_PROBE_NAME: Final = ".tutti-write-probe"
#: In the text of an error: this stream's or consumer's store has failed.
_STORE_FAILED: Final = " write error"
#: The kind of an error that is about all of JetStream: it is switched off.
_JETSTREAM: Final = "JETSTREAM"


class _Problem(msgspec.Struct, frozen=True):
    type: str = ""
    error: str = ""


class _Health(msgspec.Struct, frozen=True):
    status: str = ""
    errors: tuple[_Problem, ...] = ()


class NoHealth(Exception):
    """The server does not answer on its monitoring port; the message says how."""


async def store_problem(monitor_url: str) -> str:
    """Why the server stores nothing more until it is restarted; "" while it stores.

    Raises:
        NoHealth: It does not answer.
    """
    try:
        async with asyncio.timeout(_ANSWER_S):
            status, body = await _get(monitor_url, "/healthz?details=true")
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
        raise NoHealth(str(error) or type(error).__name__) from None
    return "" if status == _OK else read_problem(body)


def read_problem(body: bytes) -> str:
    """The first error in a `/healthz` answer that only a restart ends; "" when there is none."""
    try:
        health = msgspec.json.decode(body, type=_Health)
    except msgspec.MsgspecError:
        return ""
    for problem in health.errors:
        if _STORE_FAILED in problem.error or problem.type == _JETSTREAM:
            return problem.error
    return ""


def write_problem(folder: Path) -> str:
    """Why no file can be written in `folder`; "" when one can. Blocks."""
    path = folder / _PROBE_NAME
    try:
        with path.open("wb", buffering=0) as probe:
            written = 0
            while written < _PROBE_BYTES:
                written += probe.write(bytes(_PROBE_BYTES - written))
            os.fsync(probe.fileno())
    except OSError as error:
        return f"{folder}: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
    return ""


async def _get(url: str, path: str) -> tuple[int, bytes]:
    """One HTTP/1.0 request: status and body."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {address.netloc}\r\n\r\n".encode())
        await writer.drain()
        status = int((await reader.readline()).split()[1])
        while (await reader.readline()).strip():
            pass
        return status, await reader.read(_ANSWER_BYTES_MAX)
    except IndexError:
        raise ValueError("no HTTP") from None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
