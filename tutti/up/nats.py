"""The NATS of a suite: our own, kept running, or one that was given."""

import asyncio
import contextlib
import fcntl
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from shared.bus.errors import BusError
from shared.bus.permissions import User
from tutti.nats_server import NatsServer, NatsServerError, NatsServerSettings
from tutti.up.keys import Keys, adopt_streams
from tutti.up.keys import keep as keep_keys
from tutti.up.restarts import Restarts
from tutti.up.supervisor import Say, how_it_ended

#: NATS closes a store of a gigabyte within a second or two.
_ORPHAN_PATIENCE_S: Final = 5.0
_ORPHAN_POLL_S: Final = 0.02
#: A server that has just started may be reading its store.
_SET_UP_ATTEMPTS: Final = 5
_SET_UP_PAUSE_S: Final = 1.0


class Nats:
    """The NATS that this suite uses: ours, or one that was given."""

    def __init__(self, url: str, server: NatsServer | None, keys: Keys) -> None:
        self.url = url
        self.keys = keys
        self._server = server

    @property
    def pid(self) -> int:
        """Its process id; 0 when it is not ours."""
        return 0 if self._server is None else self._server.pid

    async def keep(self, say: Say, set_up: Callable[[], Awaitable[None]]) -> None:
        """Start our server again, on the same port and store, whenever it ends.

        Then have it set up once more: it may have lost its store, and services wait for their
        streams as long as it takes.
        """
        server = self._server
        if server is None:
            return
        restarts = Restarts(random.Random())  # noqa: S311 - jitter, no secret
        while True:
            started_s = time.monotonic()
            with contextlib.suppress(NatsServerError):
                status = await server.wait()
                say(f"nats {how_it_ended(status)}, starts again")
            await asyncio.sleep(restarts.delay_s(time.monotonic() - started_s))
            try:
                await server.start()
            except NatsServerError as error:
                say(f"nats does not start: {error}")
            else:
                await _set_up_again(set_up, say)


async def _set_up_again(set_up: Callable[[], Awaitable[None]], say: Say) -> None:
    for _ in range(_SET_UP_ATTEMPTS):
        try:
            await set_up()
        except BusError as error:
            say(f"nats cannot be set up: {error}")
            await asyncio.sleep(_SET_UP_PAUSE_S)
        else:
            return


@asynccontextmanager
async def running_nats(url: str, data_dir: Path, users: Sequence[User]) -> AsyncIterator[Nats]:
    """Start our own for the length of the block, with these users, or use the one at `url` if that
    is given.

    Raises:
        BadKey: A user's key in the folder is none.
        NatsServerError: Ours does not start.
    """
    if url:
        yield Nats(url, None, Keys())
        return
    keys, rights = await asyncio.to_thread(keep_keys, data_dir, users)
    server = NatsServer(NatsServerSettings(data_dir=data_dir / "nats", extra_config=rights))
    await asyncio.to_thread(_wait_for_orphan, data_dir / "nats" / "nats.lock")
    await asyncio.to_thread(adopt_streams, data_dir / "nats")
    await server.start()
    try:
        yield Nats(server.url, server, keys)
    finally:
        await server.stop()


def _wait_for_orphan(lock: Path) -> None:
    """Wait a moment for the NATS of a `tutti up` that was killed: it ends by itself, but writes its
    store first.

    Blocks. Returns in any case: starting on a folder that is held is refused by `NatsServer`.
    """
    deadline_s = time.monotonic() + _ORPHAN_PATIENCE_S
    while lock.is_file() and time.monotonic() < deadline_s:
        with lock.open("ab") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_ORPHAN_POLL_S)
            else:
                return
