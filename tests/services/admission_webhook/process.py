"""A webhook as a process, as users of the suite run it."""

import asyncio
import signal
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


class WebhookProcess:
    """`python -m services.admission_webhook`; its log is in the folder."""

    def __init__(self, process: asyncio.subprocess.Process, bus: Bus, log: Path) -> None:
        self.process = process
        self._bus = bus
        self._log = log

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self._log.read_text()

    async def status(self) -> ServiceStatus:
        """What it says of itself, once it is ready."""

        async def ready() -> ServiceStatus | None:
            assert self.process.returncode is None, self.log
            answers = await ask_all(
                self._bus,
                subjects.ASK_STATUS,
                StatusRequest(),
                codec.decode_status,
                wait_s=0.1,
                answers_max=8,
            )
            mine = [one for one in answers if one.pid == self.process.pid and one.ready]
            return mine[0] if mine else None

        found = await eventually(ready, timeout_s=20, because="the webhook is ready")
        assert found is not None
        return found

    async def terminate(self) -> int:
        """Stop it as an operator would; its exit status."""
        self.process.terminate()
        async with asyncio.timeout(15):
            return await self.process.wait()

    async def kill(self) -> None:
        """End it as a crash would."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@asynccontextmanager
async def a_webhook(
    folder: Path, bus: Bus, nats_url: str, *flags: str, instance: str = "admission-webhook-0"
) -> AsyncIterator[WebhookProcess]:
    """Run one; leaving kills it if it still lives."""
    log = folder / f"{instance}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "services.admission_webhook",
            f"--nats-url={nats_url}",
            f"--instance={instance}",
            "--port=0",
            *flags,
            stdout=output,
            stderr=output,
            preexec_fn=dying_with_parent(),
        )
    found = WebhookProcess(process, bus, log)
    try:
        yield found
    finally:
        await found.kill()
