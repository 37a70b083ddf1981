"""Answers are shared, kept for their time, and bounded."""

import asyncio
from functools import partial

import pytest

from services.api.answer_cache import AnswerCache


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
    return AnswerCache(keep_s=lambda _value: keep_s, entries_max=entries_max, in_flight_max=1)


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
