"""What one user asks keeps another user from nothing."""

import asyncio

import pytest

from shared.runtime.user_turns import UserTurns


class Work:
    """Notes what has begun; each is finished when the test says."""

    def __init__(self, turns: UserTurns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    def start(self, name: str) -> "asyncio.Task[str]":
        """Ask for the work `USER NUMBER`."""
        self.ends[name] = asyncio.Event()

        async def work() -> str:
            self.begun.append(name)
            await self.ends[name].wait()
            return name

        return asyncio.create_task(self.turns.run(name.split(maxsplit=1)[0], work))

    async def finish(self, name: str) -> None:
        self.ends[name].set()
        await passes()


async def passes() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_user_with_many_questions_has_one_place_and_others_pass() -> None:
    work = Work(UserTurns(places=2, of_user=1))
    tasks = [work.start(f"greedy {number}") for number in range(3)]
    await passes()
    assert work.begun == ["greedy 0"]
    assert [work.turns.waiting(name) for name in ("greedy", "modest")] == [2, 0]
    tasks.append(work.start("modest 0"))
    await passes()
    assert work.begun == ["greedy 0", "modest 0"]
    for name in ("modest 0", "greedy 0", "greedy 1", "greedy 2"):
        await work.finish(name)
    assert work.begun[2:] == ["greedy 1", "greedy 2"]
    assert [await task for task in tasks] == ["greedy 0", "greedy 1", "greedy 2", "modest 0"]


async def test_users_that_wait_are_served_in_turn_whatever_each_of_them_asks() -> None:
    work = Work(UserTurns(places=1, of_user=1))
    names = ["a 0", "a 1", "a 2", "b 0", "b 1", "c 0"]
    tasks = [work.start(name) for name in names]
    await passes()
    for _ in names:
        await work.finish(work.begun[-1])
    assert work.begun == ["a 0", "b 0", "c 0", "a 1", "b 1", "a 2"]
    await asyncio.gather(*tasks)


async def test_work_of_a_client_that_leaves_keeps_its_place_until_it_is_done() -> None:
    work = Work(UserTurns(places=1, of_user=1))
    left, waits = work.start("greedy 0"), work.start("greedy 1")
    modest = work.start("modest 0")
    await passes()
    left.cancel()
    waits.cancel()
    await passes()
    assert work.begun == ["greedy 0"]
    await work.finish("greedy 0")
    assert work.begun == ["greedy 0", "modest 0"], "one that left while it waited takes no turn"
    await work.finish("modest 0")
    assert await modest == "modest 0"


async def test_a_place_that_was_given_to_a_client_that_just_left_is_given_to_the_next() -> None:
    turns = UserTurns(places=1, of_user=1)
    work = Work(turns)
    first, second, third = (work.start(f"{name} 0") for name in "abc")
    await passes()
    work.ends["a 0"].set()
    await first
    second.cancel()
    await passes()
    assert work.begun[-1] in {"b 0", "c 0"}
    await work.finish("b 0")
    await work.finish("c 0")
    assert await third == "c 0"
    async with asyncio.timeout(5), turns.one("d"):
        pass


async def test_failed_work_frees_its_place_and_its_error_reaches_the_client() -> None:
    turns = UserTurns(places=1, of_user=1)

    async def fail() -> None:
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await turns.run("a", fail)
