"""Load on the API service: `python -m bench.api [--users N] [--watches N] [--seconds S]`.

One process has the service's server with 5,000 nodes and 10,000 gangs of four pods in 200
namespaces, and changes 100 gangs a second (`bench.api_server`). This process has users that list
the gangs of their namespace every ten seconds, over a connection of their own; a third one has
watches of all gangs (`bench.api_clients`). It prints, from one run, the times of lists without
watches, with them, and with further ones that are not read; the server's CPU and memory; how late
each process's event loop ran what was due, and the CPU time that the server's used until then,
which does not depend on other processes of the machine.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import psutil
import uvloop

from bench.api_clients import POLL_S, ClientProcess, EventLoopLag, Users, users_of, watches_of
from bench.api_reviews import ADMINS
from bench.child_process import ChildProcess, child_process

#: p99 of a list, with watches.
_TARGET_MS: Final = 100.0
#: Watches that are not read must be dropped in this time after the measurement.
_DROPPED_MAX_S: Final = 120.0


class Server:
    """The server's process."""

    def __init__(self, process: ChildProcess, port: int) -> None:
        self._process = process
        self.port = port
        self._costs = psutil.Process(process.pid)
        self._asking = asyncio.Lock()

    @property
    def cpu_s(self) -> float:
        """CPU time so far."""
        return sum(self._costs.cpu_times()[:2])

    @property
    def waited_s(self) -> float:
        """How long its event loop could have run, and had no core, so far."""
        text = Path(f"/proc/{self._process.pid}/schedstat").read_text()
        return int(text.split()[1]) / 1e9

    @property
    def memory_mib(self) -> float:
        """Memory now."""
        return round(self._costs.memory_info().rss / (1 << 20), 1)

    async def change(self) -> None:
        """Begin the changes."""
        await self._ask("change")

    async def watches(self) -> int:
        """Watches that are open."""
        return int(await self._ask("watches"))

    async def lag_p99_ms(self) -> float:
        """How late its event loop ran what was due since the last call."""
        return await self._ask("lag")

    async def busy_p99_ms(self) -> float:
        """The CPU time that it used until then."""
        return await self._ask("busy")

    async def _ask(self, command: str) -> float:
        async with self._asking:
            self._process.stdin.write(f"{command}\n".encode())
            return float(await self._process.stdout.readline())


@asynccontextmanager
async def a_server() -> AsyncIterator[Server]:
    """The server's process, for the length of the block."""
    async with child_process("bench.api_server") as process:
        yield Server(process, int(await process.stdout.readline()))


async def measure(
    server: Server,
    users: Users,
    arguments: argparse.Namespace,
    watches: ClientProcess | None = None,
) -> dict[str, Any]:
    """Poll for some seconds; times in milliseconds, CPU in percent of a core."""
    await server.lag_p99_ms()
    await server.busy_p99_ms()
    events = 0 if watches is None else (await watches.count())["events"]
    cpu_s, waited_s, began_s = server.cpu_s, server.waited_s, time.monotonic()
    users.take()
    async with EventLoopLag() as lag:
        await users.poll(arguments.users, arguments.seconds)
        lists = users.take()
        lag_ms = lag.take_p99_ms()
    took_s, used_s = time.monotonic() - began_s, server.cpu_s - cpu_s
    waited_s = server.waited_s - waited_s
    found: dict[str, Any] = {
        "lists": lists.lists,
        "refused": lists.refused,
        "p50 ms": lists.p50_ms,
        "p99 ms": lists.p99_ms,
        "server cpu %": round(used_s / took_s * 100),
        "server without a core %": round(waited_s / took_s * 100),
        "server MiB": server.memory_mib,
        "server lag p99 ms": await server.lag_p99_ms(),
        "server busy p99 ms": await server.busy_p99_ms(),
        "users lag p99 ms": lag_ms,
    }
    if watches is not None:
        counts = await watches.count()
        found["events a second"] = round((counts["events"] - events) / took_s)
        found["watches lag p99 ms"] = counts["lag p99 ms"]
    return found


async def run(arguments: argparse.Namespace) -> bool:
    """All measurements of one run; whether the target was reached."""
    async with a_server() as server, users_of(server.port) as users:
        # Connections and reviews of the first requests are not what is measured.
        await users.poll(arguments.users, POLL_S)
        users.take()
        alone = await measure(server, users, arguments)
        _report(f"{arguments.users} users", alone)
        version = await users.version(ADMINS[0])
        async with watches_of(server.port, arguments.watches, ADMINS, version) as watches:
            await server.change()
            both = await measure(server, users, arguments, watches)
            _report(f"and {arguments.watches} watches", both)
            if arguments.unread:
                found = await _measure_unread(server, users, arguments, watches)
                _report(f"and {arguments.unread} watches that are not read", found)
    ratio = both["p99 ms"] / alone["p99 ms"]
    sys.stdout.write(f"p99 with {arguments.watches} watches / without: {ratio:.2f}\n")
    return bool(both["p99 ms"] < _TARGET_MS)


async def _measure_unread(
    server: Server, users: Users, arguments: argparse.Namespace, watches: ClientProcess
) -> dict[str, Any]:
    """As `measure`, and after how many seconds the watches that are not read were dropped."""
    version = await users.version(ADMINS[0])
    count = arguments.unread
    async with watches_of(server.port, count, ADMINS, version, read=False):
        dropping = asyncio.create_task(_dropped_s(server, arguments.watches), name="dropping")
        found = await measure(server, users, arguments, watches)
        async with asyncio.timeout(_DROPPED_MAX_S):
            return {**found, "dropped after s": await dropping}


async def _dropped_s(server: Server, left: int) -> float:
    began_s = time.monotonic()
    while await server.watches() > left:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.2)
    return round(time.monotonic() - began_s, 1)


def _report(title: str, found: dict[str, Any]) -> None:
    sys.stdout.write(f"{title}: {json.dumps(found)}\n")
    sys.stdout.flush()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.api", description=__doc__)
    parser.add_argument("--users", type=int, default=1_000, help="users that poll")
    parser.add_argument("--watches", type=int, default=200, help="watches of all gangs")
    parser.add_argument("--unread", type=int, default=50, help="watches that are not read")
    parser.add_argument("--seconds", type=float, default=30.0, help="time of each measurement")
    parser.add_argument("--strict", action="store_true", help="status 1 if the target is missed")
    arguments = parser.parse_args()
    reached = uvloop.run(run(arguments))
    sys.exit(0 if reached or not arguments.strict else 1)


if __name__ == "__main__":
    main()
