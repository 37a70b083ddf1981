"""The supervisor over fake processes; no time passes."""

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typing_extensions import override

from tests.support.manual_clock import SleepingClock
from tests.tutti.up.fakes import FakeChild, FakeLauncher, make_spec
from tutti.up.processes import ProcessSpec
from tutti.up.supervisor import (
    FIRST_S,
    HEALTHY_AFTER_S,
    MAX_S,
    WRONG_SETTINGS,
    Keeper,
    ServiceRefused,
    Supervisor,
    how_it_ended,
)

KILL_ONLY = frozenset({signal.SIGKILL})


@asynccontextmanager
async def kept(
    launcher: FakeLauncher, clock: SleepingClock, lines: list[str], log: Path | None = None
) -> AsyncIterator[tuple[Keeper, asyncio.Task[None]]]:
    keeper = Keeper(make_spec(log=log), launcher, lines.append, clock_s=clock, sleep=clock.sleep)
    task = asyncio.create_task(keeper.run())
    yield keeper, task
    await keeper.stop()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not any(child.alive for child in launcher.children)


async def test_a_process_that_was_killed_is_started_again_and_each_event_is_one_line() -> None:
    launcher, clock, lines = FakeLauncher(), SleepingClock(), list[str]()
    async with kept(launcher, clock, lines) as (keeper, _):
        first = await launcher.launched.get()
        assert keeper.pid == first.pid
        first.end(-signal.SIGKILL)
        second = await launcher.launched.get()
        assert second.pid != first.pid
    assert len(lines) == 1
    assert "binder-0 (pid 100) was killed by SIGKILL, starts again in 0." in lines[0]


async def test_delays_grow_while_it_dies_early_and_are_short_again_after_it_lived() -> None:
    launcher, clock = FakeLauncher(), SleepingClock()
    async with kept(launcher, clock, []):
        for _ in range(8):
            (await launcher.launched.get()).end(1)
        healthy = await launcher.launched.get()
        assert clock.sleeps[-1] > 10 * clock.sleeps[0]
        clock.now_s += HEALTHY_AFTER_S + 1  # the sum of random delays is not exact
        healthy.end(1)
        await launcher.launched.get()
        assert clock.sleeps[-1] <= FIRST_S


async def test_a_service_that_refuses_its_flags_is_not_started_again(tmp_path: Path) -> None:
    log = tmp_path / "binder-0.log"
    log.write_text("binder: --posts-max: must be >= 1\n")
    launcher = FakeLauncher()
    async with kept(launcher, SleepingClock(), [], log) as (_, task):
        (await launcher.launched.get()).end(WRONG_SETTINGS)
        with pytest.raises(ServiceRefused, match=r"binder-0 refuses.*--posts-max: must be >= 1"):
            await task
    assert len(launcher.children) == 1


async def test_a_process_that_cannot_be_started_is_tried_again_for_ever() -> None:
    class Refusing(FakeLauncher):
        refusals = 20

        @override
        async def launch(self, spec: ProcessSpec) -> FakeChild:
            if self.refusals:
                self.refusals -= 1
                raise OSError("cannot fork: no memory")
            return await super().launch(spec)

    launcher, clock, lines = Refusing(), SleepingClock(), list[str]()
    async with kept(launcher, clock, lines) as (keeper, _):
        child = await launcher.launched.get()
        assert keeper.pid == child.pid
    assert len(lines) == 20
    assert "binder-0 cannot be started: cannot fork: no memory; next attempt in " in lines[0]
    assert max(clock.sleeps) <= MAX_S


async def test_a_process_that_ignores_sigterm_is_killed_after_the_grace() -> None:
    launcher, lines = FakeLauncher(KILL_ONLY), list[str]()
    keeper = Keeper(make_spec(), launcher, lines.append)
    task = asyncio.create_task(keeper.run())
    child = await launcher.launched.get()
    await keeper.stop(grace_s=0.0)
    await task
    assert child.signals == [signal.SIGTERM, signal.SIGKILL]
    assert "did not stop in 0 s: killed" in lines[0]


async def test_a_stop_that_is_cancelled_leaves_no_process() -> None:
    launcher = FakeLauncher(KILL_ONLY)
    keeper = Keeper(make_spec(), launcher, lambda _: None)
    task = asyncio.create_task(keeper.run())
    child = await launcher.launched.get()
    stopping = asyncio.create_task(keeper.stop(grace_s=3600.0))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert not child.alive
    await task


async def test_stopping_while_it_waits_to_start_again_starts_nothing() -> None:
    launcher, waiting = FakeLauncher(), asyncio.Event()

    async def sleep(_: float) -> None:
        waiting.set()
        await asyncio.sleep(0)

    keeper = Keeper(make_spec(), launcher, lambda _: None, sleep=sleep)
    task = asyncio.create_task(keeper.run())
    (await launcher.launched.get()).end(1)
    await waiting.wait()
    await keeper.stop()
    await task
    assert len(launcher.children) == 1


async def test_services_stop_in_the_reverse_order_of_starting_each_after_the_other() -> None:
    launcher = FakeLauncher()
    specs = [make_spec("watcher"), make_spec("gang-planner"), make_spec("gang-planner", 1)]
    supervisor = Supervisor([*specs, make_spec("binder")], launcher, lambda _: None)
    running = asyncio.create_task(supervisor.run())
    children = {(child := await launcher.launched.get()).title: child for _ in range(4)}
    order: list[str] = []
    tasks = [
        asyncio.create_task(_note_end(child.title, child.wait(), order))
        for child in children.values()
    ]
    await supervisor.stop()
    await asyncio.gather(*tasks, running)
    assert order[0] == "binder-0"
    assert set(order[1:3]) == {"gang-planner-0", "gang-planner-1"}
    assert order[3] == "watcher-0"


async def _note_end(title: str, end: Coroutine[None, None, int], order: list[str]) -> None:
    await end
    order.append(title)


async def test_a_hurried_stop_kills_what_ignores_sigterm_without_waiting() -> None:
    launcher = FakeLauncher(KILL_ONLY)
    supervisor = Supervisor([make_spec(), make_spec("watcher")], launcher, lambda _: None)
    running = asyncio.create_task(supervisor.run())
    for _ in range(2):
        await launcher.launched.get()
    supervisor.hurry()
    async with asyncio.timeout(5):
        await supervisor.stop()
    await running
    assert not any(child.alive for child in launcher.children)


async def test_one_refusal_ends_the_whole_suite_with_its_reason() -> None:
    launcher = FakeLauncher()
    supervisor = Supervisor([make_spec(), make_spec("watcher")], launcher, lambda _: None)
    running = asyncio.create_task(supervisor.run())
    (await launcher.launched.get()).end(WRONG_SETTINGS)
    with pytest.raises(ServiceRefused):
        await running
    await supervisor.stop()
    assert not any(child.alive for child in launcher.children)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with status 0"),
        (3, "ended with status 3"),
        (-9, "was killed by SIGKILL"),
        (-40, "was killed by signal 40"),
    ],
)
def test_an_exit_status_is_described_in_words(status: int, words: str) -> None:
    assert how_it_ended(status) == words
