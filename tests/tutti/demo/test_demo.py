"""`tutti demo` as it is typed, on its own cluster, with the real suite: it passes and cleans up."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import psutil
import pytest

from shared.console.files import API_PATH
from tests.support.waiting import eventually
from tutti.lifeline import dying_with_parent

# Eight seconds each where nothing else runs; beside other suites several times that.
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

CLAIMS = (
    "Pod by pod, job 1 runs",
    "Pod by pod, job 2 is half started: its ps and 1 of 3 workers",
    "Pod by pod, job 2 takes the dead worker's place",
    "Now neither runs whole",
    "Job 1 runs whole",
    "Job 2 waits whole, its ps included",
    "`tutti why` explains it in one sentence: it lacks GPUs",
    "Job 2 starts only when job 1 frees its capacity",
    "Job 2 runs whole",
    "One of the two runs whole",
    "The other waits whole",
    "No deadlock: one, then the other",
    "Job 2 would fit there",
    "Capacity is reserved for the dead worker",
    "The worker gets its place back, job 2 waits",
    "Then job 2 runs",
    "N - 2 pods fit",
    "All N pods stay pending",
    "`tutti why` gives the reason: N - 2 of N pods fit, two GPUs are missing",
    "A PodDisruptionBudget declares the gang: minAvailable is N",
    "With two more nodes all N run",
    "No gang was ever bound in part",
    "No node was over-committed",
)
SURVIVED = "Every process was killed, and is back"

Start = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts `tutti demo` with flags, its folders below `tmp_path`, and lines of any length."""
    started: list[asyncio.subprocess.Process] = []

    async def start(*flags: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tutti.cli", "demo", "--fast", *flags),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "400"},
            preexec_fn=dying_with_parent(),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def reported(process: asyncio.subprocess.Process) -> str:
    """Everything that it says until it ends."""
    assert process.stdout is not None
    return (await process.stdout.read()).decode()


async def hears(process: asyncio.subprocess.Process, words: str) -> str:
    """Read on until a line has these words; returns it."""
    assert process.stdout is not None
    while words not in (line := (await process.stdout.readline()).decode()):
        assert line, f"it ended without saying {words!r}"
    return line


def left_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def family(process: asyncio.subprocess.Process) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def living(members: list[psutil.Process]) -> list[psutil.Process]:
    """An orphan's new parent may be slow to reap it: a zombie has ended too."""
    alive = []
    for each in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            if each.status() != psutil.STATUS_ZOMBIE:
                alive.append(each)
    return [each for each in alive if each.is_running()]


async def test_every_claim_holds_and_nothing_is_left(start: Start, tmp_path: Path) -> None:
    drawing = tmp_path / "demo.svg"
    process = await start(f"--record={drawing}")
    output = await reported(process)
    assert await process.wait() == 0, output
    for claim in CLAIMS:
        assert f"✓ {claim} (" in output
    assert output.count("✓") == len(CLAIMS)
    assert "✗" not in output
    assert "Every claim held." in output
    assert "<svg" in drawing.read_text()
    assert left_in(tmp_path) == [drawing.name]


@pytest.mark.certify
async def test_the_demo_passes_while_every_process_of_tutti_is_killed(start: Start) -> None:
    process = await start("--kill")
    output = await reported(process)
    assert await process.wait() == 0, output
    for claim in (*CLAIMS, SURVIVED):
        assert f"✓ {claim} (" in output
    assert output.count("SIGKILL to ") == 9


async def test_ctrl_c_ends_everything(start: Start, tmp_path: Path) -> None:
    process = await start()
    await hears(process, "Job 1 runs whole")
    members = family(process)
    assert len(members) >= 10  # tutti up, its fork server, NATS, seven services
    process.send_signal(signal.SIGINT)
    await reported(process)
    assert await process.wait() == 128 + signal.SIGINT
    assert not living(members)
    assert left_in(tmp_path) == []


async def test_a_killed_demo_takes_its_processes_along(start: Start) -> None:
    process = await start()
    await hears(process, "Job 1 runs whole")
    members = family(process)
    process.kill()
    await process.wait()
    await eventually(lambda: not living(members), because=f"all of {members} end")


async def test_without_tutti_it_fails_at_once_and_leaves_the_logs(
    start: Start, tmp_path: Path
) -> None:
    process = await start()
    await hears(process, "Job 1 runs whole")
    (up,) = [each for each in family(process) if "--ready-file" in " ".join(each.cmdline())]
    members = family(process)
    up.kill()
    output = await reported(process)
    assert await process.wait() == 2
    assert "Every claim held" not in output
    await eventually(lambda: not living(members), because=f"all of {members} end")
    (folder,) = left_in(tmp_path)
    assert f"Logs are left in {tmp_path / folder}" in output


async def test_what_is_kept_goes_on_until_ctrl_c(start: Start) -> None:
    process = await start("--keep")
    await hears(process, "The cluster and Tutti keep running: kubectl --kubeconfig ")
    assert len([each for each in family(process) if each.is_running()]) >= 10
    console, _, token = (await hears(process, "The console: ")).split()[-1].partition("#token=")
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.get(console) as page:
            assert "<title>Tutti</title>" in await page.text()

        async def shows_both() -> bool:
            async with session.get(console.replace("/console/", f"{API_PATH}/gangs")) as answer:
                found = (await answer.json())["items"]
            gangs = {gang["metadata"]["name"]: gang["status"] for gang in found}
            assert {name: status["phase"] for name, status in gangs.items()} == {
                "gang-scheduling-podgroup": "Running",
                "gang-scheduling-podgroup2": "Inqueue",
            }
            waiting = gangs["gang-scheduling-podgroup2"]["pending"]
            return bool(waiting["reason"] == "NotEnoughResources")

        await eventually(shows_both, because="the API has what the planner decided")
    process.send_signal(signal.SIGINT)
    await reported(process)
    assert await process.wait() == 0
