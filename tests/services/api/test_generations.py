"""A generation that ends because NATS does not answer leaves its address to the next one."""

import asyncio
import sys
from pathlib import Path

import pytest

from shared.bus.connection import Bus
from shared.bus.setup import ensure_streams
from tests.controlplane.certificates import Authority
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.support.free_ports import free_port
from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually
from tutti.lifeline import dying_with_parent

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]

#: One request of each generation gets no answer.
_DENIED = """
authorization: {users: [{user: all, password: all, permissions: {
  publish: {deny: ["$JS.API.STREAM.MSG.GET.VERDICTS", "$JS.API.DIRECT.GET.VERDICTS.>"]}}}]}
no_auth_user: all
"""


async def test_the_next_generation_listens_where_the_last_one_did(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(
        tmp_path / "kubeconfig",
        server="https://127.0.0.1:1",
        ca_pem=Authority().certificate_pem,
        credentials="token",
    )
    log = tmp_path / "log"
    async with running_nats_server(extra_config=_DENIED) as server:
        bus = await Bus.connect(server.url, name="test")
        await ensure_streams(bus)
        await bus.close()
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "services.api", f"--nats-url={server.url}"),
                *(f"--kubeconfig={kubeconfig}", f"--port={free_port()}", "--no-register"),
                stdout=output,
                stderr=output,
                preexec_fn=dying_with_parent(),
            )
        try:
            await eventually(
                lambda: log.read_text().count('"message":"serving"') >= 3 or process.returncode,
                timeout_s=60.0,
                because="two generations have ended",
            )
            assert process.returncode is None, log.read_text()
            assert '"waiting: ' in log.read_text()
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
