"""The simulated processes' loop: time that costs nothing, kills that leave nothing behind."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from tests.simulation.loop import Dice, SimLoop, Stuck, current_generation


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    made = SimLoop(Dice(7))
    yield made
    made.discard()


def test_a_simulated_hour_of_sleep_takes_no_time(loop: SimLoop) -> None:
    woken: list[float] = []

    async def sleep() -> None:
        await asyncio.sleep(3600)
        woken.append(loop.time())

    _ = loop.spawn(loop.incarnate("a"), sleep())
    loop.run_for(3599)
    assert woken == []
    loop.run_for(2)
    assert woken == [3600.0]
    assert loop.now_ms == 1_767_225_600_000 + 3_601_000


def test_a_killed_process_runs_no_finally_and_no_timer_of_its_own(loop: SimLoop) -> None:
    events: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().call_later(2.0, events.append, "timer")
        try:
            await asyncio.sleep(5)
            events.append("went on")
        finally:
            events.append("finally")

    victim = loop.incarnate("a")
    _ = loop.spawn(victim, work())
    loop.at(1.0, loop.kill, victim)
    loop.run_for(10)
    assert events == []
    assert not victim.alive


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_process_can_be_killed_at_each_await(loop: SimLoop, step: int) -> None:
    reached: list[int] = []

    async def work() -> None:
        for number in range(1, 5):
            reached.append(number)
            await asyncio.sleep(0)

    victim = loop.incarnate("a")
    victim.kill_at_step = step
    _ = loop.spawn(victim, work())
    loop.run_for(1)
    assert reached == list(range(1, step))


def test_effects_after_the_last_one_reach_no_server(loop: SimLoop) -> None:
    handed: list[int] = []

    async def work() -> None:
        me = current_generation()
        for number in range(5):
            if me.alive:
                handed.append(number)
                me.effect()
        await asyncio.sleep(0)
        handed.append(99)

    victim = loop.incarnate("a")
    victim.kill_at_effect = 3
    _ = loop.spawn(victim, work())
    loop.run_for(1)
    assert handed == [0, 1, 2]


def test_a_paused_process_does_late_what_came_due_meanwhile(loop: SimLoop) -> None:
    woken: list[float] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            woken.append(loop.time())

    sleeper = loop.incarnate("a")
    _ = loop.spawn(sleeper, tick())
    loop.at(2.5, loop.pause, sleeper)
    loop.at(6.25, loop.resume, sleeper)
    loop.run_for(8)
    assert woken == [1.0, 2.0, 6.25, 7.25]


def test_a_process_that_waits_for_another_ones_answer_outlives_it(loop: SimLoop) -> None:
    """A future resolved by the world wakes only processes that still live."""
    answers: list[str] = []
    futures: list[asyncio.Future[str]] = []

    async def ask(name: str) -> None:
        futures.append(loop.create_future())
        answers.append(f"{name} {await futures[-1]}")

    dead, living = loop.incarnate("dead"), loop.incarnate("living")
    _ = loop.spawn(dead, ask("dead"))
    loop.run_for(0.1)
    _ = loop.spawn(living, ask("living"))
    loop.run_for(0.1)
    loop.kill(dead)
    for future in futures:
        loop.at(1.0, future.set_result, "yes")
    loop.run_for(2)
    assert answers == ["living yes"]


def _order(seed: int) -> list[str]:
    loop = SimLoop(Dice(seed))
    order: list[str] = []

    async def work(name: str) -> None:
        for number in range(4):
            order.append(f"{name}{number}")
            await asyncio.sleep(0)

    for name in "abc":
        _ = loop.spawn(loop.incarnate(name), work(name))
    loop.run_for(1)
    loop.discard()
    return order


def test_the_seed_decides_the_order_between_processes_and_nothing_the_order_within_one() -> None:
    orders = [_order(seed) for seed in range(8)]
    assert orders == [_order(seed) for seed in range(8)]
    assert len({tuple(order) for order in orders}) > 4
    for order in orders:
        for name in "abc":
            own = [step for step in order if step.startswith(name)]
            assert own == [f"{name}{number}" for number in range(4)]


def test_a_process_that_never_waits_is_stuck(loop: SimLoop) -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110 - that is the point
            await asyncio.sleep(0)

    _ = loop.spawn(loop.incarnate("a"), spin())
    with pytest.raises(Stuck, match="a#1"):
        loop.run_for(1)


def test_a_signal_reaches_its_handler_and_kills_a_process_without_one(loop: SimLoop) -> None:
    events: list[str] = []

    async def serve() -> None:
        loop.add_signal_handler(signal.SIGTERM, events.append, "asked to stop")
        await asyncio.sleep(60)

    polite, deaf = loop.incarnate("polite"), loop.incarnate("deaf")
    _ = loop.spawn(polite, serve())
    loop.run_for(0.1)
    loop.send_signal(polite)
    loop.send_signal(deaf)
    loop.run_for(0.1)
    assert events == ["asked to stop"]
    assert (polite.alive, deaf.alive) == (True, False)


def test_timeouts_and_task_groups_work_on_virtual_time(loop: SimLoop) -> None:
    events: list[object] = []

    async def late() -> None:
        try:
            async with asyncio.timeout(2):
                await asyncio.sleep(5)
        except TimeoutError:
            events.append(loop.time())

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(late())
            group.create_task(late())
        events.append(await asyncio.gather(asyncio.sleep(1, "a"), asyncio.sleep(1, "b")))

    _ = loop.spawn(loop.incarnate("a"), work())
    loop.run_for(10)
    assert events == [2.0, 2.0, ["a", "b"]]
    assert loop.unhandled == []


def test_a_run_is_forgotten_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    loop = SimLoop(Dice(1))

    async def stubborn() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            await asyncio.sleep(1)

    killed = loop.incarnate("killed")
    for process_name in (killed, loop.incarnate("alive")):
        _ = loop.spawn(process_name, stubborn())
    loop.run_for(1)
    loop.kill(killed)
    loop.discard()
    assert capfd.readouterr() == ("", "")
