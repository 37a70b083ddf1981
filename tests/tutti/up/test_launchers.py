"""Real processes: both ways of starting a service do the same."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from typing_extensions import override

from tests.support.waiting import eventually
from tutti.up.fork_server_launcher import TRACING, ForkServerLauncher
from tutti.up.processes import LOG_BYTES_MAX, ExecLauncher, Launcher, ProcessSpec, child_environ

pytestmark = [pytest.mark.integration, pytest.mark.slow]


class Sleeper(ProcessSpec, frozen=True, kw_only=True):
    """A spec of `sleeper`."""

    @property
    @override
    def module(self) -> str:
        return "tests.tutti.up.sleeper"


def sleeper(log: Path, *flags: str) -> ProcessSpec:
    return Sleeper(service="sleeper", ordinal=0, flags=flags, log=log)


@pytest.fixture(params=["fork-server", "exec"])
async def launcher(request: pytest.FixtureRequest) -> AsyncIterator[Launcher]:
    made = ForkServerLauncher() if request.param == "fork-server" else ExecLauncher()
    async with made:
        yield made


@pytest.fixture
async def fork_server() -> AsyncIterator[ForkServerLauncher]:
    async with ForkServerLauncher() as made:
        yield made


def parent_of(pid: int) -> psutil.Process:
    found = psutil.Process(pid).parent()
    assert found is not None
    return found


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_a_service_runs_as_a_module_with_its_flags_in_a_session_of_its_own(
    launcher: Launcher, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "s.log"
    child = await launcher.launch(sleeper(log, "say", "--x=1"))
    assert await child.wait() == 0
    said = log.read_text().splitlines()
    assert len(said) == 1
    assert said[0].startswith("['say', '--x=1']")
    pid, session = said[0].split()[-2:]
    assert int(pid) == child.pid == int(session)


@pytest.mark.parametrize("status", [0, 3])
async def test_the_exit_status_is_returned(launcher: Launcher, status: int, tmp_path: Path) -> None:
    child = await launcher.launch(sleeper(tmp_path / "log", "exit", str(status)))
    assert await child.wait() == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_signal_is_returned_as_a_negative_status(
    launcher: Launcher, number: signal.Signals, tmp_path: Path
) -> None:
    child = await launcher.launch(sleeper(tmp_path / "log", "sleep"))
    await eventually(lambda: (tmp_path / "log").is_file() and (tmp_path / "log").read_text())
    child.send_signal(number)
    assert await child.wait() == -number
    child.send_signal(number)


async def test_a_large_log_is_put_aside_once(launcher: Launcher, tmp_path: Path) -> None:
    log = tmp_path / "s.log"
    log.write_bytes(b"x" * (LOG_BYTES_MAX + 1))
    await (await launcher.launch(sleeper(log, "say"))).wait()
    await (await launcher.launch(sleeper(log, "say"))).wait()
    assert len(log.read_text().splitlines()) == 2
    assert (tmp_path / "s.log.1").stat().st_size == LOG_BYTES_MAX + 1


async def test_what_traces_is_imported_before_forking_and_only_where_there_are_traces(
    tmp_path: Path,
) -> None:
    asked = sleeper(tmp_path / "log", "loaded", "opentelemetry.sdk.trace")
    async with ForkServerLauncher() as launcher:
        assert await (await launcher.launch(asked)).wait() == 0
    async with ForkServerLauncher(TRACING) as launcher:
        assert await (await launcher.launch(asked)).wait() == 1
        sleeping = await launcher.launch(sleeper(tmp_path / "other", "sleep"))
        parent_of(sleeping.pid).kill()
        await sleeping.wait()
        assert await (await launcher.launch(asked)).wait() == 1, "the next fork-server knows it too"


@pytest.mark.parametrize(
    ("module", "is_loaded"),
    [("nats", 1), ("shared.dialects.volcano", 1), ("click", 0), ("tutti.up.plan", 0)],
)
async def test_children_have_what_services_share_and_nothing_of_the_command_line(
    module: str, is_loaded: int, tmp_path: Path
) -> None:
    async with ForkServerLauncher() as launcher:
        child = await launcher.launch(sleeper(tmp_path / "log", "loaded", module))
        assert await child.wait() == is_loaded


async def test_the_end_of_the_fork_server_is_the_end_of_its_children(tmp_path: Path) -> None:
    async with ForkServerLauncher() as fork_server:
        child = await fork_server.launch(sleeper(tmp_path / "log", "sleep"))
    assert await child.wait() == -signal.SIGKILL
    await eventually(lambda: not lives(child.pid))


async def test_a_fork_server_that_was_killed_takes_its_children_along_and_is_started_again(
    fork_server: ForkServerLauncher, tmp_path: Path
) -> None:
    child = await fork_server.launch(sleeper(tmp_path / "log", "sleep"))
    parent_of(child.pid).kill()
    assert await child.wait() == -signal.SIGKILL
    await eventually(lambda: not lives(child.pid))
    again = await fork_server.launch(sleeper(tmp_path / "log", "say"))
    assert await again.wait() == 0


async def test_a_launch_that_was_cancelled_leaves_no_process(
    fork_server: ForkServerLauncher, tmp_path: Path
) -> None:
    task = asyncio.create_task(fork_server.launch(sleeper(tmp_path / "first", "sleep")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    other = await fork_server.launch(sleeper(tmp_path / "second", "sleep"))
    parent = parent_of(other.pid)
    await eventually(lambda: [each.pid for each in parent.children()] == [other.pid])


async def test_children_die_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from tests.tutti.up.test_launchers import ForkServerLauncher, sleeper\n"
        "async def main():\n"
        "    launcher = ForkServerLauncher()\n"
        "    child = await launcher.launch(sleeper(Path(sys.argv[1]), 'sleep'))\n"
        "    print(child.pid, flush=True)\n"
        "    await child.wait()\n"
        "asyncio.run(main())\n"
    )
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path / "log"), stdout=subprocess.PIPE
    )
    assert supervisor.stdout is not None
    pid = int(await supervisor.stdout.readline())
    fork_server = psutil.Process(pid).ppid()
    supervisor.kill()
    await supervisor.wait()
    await eventually(lambda: not lives(pid) and not lives(fork_server))


def test_services_start_no_threads_for_arithmetic_they_do_not_use() -> None:
    assert child_environ()["OPENBLAS_NUM_THREADS"] == "1"
