"""Turns in which users are served, so that no user takes what all users share."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class UserTurns:
    """A number of places, given to the users that wait in turn.

    A user has a part of the places at most, so what one user asks makes another wait for no longer
    than the work in one place takes. The caller bounds how many wait.
    """

    def __init__(self, *, places: int, of_user: int) -> None:
        self._free = places
        self._of_user = of_user
        self._running = Counter[str]()
        #: By the user's name; the user whose turn is next comes first.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def waiting(self, user: str) -> int:
        """How many turns the user of this name waits for."""
        return len(self._waiting.get(user, ()))

    async def run(self, user: str, work: Callable[[], Awaitable[T]]) -> T:
        """Wait for a place, and return the result of the work.

        Work that has begun is finished in its place also when the caller is cancelled: what does
        it, such as another process, does not stop. A client that leaves and asks again gains
        nothing.
        """
        await self._take(user)
        task = asyncio.create_task(self._finish(user, work), name="turn")
        # The client may have left.
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return await asyncio.shield(task)

    @asynccontextmanager
    async def one(self, user: str) -> AsyncIterator[None]:
        """Wait for a place, and hold it for the length of the block."""
        await self._take(user)
        try:
            yield
        finally:
            self._leave(user)

    async def _finish(self, user: str, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            self._leave(user)

    async def _take(self, user: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(user, turn)
            else:
                self._leave(user)
            raise

    def _leave(self, user: str) -> None:
        self._free += 1
        self._running[user] -= 1
        if not self._running[user]:
            del self._running[user]
        if user in self._waiting:
            # It was just served: the next turn is another user's.
            self._waiting.move_to_end(user)
        self._give()

    def _give(self) -> None:
        """Give free places to the next users that may have one. Afterwards, no user that waits may
        have a place that is free.
        """
        for user in list(self._waiting):
            if not self._free:
                return
            if self._running[user] >= self._of_user:
                continue
            turns = self._waiting.pop(user)
            turn = turns.popleft()
            if turns:
                self._waiting[user] = turns
            self._free -= 1
            self._running[user] += 1
            turn.set_result(None)

    def _forget(self, user: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[user]
        turns.remove(turn)
        if not turns:
            del self._waiting[user]
