"""A service as a process, started as it is in production, and stopped by SIGTERM."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from shared.bus.connection import Bus
from shared.bus.questions import ask_all
from shared.contracts import codec, subjects
from shared.contracts.questions import ServiceStatus, StatusRequest
from tests.support.waiting import eventually
from tutti.lifeline import dying_with_parent

STOP_TIMEOUT_S = 15.0


@asynccontextmanager
async def a_service(
    name: str, bus: Bus, nats_url: str, log: Path, *flags: str, ready_s: float = 60.0
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `python -m services.<name>` until it is ready; leaving stops it and expects status 0."""
    command = [sys.executable, "-m", f"services.{name}", f"--nats-url={nats_url}", *flags]
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=file, stderr=file, preexec_fn=dying_with_parent()
        )
    try:
        await eventually(lambda: _is_ready(name, bus), timeout_s=ready_s, because=f"{name} ready")
        yield process
        process.terminate()
        async with asyncio.timeout(STOP_TIMEOUT_S):
            status = await process.wait()
        assert status == 0, f"it ended with {status}"
    except BaseException:
        sys.stderr.write(_end_of(log))
        raise
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _end_of(log: Path) -> str:
    return log.read_text()[-3_000:]


async def _is_ready(name: str, bus: Bus) -> ServiceStatus | None:
    answers = await ask_all(
        bus, subjects.ASK_STATUS, StatusRequest(), codec.decode_status, wait_s=0.1
    )
    known_as = name.replace("_", "-")
    return next((one for one in answers if one.service == known_as and one.ready), None)
