"""Answers of another process that are kept for a short time, so that many clients cost few
questions.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Kept(NamedTuple, Generic[V]):
    value: V
    #: A use after this instant renews the answer.
    renew_s: float
    until_s: float


class AnswerCache(Generic[K, V]):
    """Asks one question at a time about each key, and keeps the answers.

    Clients that ask about a key while its question is in flight get its answer, too. Errors are
    raised to all of them and not kept.
    """

    def __init__(
        self,
        *,
        keep_s: Callable[[V], float],
        entries_max: int,
        in_flight_max: int,
        renews: bool = False,
    ) -> None:
        """Keep at most `entries_max` answers (those that were used longest ago are dropped), each
        for `keep_s`, and have at most `in_flight_max` questions in flight: others wait. `renews`:
        an answer that is used in the second half of its time is asked for again in the background,
        so that clients that come back do not wait when its time ends.
        """
        self._keep_s: Final = keep_s
        self._entries_max: Final = entries_max
        self._turns: Final = asyncio.Semaphore(in_flight_max)
        self._kept_part: Final = 0.5 if renews else 1.0
        self._kept: OrderedDict[K, _Kept[V]] = OrderedDict()
        self._asking: dict[K, asyncio.Task[V]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def kept(self, key: K, ask: Callable[[], Awaitable[V]]) -> V | None:
        """The answer about a key, if one is kept; None: it has to be asked (or is None). `ask` is
        called to renew it.
        """
        found = self._current(key, ask)
        return None if found is None else found.value

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """The answer about a key, at most `keep_s` old; `ask` is called if there is none."""
        found = self._current(key, ask)
        if found is not None:
            return found.value
        self._start(key, ask)
        # The remaining clients get the answer also when one leaves.
        return await asyncio.shield(self._asking[key])

    def _current(self, key: K, ask: Callable[[], Awaitable[V]]) -> _Kept[V] | None:
        found = self._kept.get(key)
        now_s = asyncio.get_running_loop().time()
        if found is None or found.until_s <= now_s:
            return None
        if found.renew_s <= now_s:
            self._start(key, ask)
        self._kept.move_to_end(key)
        return found

    def _start(self, key: K, ask: Callable[[], Awaitable[V]]) -> None:
        """Ask about a key, unless a question about it is in flight."""
        if key not in self._asking:
            task = self._asking[key] = asyncio.create_task(self._fetch(key, ask), name="ask")
            task.add_done_callback(lambda done: self._done(key, done))

    async def _fetch(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        async with self._turns:
            value = await ask()
        now_s, keep_s = asyncio.get_running_loop().time(), self._keep_s(value)
        self._kept[key] = _Kept(value, now_s + keep_s * self._kept_part, now_s + keep_s)
        self._kept.move_to_end(key)
        if len(self._kept) > self._entries_max:
            self._kept.popitem(last=False)
        return value

    def _done(self, key: K, task: asyncio.Task[V]) -> None:
        del self._asking[key]
        if not task.cancelled():
            # Read it: every client that waited may have left, and of a renewal there is none.
            task.exception()
