"""Clients of the API service: users that poll, and watches.

In a process of their own (`python -m bench.api_clients`) watches decrypt and count what they read,
and nothing more: so the times of the users' lists are not those of a busy client. Watches that are
not read are sockets of which nothing is received after the request.
"""

import argparse
import asyncio
import contextlib
import math
import socket
import ssl
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Self, cast

import aiohttp
import msgspec
import uvloop
from typing_extensions import override

from bench.child_process import ChildProcess, child_process

#: Users look again as a person or a script does.
POLL_S: Final = 10.0
NAMESPACES: Final = 200
PATH: Final = "/apis/visibility.tutti.dev/v1alpha1"
_LAG_EVERY_S: Final = 0.005
#: Of a client that does not read, the kernel takes little on its behalf.
_RECEIVE_BYTES: Final = 64 * 1024
_START_S: Final = 60.0
#: The end of an event; text in JSON has no line ends.
_EVENT_END: Final = b"}\n"


def team(n: int) -> str:
    """The namespace of a gang, or of a user, by its number."""
    return f"team-{n % NAMESPACES}"


def insecure_context() -> ssl.SSLContext:
    """TLS without a check of the server's name, which is no part of what is measured."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def percentile(values: list[float], percent: float) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


class EventLoopLag:
    """How late this process's event loop runs what is due, while it is entered.

    The CPU time of the loop's thread until then shows what the process itself did, also while
    other processes of the machine take its cores.
    """

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._cpu_seconds: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._sample(), name="lag")
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    def take_p99_ms(self) -> float:
        """p99 since the last call."""
        seconds, self._seconds = self._seconds or [0.0], []
        return round(percentile(seconds, 99) * 1000, 1)

    def take_cpu_p99_ms(self) -> float:
        """p99 of CPU time since the last call."""
        seconds, self._cpu_seconds = self._cpu_seconds or [0.0], []
        return round(percentile(seconds, 99) * 1000, 1)

    async def _sample(self) -> None:
        while True:
            due_s, cpu_s = time.monotonic() + _LAG_EVERY_S, time.thread_time()
            await asyncio.sleep(_LAG_EVERY_S)
            self._seconds.append(max(0.0, time.monotonic() - due_s))
            self._cpu_seconds.append(time.thread_time() - cpu_s)


class Lists(msgspec.Struct, frozen=True):
    """What users saw in a span."""

    lists: int
    #: Lists that were refused: the server could not answer in time.
    refused: int
    p50_ms: float
    p99_ms: float


class Users:
    """Users that list the gangs of their namespace, each over a connection of its own."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session
        self._took_s: list[float] = []
        self._refused = 0

    def take(self) -> Lists:
        """What users saw since the last call."""
        took_s, self._took_s = self._took_s or [0.0], []
        refused, self._refused = self._refused, 0
        return Lists(
            lists=len(took_s),
            refused=refused,
            p50_ms=round(statistics.median(took_s) * 1000, 1),
            p99_ms=round(percentile(took_s, 99) * 1000, 1),
        )

    async def poll(self, count: int, seconds: float = math.inf) -> None:
        """So many users poll, evenly spread, for some seconds."""
        until_s = time.monotonic() + seconds
        await asyncio.gather(*(self._user(n, n / count * POLL_S, until_s) for n in range(count)))

    async def _user(self, n: int, delay_s: float, until_s: float) -> None:
        path = f"{self._url}{PATH}/namespaces/{team(n)}/gangs?limit=500"
        headers = {"Authorization": f"Bearer {team(n)}"}
        await asyncio.sleep(delay_s)
        while (began_s := time.monotonic()) < until_s:
            async with self._session.get(path, headers=headers) as response:
                await response.read()
            if response.status == 200:
                self._took_s.append(time.monotonic() - began_s)
            else:
                self._refused += 1
            await asyncio.sleep(max(0.0, POLL_S - (time.monotonic() - began_s)))

    async def version(self, admin: str) -> str:
        """The version of a list of all namespaces."""
        headers = {"Authorization": f"Bearer {admin}"}
        async with self._session.get(f"{self._url}{PATH}/gangs?limit=1", headers=headers) as found:
            return str((await found.json())["metadata"]["resourceVersion"])


@asynccontextmanager
async def users_of(port: int) -> AsyncIterator[Users]:
    """Users of a server on this machine."""
    connector = aiohttp.TCPConnector(ssl=insecure_context(), limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Users(f"https://127.0.0.1:{port}", session)


class ClientProcess:
    """A process of clients."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    async def count(self) -> dict[str, Any]:
        """What it counted: of watches the `events` so far, those that are `open` and, of the time
        since the last call, `lag p99 ms`; of users their `Lists`.
        """
        self._process.stdin.write(b"\n")
        line = await self._process.stdout.readline()
        found: dict[str, Any] = msgspec.json.decode(line)
        return found


@asynccontextmanager
async def watches_of(
    port: int, count: int, admins: tuple[str, ...], version: str, *, read: bool = True
) -> AsyncIterator[ClientProcess]:
    """So many watches of all gangs from a version on, all open, for the length of the block."""
    flags = (f"--watches={count}", f"--admins={','.join(admins)}", f"--version={version}")
    async with _a_process(port, *flags, *(() if read else ("--unread",))) as watches:
        async with asyncio.timeout(_START_S):
            assert (await watches.count())["open"] == count
        yield watches


@asynccontextmanager
async def polling_users(port: int, count: int) -> AsyncIterator[ClientProcess]:
    """A process of so many users that poll, for the length of the block."""
    async with _a_process(port, f"--users={count}") as users:
        yield users


@asynccontextmanager
async def _a_process(port: int, *flags: str) -> AsyncIterator[ClientProcess]:
    async with child_process("bench.api_clients", f"--port={port}", *flags) as process:
        yield ClientProcess(process)


# What the process does.


class _Reader(asyncio.Protocol):
    """One watch."""

    def __init__(self, request: bytes, begun: asyncio.Future[None]) -> None:
        self._request = request
        self._begun = begun
        self.events = 0
        self.open = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        cast("asyncio.Transport", transport).write(self._request)

    @override
    def data_received(self, data: bytes) -> None:
        if not self._begun.done():
            assert data.startswith(b"HTTP/1.1 200"), data[:300]
            self.open = True
            self._begun.set_result(None)
        self.events += data.count(_EVENT_END)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False


def _request(admin: str, version: str) -> bytes:
    return (
        f"GET {PATH}/gangs?watch=1&resourceVersion={version} HTTP/1.1\r\n"
        f"Host: 127.0.0.1\r\nAuthorization: Bearer {admin}\r\n\r\n"
    ).encode()


async def _read(port: int, requests: list[bytes]) -> None:
    """Open and read; each line of standard input is answered with the counts."""
    loop = asyncio.get_running_loop()
    readers: list[_Reader] = []
    context = insecure_context()
    for request in requests:
        begun = loop.create_future()
        _, reader = await loop.create_connection(
            lambda request=request, begun=begun: _Reader(request, begun),  # type: ignore[misc]  # mypy cannot infer the defaults
            "127.0.0.1",
            port,
            ssl=context,
        )
        await begun
        readers.append(reader)
    async with EventLoopLag() as lag:
        await asyncio.sleep(0.1)
        while await asyncio.to_thread(sys.stdin.readline):
            counts = {
                "events": sum(one.events for one in readers),
                "open": sum(one.open for one in readers),
                "lag p99 ms": lag.take_p99_ms(),
            }
            sys.stdout.write(f"{msgspec.json.encode(counts).decode()}\n")
            sys.stdout.flush()


def _hold(port: int, requests: list[bytes]) -> None:
    """Open and do not read."""
    with contextlib.ExitStack() as opened:
        context = insecure_context()
        for request in requests:
            plain = opened.enter_context(socket.socket())
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
            plain.connect(("127.0.0.1", port))
            connection = opened.enter_context(context.wrap_socket(plain))
            connection.sendall(request)
            assert connection.recv(12) == b"HTTP/1.1 200"
        while sys.stdin.readline():
            sys.stdout.write(f'{{"events": 0, "open": {len(requests)}, "lag p99 ms": 0}}\n')
            sys.stdout.flush()


async def _poll(port: int, count: int) -> None:
    """Poll; each line of standard input is answered with what was seen since the last one."""
    async with users_of(port) as users:
        polling = asyncio.create_task(users.poll(count), name="polling")
        while await asyncio.to_thread(sys.stdin.readline):
            sys.stdout.write(f"{msgspec.json.encode(users.take()).decode()}\n")
            sys.stdout.flush()
        polling.cancel()


def main() -> None:
    """Be users or watches until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m bench.api_clients", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--users", type=int, default=0)
    parser.add_argument("--watches", type=int, default=0)
    parser.add_argument("--admins", default="")
    parser.add_argument("--version", default="")
    parser.add_argument("--unread", action="store_true")
    given = parser.parse_args()
    admins = given.admins.split(",")
    requests = [_request(admins[n % len(admins)], given.version) for n in range(given.watches)]
    if given.users:
        uvloop.run(_poll(given.port, given.users))
    elif given.unread:
        _hold(given.port, requests)
    else:
        uvloop.run(_read(given.port, requests))


if __name__ == "__main__":
    main()
