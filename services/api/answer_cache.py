"""Answers of another process that are kept for a short time, so that many clients cost few
questions.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

from shared.runtime.user_turns import UserTurns

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


#: An entry with a key and a value of some words.
ENTRY_BYTES: Final = 512


class _Kept(NamedTuple, Generic[V]):
    value: V
    #: A use after this instant renews the answer.
    renew_s: float
    until_s: float
    size_bytes: int


class AnswerCache(Generic[K, V]):
    """Asks one question at a time about each key, and keeps the answers.

    Clients that ask about a key while its question is in flight get its answer, too. Errors are
    raised to all of them and not kept.
    """

    def __init__(
        self,
        *,
        keep_s: Callable[[V], float],
        bytes_max: int = ENTRY_BYTES,
        turns: UserTurns | None = None,
        bytes_of: Callable[[V], int] = lambda _value: 0,
        renews: bool = False,
    ) -> None:
        """Keep answers of at most `bytes_max` (those that were used longest ago are dropped), each
        for `keep_s`; `bytes_of` is what an answer has beyond ENTRY_BYTES. Keys must be short.
        Questions wait for their user's turn (None: for each other). `renews`:
        an answer that is used in the second half of its time is asked for again in the background,
        so that clients that come back do not wait when its time ends.
        """
        self._keep_s: Final = keep_s
        self._bytes_max: Final = bytes_max
        self._bytes_of: Final = bytes_of
        self._bytes = 0
        self._turns: Final = turns or UserTurns(places=1, of_user=1)
        self._kept_part: Final = 0.5 if renews else 1.0
        self._kept: OrderedDict[K, _Kept[V]] = OrderedDict()
        self._asking: dict[K, asyncio.Task[V]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def kept(self, key: K, ask: Callable[[], Awaitable[V]], user: str = "") -> V | None:
        """The answer about a key, if one is kept; None: it has to be asked (or is None). `ask` is
        called to renew it, in a turn of the user of this name.
        """
        current = self._current(key, ask, user)
        return None if current is None else current.value

    async def get(self, key: K, ask: Callable[[], Awaitable[V]], user: str = "") -> V:
        """The answer about a key, at most `keep_s` old; `ask` is called if there is none, in a turn
        of the user of this name.
        """
        current = self._current(key, ask, user)
        if current is not None:
            return current.value
        self._start(key, ask, user)
        # The remaining clients get the answer also when one leaves.
        return await asyncio.shield(self._asking[key])

    def _current(self, key: K, ask: Callable[[], Awaitable[V]], user: str) -> _Kept[V] | None:
        kept = self._kept.get(key)
        now_s = asyncio.get_running_loop().time()
        if kept is None or kept.until_s <= now_s:
            return None
        if kept.renew_s <= now_s:
            self._start(key, ask, user)
        self._kept.move_to_end(key)
        return kept

    def _start(self, key: K, ask: Callable[[], Awaitable[V]], user: str) -> None:
        """Ask about a key, unless a question about it is in flight."""
        if key not in self._asking:
            task = self._asking[key] = asyncio.create_task(self._fetch(key, ask, user), name="ask")
            task.add_done_callback(lambda done: self._done(key, done))

    async def _fetch(self, key: K, ask: Callable[[], Awaitable[V]], user: str) -> V:
        async with self._turns.one(user):
            value = await ask()
        now_s, keep_s = asyncio.get_running_loop().time(), self._keep_s(value)
        before = self._kept.pop(key, None)
        self._bytes -= 0 if before is None else before.size_bytes
        size_bytes = ENTRY_BYTES + self._bytes_of(value)
        self._kept[key] = _Kept(value, now_s + keep_s * self._kept_part, now_s + keep_s, size_bytes)
        self._bytes += size_bytes
        while self._bytes > self._bytes_max:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.size_bytes
        return value

    def _done(self, key: K, task: asyncio.Task[V]) -> None:
        del self._asking[key]
        if not task.cancelled():
            # Read it: every client that waited may have left, and of a renewal there is none.
            task.exception()
