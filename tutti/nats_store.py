"""Whether a nats-server can store messages, and whether a restart would help.

A server whose write failed (full disk, read-only or lost volume) keeps the error until it restarts:
publishers get no acknowledgement, even when there is space again (tested with nats-server 2.15.1).
A restart helps only once its folder can be written.

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

#: The server answers within a millisecond, unless it waits for its disk.
_ANSWER_S: Final = 2.0
_ANSWER_BYTES_MAX: Final = 1 << 20
_OK: Final = 200
#: More bytes than a new block of a stream and its index need.
_PROBE_BYTES: Final = 1 << 20
_PROBE_NAME: Final = ".tutti-write-probe"
#: Part of an error's text: the store of a stream or consumer has failed.
_STORE_FAILED: Final = " write error"
#: Type of an error of JetStream as a whole, and part of its text if JetStream has been disabled.
#: Otherwise the server has not joined its cluster yet: a restart would only delay that.
_JETSTREAM: Final = "JETSTREAM"
_DISABLED: Final = "not enabled"


class _Problem(msgspec.Struct, frozen=True):
    type: str = ""
    error: str = ""


class _Health(msgspec.Struct, frozen=True):
    status: str = ""
    errors: tuple[_Problem, ...] = ()


class NoHealth(Exception):
    """The server does not answer on its monitoring port; the message has the reason."""


async def store_problem(monitor_url: str) -> str:
    """Why the server stores nothing until it restarts; "" if it can store. Raises NoHealth."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            status, body = await _get(monitor_url, "/healthz?details=true")
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
        raise NoHealth(str(error) or type(error).__name__) from None
    return "" if status == _OK else read_problem(body)


def read_problem(body: bytes) -> str:
    """The first error in a `/healthz` answer that only a restart clears; "" if there is none."""
    try:
        health = msgspec.json.decode(body, type=_Health)
    except msgspec.MsgspecError:
        return ""
    for problem in health.errors:
        disabled = problem.type == _JETSTREAM and _DISABLED in problem.error
        if disabled or _STORE_FAILED in problem.error:
            return problem.error
    return ""


def write_problem(folder: Path) -> str:
    """Why no file can be written in `folder`; "" if one can. Blocks."""
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
