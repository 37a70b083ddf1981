"""A whole process of the sample service on a real server: its start, its end, its crashes."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from bench.suite_eyes import tasks_of
from shared.bus.authorization import new_seed
from shared.bus.connection import Bus
from shared.bus.questions import ask_all
from shared.contracts import codec
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS
from shared.runtime.lifecycle import instance_of, ordinal_of
from shared.runtime.settings import CommonSettings
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

Start = Callable[..., Awaitable[Process]]
STEPS = ["stop", "finish", "publish", "release"]


@pytest.fixture
async def start(nats_server: NatsServer) -> AsyncIterator[Start]:
    """Starts sample services; kills what a test leaves running."""
    async with AsyncExitStack() as stack:

        async def start_one(*flags: str) -> Process:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.shared.runtime.sample_service",
                f"--nats-url={nats_server.url}",
                *flags,
                stdout=PIPE,
                stderr=PIPE,
            )

            async def end() -> None:
                if process.returncode is None:
                    process.kill()
                await process.communicate()

            stack.push_async_callback(end)
            return process

        yield start_one


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def rest(process: Process) -> tuple[list[str], str, int]:
    """What it still says, its log, and its status."""
    out, log = await process.communicate()
    assert process.returncode is not None
    return out.decode().split(), log.decode(), process.returncode


async def status(nats_server: NatsServer) -> ServiceStatus:
    bus = await Bus.connect(nats_server.url, name="asker", patience_s=5.0)
    try:
        answers = await ask_all(
            bus, ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=2.0, answers_max=1
        )
    finally:
        await bus.close()
    return answers[0]


async def test_it_starts_answers_and_stops_in_order(start: Start, nats_server: NatsServer) -> None:
    process = await start("--instance", "sample-a")
    assert await line(process) == "ready sample-a"
    seen = await status(nats_server)
    assert (seen.service, seen.instance, seen.pid, seen.ready) == (
        "sample",
        "sample-a",
        process.pid,
        True,
    )
    assert seen.figures["things_total"] == 7.0
    assert seen.figures["ready"] == seen.figures["active"] == 1.0
    assert tasks_of(seen) > 0
    url = f"http://127.0.0.1:{seen.http_port}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
    process.send_signal(signal.SIGTERM)
    said, _, code = await rest(process)
    assert said == [*STEPS, "cancelled"]
    assert code == 0


async def test_ctrl_c_is_the_same(start: Start) -> None:
    process = await start()
    await line(process)
    process.send_signal(signal.SIGINT)
    said, _, code = await rest(process)
    assert (said, code) == ([*STEPS, "cancelled"], 0)


async def test_a_main_that_returns_ends_the_process_in_order(start: Start) -> None:
    process = await start("--trouble", "end")
    await line(process)
    said, _, code = await rest(process)
    assert (said, code) == (STEPS, 0)


@pytest.mark.parametrize("trouble", ["main", "task", "handler"])
async def test_a_crash_releases_the_lease_and_says_why(start: Start, trouble: str) -> None:
    process = await start("--trouble", trouble)
    said, log, code = await rest(process)
    assert [word for word in said if word in STEPS] == ["release"]
    assert f"a bug in a {trouble}".replace("a main", "main") in log
    assert code == 1


async def test_a_superseded_service_begins_again_in_the_same_process(
    start: Start, nats_server: NatsServer
) -> None:
    process = await start("--trouble", "superseded", "--instance", "sample-a")
    assert await line(process) == "release"
    assert await line(process) == "ready sample-a"
    assert (await status(nats_server)).pid == process.pid
    process.terminate()
    said, log, code = await rest(process)
    assert (said, code) == ([*STEPS, "cancelled"], 0)
    assert "superseded: CLUSTER: another wrote" in log
    assert "Traceback" not in log


async def test_a_service_that_lacks_its_streams_waits_in_the_same_process(
    start: Start, nats_server: NatsServer
) -> None:
    process = await start("--trouble", "lacking", "--instance", "sample-a")
    assert [await line(process) for _ in range(4)] == [*["release"] * 3, "ready sample-a"]
    assert (await status(nats_server)).pid == process.pid
    process.terminate()
    said, log, code = await rest(process)
    assert (said, code) == ([*STEPS, "cancelled"], 0)
    assert "waiting: STREAM.INFO.CLUSTER: no process listens" in log
    assert "Traceback" not in log


async def test_a_step_that_fails_does_not_keep_the_next_from_running(start: Start) -> None:
    process = await start("--trouble", "finish")
    await line(process)
    process.terminate()
    said, log, code = await rest(process)
    assert said == ["stop", "publish", "release", "cancelled"]
    assert "cannot finish" in log
    assert code == 0


async def test_a_step_that_hangs_is_cut_off_at_the_grace(start: Start) -> None:
    process = await start("--trouble", "slow", "--shutdown-grace-s", "0.2")
    await line(process)
    process.terminate()
    said, log, code = await rest(process)
    assert said == ["stop", "publish", "release", "cancelled"]
    assert "finish did not end in time" in log
    assert code == 0


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again(start: Start) -> None:
    process = await start("--trouble", "stubborn")
    await line(process)
    process.terminate()
    said, _, code = await rest(process)
    assert sorted(said) == sorted([*STEPS, "cancelled", "swallowed"])
    assert code == 0


async def test_a_second_signal_does_not_wait_for_the_steps(start: Start) -> None:
    process = await start("--trouble", "slow", "--shutdown-grace-s", "60")
    await line(process)
    process.terminate()
    assert await line(process) == "stop"
    process.terminate()
    said, _, code = await rest(process)
    assert said == ["cancelled", "release"]
    assert code == 1


async def test_a_signal_while_it_closes_ends_it_in_order(start: Start) -> None:
    """Found by the simulation (seed 291): it died of the cancellation."""
    process = await start("--trouble", "unreleased", "--shutdown-grace-s", "60")
    await line(process)
    for _ in range(2):
        process.terminate()
        while (said := await line(process)) != "release":
            assert said, "it has ended"
    process.terminate()
    _, log, code = await rest(process)
    assert "received another signal: exiting without closing connections" in log
    assert "Traceback" not in log
    assert code == 1


async def test_a_service_waits_unready_for_its_credentials(
    start: Start, nats_server: NatsServer, tmp_path: Path
) -> None:
    """A pod may start before the Secret exists that its volume shows."""
    seed = tmp_path / "seed"
    process = await start(f"--nats-credentials={seed}", "--log-format", "text")
    assert process.stderr is not None
    while "not ready: nats: " not in (text := (await process.stderr.readline()).decode()):
        assert text, "it has ended"
    assert str(seed) in text
    seed.write_text(new_seed())
    assert await line(process) == "ready sample-0"
    process.terminate()
    _, _, code = await rest(process)
    assert code == 0


async def test_while_nats_is_away_it_waits_unready_and_can_be_stopped(
    start: Start, nats_server: NatsServer
) -> None:
    await nats_server.kill()
    process = await start("--http-port", "0", "--log-format", "text")
    assert process.stderr is not None
    port = ""

    async def started() -> bool:
        nonlocal port
        assert process.stderr is not None
        text = (await process.stderr.readline()).decode()
        port = text.split("http_port=")[1].split()[0] if "http_port=" in text else ""
        return bool(port)

    await eventually(started)

    async def reasons() -> bool:
        url = f"http://127.0.0.1:{port}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert response.status == 503
            return "nats: connection refused" in await response.text()

    await eventually(reasons)
    process.terminate()
    _, _, code = await rest(process)
    assert code == 0
    await nats_server.start()


def test_the_ordinal_is_taken_from_the_host_only_in_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "gang-planner-3")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert ordinal_of(CommonSettings()) == 0
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert ordinal_of(CommonSettings()) == 3
    assert ordinal_of(CommonSettings(ordinal=1)) == 1
    assert instance_of("gang_planner", CommonSettings()) == "gang_planner-3"
    assert instance_of("gang_planner", CommonSettings(instance="x")) == "x"
