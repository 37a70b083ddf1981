"""When a process counts as hung. Pure; then with real processes that are stopped."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.waiting import eventually
from tests.tutti.up.test_launchers import lives, parent_of, sleeper
from tutti.lifeline import cpu_s
from tutti.up import watchdog as module
from tutti.up.fork_server_launcher import ForkServerLauncher
from tutti.up.supervisor import Keeper
from tutti.up.watchdog import BUSY_MAX_S, LOOK_EVERY_S, SILENT_MAX_S, Heartbeats, Watchdog


def silence(dog: Watchdog, *, until_s: float, busy: bool = False) -> float | None:
    """Look regularly at a process that never beats; when it counted as hung."""
    now_s = 0.0
    while now_s < until_s:
        now_s += LOOK_EVERY_S
        if dog.judge(now_s, None, now_s if busy else 1.0):
            return now_s
    return None


def test_a_process_that_neither_beats_nor_works_hangs() -> None:
    found_s = silence(Watchdog(0.0), until_s=60)
    assert found_s is not None
    assert SILENT_MAX_S <= found_s <= SILENT_MAX_S + 2 * LOOK_EVERY_S


def test_long_legitimate_work_is_given_longer_but_not_for_ever() -> None:
    assert silence(Watchdog(0.0), until_s=BUSY_MAX_S - LOOK_EVERY_S, busy=True) is None
    assert silence(Watchdog(0.0), until_s=200, busy=True) == BUSY_MAX_S


def test_a_process_that_beats_lives_however_little_it_works() -> None:
    dog = Watchdog(0.0)
    assert not any(dog.judge(float(now), float(now), 1.0) for now in range(1, 300))


def test_silence_proves_nothing_while_the_launcher_itself_did_not_run() -> None:
    dog = Watchdog(0.0)
    assert dog.judge(1.0, 0.5, 1.0) == ""
    assert dog.judge(120.0, 0.5, 1.0) == "", "we were stopped, too"
    assert dog.judge(121.0, 0.5, 1.0) == ""


def test_a_process_that_is_gone_has_used_no_cpu() -> None:
    assert cpu_s(os.getpid()) is not None
    assert cpu_s(2**22 + 1) is None


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="heartbeats are Linux only")


@pytest.fixture
async def heartbeats() -> AsyncIterator[Heartbeats]:
    found = Heartbeats()
    found.listen()
    yield found
    found.close()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds instead of tens of them."""
    monkeypatch.setattr(module, "SILENT_MAX_S", 1.5)
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.2)


@needs_linux
@pytest.mark.integration
async def test_a_service_that_is_stopped_is_killed_and_started_again(
    heartbeats: Heartbeats, short: None, tmp_path: Path
) -> None:
    lines: list[str] = []
    async with ForkServerLauncher((), heartbeats, lines.append) as launcher:
        spec = sleeper(tmp_path / "log", "beat")
        keeper = Keeper(spec, launcher, lines.append, heartbeats=heartbeats)
        keeping = asyncio.create_task(keeper.run())
        first = await eventually(lambda: keeper.pid or 0)
        await eventually(lambda: heartbeats.last_s(first))
        os.kill(first, signal.SIGSTOP)
        await eventually(lambda: keeper.pid not in {None, first})
        assert not lives(first)
        assert f"(pid {first}) hangs, no sign of life" in lines[0]
        await keeper.stop()
        await keeping


@needs_linux
@pytest.mark.integration
async def test_a_fork_server_that_is_stopped_is_replaced_with_its_children(
    heartbeats: Heartbeats, short: None, tmp_path: Path
) -> None:
    lines: list[str] = []
    async with ForkServerLauncher((), heartbeats, lines.append) as launcher:
        spec = sleeper(tmp_path / "log", "beat")
        keeper = Keeper(spec, launcher, lines.append, heartbeats=heartbeats)
        keeping = asyncio.create_task(keeper.run())
        first = await eventually(lambda: keeper.pid or 0)
        parent_of(first).suspend()
        await eventually(lambda: keeper.pid not in {None, first}, timeout_s=30)
        assert not lives(first)
        assert any(line.startswith("fork-server (pid") for line in lines), lines
        await keeper.stop()
        await keeping
