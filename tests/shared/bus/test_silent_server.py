"""A server that says nothing any more is left at once, not after an attempt to close TLS."""

import os
import signal
from pathlib import Path

import pytest

from shared.bus import connection
from shared.bus.connection import Bus
from tests.controlplane.certificates import Authority
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer, NatsServerSettings


async def test_a_server_that_falls_silent_is_given_up_without_waiting_for_its_goodbye(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PING_INTERVAL_S", 0.3)
    authority = Authority()
    pair = authority.server(["127.0.0.1"])
    (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    server = NatsServer(
        NatsServerSettings(
            data_dir=tmp_path / "nats",
            extra_config=f'tls {{ cert_file: "{tmp_path}/tls.crt", '
            f'key_file: "{tmp_path}/tls.key" }}\n',
        )
    )
    await server.start()
    reported: list[str] = []
    bus = await Bus.connect(
        server.url,
        name="one",
        tls_ca=str(tmp_path / "ca.crt"),
        on_health=lambda _, problem: reported.append(problem),
        patience_s=10.0,
    )
    try:
        reported.clear()
        os.kill(server.pid, signal.SIGSTOP)
        # Three pings, each after 0.3 s; asyncio waits 30 s for the end of TLS.
        await eventually(lambda: any(reported), timeout_s=10)
    finally:
        os.kill(server.pid, signal.SIGCONT)
        await bus.close()
        await server.stop()
