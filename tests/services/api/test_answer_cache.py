"""Answers are shared, kept for their time, and bounded."""

import asyncio
from functools import partial

import pytest

from services.api.answer_cache import ENTRY_BYTES, AnswerCache
from shared.runtime.user_turns import UserTurns


class Asked:
    """Counts questions; answers when it is opened."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.open = asyncio.Event()
        self.failure: Exception | None = None

    async def ask(self, key: str) -> str:
        self.keys.append(key)
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        return key.upper()


def a_cache(keep_s: float = 60.0, entries_max: int = 2) -> AnswerCache[str, str]:
    return AnswerCache(
        keep_s=lambda _value: keep_s,
        bytes_max=entries_max * ENTRY_BYTES,
        turns=UserTurns(places=1, of_user=1),
    )


async def test_clients_share_one_question_also_when_the_first_of_them_leaves() -> None:
    asked, cache = Asked(), a_cache()
    first, second = (asyncio.create_task(cache.get("a", partial(asked.ask, "a"))) for _ in "xy")
    await asyncio.sleep(0)
    first.cancel()
    asked.open.set()
    assert await second == "A"
    assert await cache.get("a", partial(asked.ask, "a")) == "A"
    assert asked.keys == ["a"]


async def test_an_error_is_raised_and_not_kept() -> None:
    asked, cache = Asked(), a_cache()
    asked.open.set()
    asked.failure = ValueError("no")
    with pytest.raises(ValueError, match="no"):
        await cache.get("a", partial(asked.ask, "a"))
    asked.failure = None
    assert await cache.get("a", partial(asked.ask, "a")) == "A"


async def test_old_answers_and_those_that_are_too_many_are_asked_again() -> None:
    asked, cache = Asked(), a_cache()
    asked.open.set()
    for key in ("a", "b", "a", "c", "a", "b"):
        await cache.get(key, partial(asked.ask, key))
    assert asked.keys == ["a", "b", "c", "b"]
    assert len(cache) == 2
    brief = a_cache(keep_s=0.0)
    for _ in range(2):
        await brief.get("z", partial(asked.ask, "z"))
    assert asked.keys[-2:] == ["z", "z"]


async def test_an_answer_used_in_the_second_half_of_its_time_is_renewed_without_a_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s)
    asked = Asked()
    asked.open.set()
    cache: AnswerCache[str, str] = AnswerCache(
        keep_s=lambda _value: 10.0,
        bytes_max=2 * ENTRY_BYTES,
        turns=UserTurns(places=1, of_user=1),
        renews=True,
    )
    ask = partial(asked.ask, "a")
    assert await cache.get("a", ask) == "A"
    now_s = 104.0
    assert cache.kept("a", ask) == "A"
    await asyncio.sleep(0)
    assert asked.keys == ["a"]
    asked.open.clear()
    now_s = 106.0
    assert cache.kept("a", ask) == "A"
    assert await cache.get("a", ask) == "A"
    await asyncio.sleep(0)
    assert asked.keys == ["a", "a"], "once, in the background"
    asked.failure = ValueError("no")
    asked.open.set()
    for _ in range(3):
        await asyncio.sleep(0)
    now_s = 109.0
    assert cache.kept("a", ask) == "A", "a renewal that failed ends nothing"
    asked.failure = None
    for _ in range(3):
        await asyncio.sleep(0)
    now_s = 111.0
    assert cache.kept("a", ask) == "A", "it was renewed at 109"
