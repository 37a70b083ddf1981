"""One `tutti up` that lives as long as a test module, whatever event loop its tests run in."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import msgspec
import psutil

from shared.bus.connection import Bus
from shared.bus.permissions import READER
from shared.bus.questions import ask_all
from shared.contracts.codec import decode_status
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS
from tests.rights.audit import FOLDER_VARIABLE
from tests.support.waiting import eventually
from tests.tutti.up.running import TUTTI, tutti
from tutti.up.readiness import ReadyFile

START_S = 60.0
STOP_S = 20.0
READY_POLL_S = 0.02
ANSWERS_S = 0.15


class RunningSuite:
    """A `tutti up` that is ready; services may be killed, it starts them again."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, kubeconfig: Path) -> None:
        self._process = process
        self._folder = folder
        self.kubeconfig = kubeconfig

    @property
    def data_dir(self) -> Path:
        """Where commands find it."""
        return self._folder / "data"

    @property
    def ready(self) -> ReadyFile:
        """What the ready file says: pids and ports of the start."""
        return msgspec.json.decode((self._folder / "ready.json").read_bytes(), type=ReadyFile)

    @property
    def said(self) -> str:
        """What it wrote to standard error: one line for each end of a service."""
        return (self._folder / "up.err").read_text()

    async def answers(self) -> dict[str, ServiceStatus]:
        """What the services say of themselves now, by instance."""
        ready = self.ready
        bus = await Bus.connect(
            ready.nats_url,
            name="test",
            user=READER,
            credentials=ready.nats_credentials,
            patience_s=5,
        )
        try:
            request = StatusRequest()
            found = await ask_all(bus, ASK_STATUS, request, decode_status, wait_s=ANSWERS_S)
        finally:
            await bus.close()
        return {one.instance: one for one in found}

    async def series(self, service: str) -> list[dict[str, float]]:
        """What each process of a service shows at /metrics, by name and labels."""
        found = []
        async with aiohttp.ClientSession() as session:
            for row in self.ready.services:
                if row.service == service:
                    url = f"http://127.0.0.1:{row.http_port}/metrics"
                    async with session.get(url) as response:
                        text = await response.text()
                    lines = [line for line in text.splitlines() if not line.startswith("#")]
                    pairs = [line.rpartition(" ") for line in lines]
                    found.append({name: float(value) for name, _, value in pairs})
        return found

    async def pids(self) -> dict[str, int]:
        """Process ids by instance, once all that were started answer and are ready."""
        wanted = {f"{row.service}-{row.ordinal}" for row in self.ready.services}

        async def all_ready() -> dict[str, int]:
            answers = await self.answers()
            ready = {name: one.pid for name, one in answers.items() if one.ready}
            assert ready.keys() >= wanted, {n: one.not_ready for n, one in answers.items()}
            return ready

        return await eventually(all_ready, timeout_s=START_S, because="all services are ready")

    async def active(self, service: str) -> str:
        """Wait until one instance of a service says that it writes: which one."""

        async def only_writer() -> str:
            answers = await self.answers()
            (active,) = (
                name
                for name, status in answers.items()
                if status.service == service and status.active
            )
            return active

        return await eventually(only_writer, timeout_s=START_S, because=f"one {service} is active")

    async def kill(self, instance: str) -> None:
        """SIGKILL one process of ours."""
        pids = await self.pids()
        os.kill(pids[instance], signal.SIGKILL)

    def nats_pid(self) -> int:
        """Process id of the nats-server that it runs now; another one after each start."""
        servers = []
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # ended since they were listed
                servers += [child] if "nats-server" in child.name() else []
        assert len(servers) == 1, f"nats-servers: {servers}"
        return servers[0].pid

    def kill_nats(self) -> None:
        """SIGKILL the nats-server that it runs now."""
        os.kill(self.nats_pid(), signal.SIGKILL)

    async def why(self, what: str, namespace: str) -> str:
        """What `tutti why` says."""
        flags = (f"--namespace={namespace}", f"--kubeconfig={self.kubeconfig}")
        status, text, errors = await tutti("why", what, *flags)
        assert status == 0, errors
        return text


@contextmanager
def running_suite(kubeconfig: Path, folder: Path, *flags: str) -> Iterator[RunningSuite]:
    """Run one until the block is left; it then ends with status 0 and leaves no process."""
    ready_file = folder / "ready.json"
    # The audit of rights plays every test with services that have only their own accounts.
    guarded = [sys.executable, "-m", "tests.rights.guarded_up"]
    command = [
        *(guarded if os.environ.get(FOLDER_VARIABLE) else [str(TUTTI)]),
        "up",
        f"--kubeconfig={kubeconfig}",
        f"--data-dir={folder / 'data'}",
        f"--ready-file={ready_file}",
        # A process less, where a test does not ask for it.
        "--no-api",
        *flags,
    ]
    with (folder / "up.out").open("wb") as out, (folder / "up.err").open("wb") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    try:
        deadline_s = time.monotonic() + START_S
        while not ready_file.is_file():
            errors = (folder / "up.err").read_text()
            assert process.poll() is None, f"ended with {process.returncode}: {errors}"
            assert time.monotonic() < deadline_s, f"not ready after {START_S} s: {errors}"
            time.sleep(READY_POLL_S)
        yield RunningSuite(process, folder, kubeconfig)
    finally:
        _stop(process)
    assert process.returncode == 0, f"ended with {process.returncode}: {_read(folder)}"


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it; whatever it started is gone afterwards, or this fails."""
    if process.poll() is not None:
        return
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _, left = psutil.wait_procs(children, timeout=STOP_S)
    assert not left, f"outlived tutti up: {left}"


def _read(folder: Path) -> str:
    return (folder / "up.err").read_text()
