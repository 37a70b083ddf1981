"""``python -m bench.log_sync``: what syncing the log to disk costs, by policy.

Fenced appends one after the other, as the planner makes them (a decision of 20 pods is 2.5 KB), and
in batches as a cycle with many gangs does, on a nats-server with each sync policy in turn. Prints
ratios to the server's default, which syncs every two minutes.
"""

import argparse
import asyncio
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from shared.bus.connection import Bus
from shared.bus.fence import FencedLog
from shared.bus.setup import ensure_streams
from shared.contracts.subjects import DECISIONS, act
from tutti.nats_server import NatsServer, NatsServerSettings

POLICIES: Final = ("", "10s", "1s", "always")
RECORD_BYTES: Final = 2_500
BATCH: Final = 100
_WARM_UP: Final = 50


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of appends under one policy."""

    policy: str
    append_p50_ms: float
    append_p99_ms: float
    batch_p50_ms: float


async def measure(policy: str, appends: int, folder: Path) -> Cost:
    """Append under one policy."""
    server = NatsServer(NatsServerSettings(data_dir=folder, sync_interval=policy))
    await server.start()
    try:
        bus = await Bus.connect(server.url, name="bench")
        try:
            await ensure_streams(bus)
            info = await bus.stream_info(DECISIONS)
            log = FencedLog(bus, DECISIONS, last_applied=info.last_seq)
            payload = bytes(RECORD_BYTES)
            singles = [await _timed(log, 1, payload) for _ in range(_WARM_UP + appends)]
            batches = [await _timed(log, BATCH, payload) for _ in range(appends // BATCH + 1)]
        finally:
            await bus.close()
    finally:
        await server.stop()
    ordered = sorted(singles[_WARM_UP:])
    return Cost(
        policy=policy or "default (2m)",
        append_p50_ms=median(ordered) * 1e3,
        append_p99_ms=ordered[len(ordered) * 99 // 100] * 1e3,
        batch_p50_ms=median(batches) * 1e3,
    )


async def _timed(log: FencedLog, count: int, payload: bytes) -> float:
    began_s = time.perf_counter()
    await log.append_batch([(act("bench"), payload)] * count)
    return time.perf_counter() - began_s


async def _all(appends: int) -> list[Cost]:
    found = []
    for policy in POLICIES:
        with TemporaryDirectory(prefix="tutti-bench-") as name:
            found.append(await measure(policy, appends, Path(name)))
        await asyncio.sleep(1.0)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.log_sync", description=__doc__)
    parser.add_argument("--appends", type=int, default=1000)
    given = parser.parse_args()
    found = uvloop.run(_all(given.appends))
    table = Table(title=f"Fenced appends of {RECORD_BYTES} bytes, by sync policy")
    for title in ("sync_interval", "append p50", "ratio", "p99", f"batch of {BATCH}, p50", "ratio"):
        table.add_column(title)
    for one in found:
        table.add_row(
            one.policy,
            f"{one.append_p50_ms:.2f} ms",
            f"{one.append_p50_ms / found[0].append_p50_ms:.1f}",
            f"{one.append_p99_ms:.2f} ms",
            f"{one.batch_p50_ms:.1f} ms",
            f"{one.batch_p50_ms / found[0].batch_p50_ms:.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
