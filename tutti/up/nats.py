"""The NATS of `tutti up`: its own server, kept running, or the one given by `--nats`."""

import asyncio
import fcntl
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from shared.bus.errors import BusError
from shared.bus.permissions import User
from shared.pacing import Backoff
from tutti.nats_server import (
    NatsServer,
    NatsServerError,
    NatsServerSettings,
    NoHealth,
    store_problem,
    write_problem,
)
from tutti.up.keys import Keys, adopt_streams, restorer
from tutti.up.keys import keep as keep_keys
from tutti.up.supervisor import Restarts, how_it_ended
from tutti.up.watchdog import Say, kill_when_hung

#: NATS closes a store of a gigabyte within a second or two.
_ORPHAN_PATIENCE_S: Final = 5.0
_ORPHAN_POLL_S: Final = 0.02
#: Interval of the checks whether it answers and stores.
_LOOK_EVERY_S: Final = 2.0
#: Maximum pause between attempts to create streams: NATS may be reading its store, or lack space.
_SET_UP_PAUSE_MAX_S: Final = 15.0
#: Length of an extract of the server's log in a message.
_LOG_CHARS_MAX: Final = 400


class Nats:
    """The NATS in use: our own server, or a given one."""

    def __init__(
        self,
        url: str,
        server: NatsServer | None,
        keys: Keys,
        restore_keys: Callable[[], None] = lambda: None,
    ) -> None:
        self.url = url
        self.keys = keys
        self._server = server
        self._restore_keys = restore_keys

    @property
    def pid(self) -> int:
        """The process id of our server; 0 for a given one (as in the ready file)."""
        return 0 if self._server is None else self._server.pid

    @property
    def monitor_url(self) -> str:
        """URL of our server's monitoring port; "" for a given one."""
        return "" if self._server is None else self._server.monitor_url

    async def keep(self, say: Say, set_up: Callable[[], Awaitable[None]]) -> None:
        """Restart our server, on the same port and store, whenever it ends, hangs, or has lost its
        store and can have one again; until cancelled.

        After each restart `set_up` creates missing streams: the store may be lost, and services
        wait for their streams.
        """
        server = self._server
        if server is None:
            return
        restarts = Restarts(random.Random())  # noqa: S311 - jitter, no secret
        setting_up: asyncio.Task[None] | None = None
        try:
            while True:
                started_s = time.monotonic()
                why = await self._serve(server, say)
                if setting_up is not None:
                    setting_up.cancel()
                await server.stop()
                delay_s = restarts.delay_s(time.monotonic() - started_s)
                say(f"nats {why}, starts again in {delay_s:.1f} s")
                await asyncio.sleep(delay_s)
                await self._start(server, restarts, say)
                setting_up = asyncio.create_task(_set_up_again(set_up, say), name="set-up-nats")
        finally:
            if setting_up is not None:
                setting_up.cancel()

    async def _serve(self, server: NatsServer, say: Say) -> str:
        """Wait until the server must be restarted; return the reason."""
        health = _Health(server)
        ending = asyncio.create_task(server.wait(), name="nats-ends")
        watching = asyncio.create_task(health.watch(say), name="watch-nats")
        hanging = asyncio.create_task(
            kill_when_hung(server, "nats", lambda: health.answered_s, say), name="nats-hangs"
        )
        try:
            await asyncio.wait((ending, watching), return_when=asyncio.FIRST_COMPLETED)
            return how_it_ended(ending.result()) if ending.done() else watching.result()
        finally:
            for task in (ending, watching, hanging):
                task.cancel()

    async def _start(self, server: NatsServer, restarts: Restarts, say: Say) -> None:
        """Start it; retry until it runs."""
        while True:
            try:
                await asyncio.to_thread(self._restore_keys)
                await server.start()
            except (NatsServerError, OSError) as error:
                delay_s = restarts.delay_s(0.0)
                text = str(error)[-_LOG_CHARS_MAX:]
                say(f"nats does not start: {text}; next attempt in {delay_s:.1f} s")
                await asyncio.sleep(delay_s)
            else:
                return


class _Health:
    """The health of one run of a server."""

    def __init__(self, server: NatsServer) -> None:
        self._server = server
        self._store = server.store_dir / "jetstream"
        #: Time of its last answer, by the monotonic clock; None: it has not answered yet.
        self.answered_s: float | None = None

    async def watch(self, say: Say) -> str:
        """Wait until a restart is needed and would help; return the reason.

        While its store has failed and the folder cannot be written, it keeps running: its messages
        can still be read, and a restart would not help.
        """
        identity = await asyncio.to_thread(_identity, self._store)
        reported = ""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            problem = await self._ask()
            if identity != await asyncio.to_thread(_identity, self._store):
                problem = f"{self._store} was removed or replaced"
            if not problem:
                reported = ""
                continue
            obstacle = await asyncio.to_thread(_writable, self._server.data_dir)
            if not obstacle:
                return f"stores nothing ({problem}), and its folder can be written"
            if reported != obstacle:
                reported = obstacle
                say(
                    f"nats stores nothing: {problem}; it is restarted when possible, now {obstacle}"
                )

    async def _ask(self) -> str:
        try:
            problem = await store_problem(self._server.monitor_url)
        except NoHealth:
            return ""  # the watchdog measures the silence
        self.answered_s = time.monotonic()
        return problem


def _identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode of a folder; None: there is none."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _writable(folder: Path) -> str:
    """Why a folder cannot be written, which is created if missing; "" if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return write_problem(folder)


async def _set_up_again(set_up: Callable[[], Awaitable[None]], say: Say) -> None:
    """Call `set_up`; retry until it succeeds."""
    backoff = Backoff(base_s=1.0, max_s=_SET_UP_PAUSE_MAX_S)
    while True:
        try:
            await set_up()
        except (BusError, OSError) as error:
            delay_s = backoff.next_s()
            say(f"nats cannot be set up: {error}; next attempt in {delay_s:.1f} s")
            await asyncio.sleep(delay_s)
        else:
            return


@asynccontextmanager
async def running_nats(url: str, data_dir: Path, users: Sequence[User]) -> AsyncIterator[Nats]:
    """Run our own server for the length of the block, with these users, or use the one at `url`.

    Raises:
        Refusal: A file of a user's key is not valid.
        NatsServerError: Our server does not start.
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
        yield Nats(server.url, server, keys, await asyncio.to_thread(restorer, keys))
    finally:
        await server.stop()


def _wait_for_orphan(lock: Path) -> None:
    """Wait a moment for the NATS of a killed `tutti up`, which writes its store before it ends.

    Blocks. Returns in any case: `NatsServer` refuses to start on a folder in use.
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
