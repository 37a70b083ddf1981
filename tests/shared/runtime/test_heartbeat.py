"""Heartbeats in systemd's protocol."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from shared.runtime.health import HealthServer, Readiness
from shared.runtime.heartbeat import BEAT, Heartbeat, supervisor_address
from shared.telemetry.metrics import Metrics
from tests.support.waiting import eventually


def test_beats_are_sent_only_to_a_supervisor_that_wants_this_process() -> None:
    asked = {"NOTIFY_SOCKET": "@up", "WATCHDOG_USEC": "1000000"}
    assert supervisor_address(asked) == "\0up"
    assert supervisor_address({**asked, "NOTIFY_SOCKET": "/run/s"}) == "/run/s"
    assert supervisor_address({**asked, "WATCHDOG_PID": str(os.getpid())}) == "\0up"
    assert supervisor_address({**asked, "WATCHDOG_PID": "1"}) is None
    assert supervisor_address({"NOTIFY_SOCKET": "@up"}) is None, "a unit without WatchdogSec="
    assert supervisor_address({}) is None


@pytest.mark.parametrize("kind", ["path", "abstract"])
async def test_it_beats_while_the_loop_turns_and_notes_how_late_it_was(
    kind: str, tmp_path: Path
) -> None:
    name = str(tmp_path / "s") if kind == "path" else f"@tutti-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as supervisor:
        supervisor.bind(name.replace("@", "\0"))
        heartbeat = Heartbeat({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"})
        beating = asyncio.create_task(heartbeat.run())
        loop = asyncio.get_running_loop()
        for _ in range(3):
            async with asyncio.timeout(5):
                assert await loop.sock_recv(supervisor, 100) == BEAT
        assert heartbeat.late_s < 5
        blocked = os.times().elapsed
        while os.times().elapsed - blocked < 0.3:
            pass  # what a long cycle does to the loop
        await eventually(lambda: heartbeat.late_s >= 0.2)
        beating.cancel()


async def test_a_supervisor_that_is_gone_or_does_not_read_stops_nothing(tmp_path: Path) -> None:
    gone = {"NOTIFY_SOCKET": str(tmp_path / "nobody"), "WATCHDOG_USEC": "40000"}
    heartbeat = Heartbeat(gone)
    beating = asyncio.create_task(heartbeat.run())
    await eventually(lambda: heartbeat.late_s > 0)
    assert not beating.done()
    beating.cancel()


async def test_a_service_beats_between_two_generations_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause after it was superseded is no hang."""
    name = str(tmp_path / "s")
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as supervisor:
        supervisor.bind(name)
        server = HealthServer()
        for service in ("first", "second"):
            await server.start("127.0.0.1", 0, Readiness(), Metrics(service))
            async with asyncio.timeout(5):
                for _ in range(3):
                    assert await asyncio.get_running_loop().sock_recv(supervisor, 100) == BEAT
        await server.stop()
