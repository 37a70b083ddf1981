import asyncio
import os
import signal
import sys
import sysconfig
from pathlib import Path
from urllib.parse import urlsplit

import nats
import psutil
import pytest

from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer, NatsServerError, NatsServerSettings, find_nats_server

pytestmark = pytest.mark.integration


async def stored_count(url: str) -> int:
    client = await nats.connect(url)
    try:
        return (await client.jetstream().stream_info("S")).state.messages
    finally:
        await client.close()


async def store_one(url: str) -> None:
    client = await nats.connect(url)
    try:
        stream = client.jetstream()
        await stream.add_stream(name="S", subjects=["s"])
        await stream.publish("s", b"kept")
    finally:
        await client.close()


async def test_the_server_answers_on_its_address_and_has_jetstream(nats_server: NatsServer) -> None:
    await store_one(nats_server.url)
    assert await stored_count(nats_server.url) == 1


async def test_the_server_listens_on_the_loopback_only(nats_server: NatsServer) -> None:
    listening = {
        connection.laddr.ip
        for connection in psutil.Process(nats_server.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


async def test_address_and_stored_messages_survive_a_crash_of_the_server(tmp_path: Path) -> None:
    async with running_nats_server(data_dir=tmp_path) as server:
        await store_one(server.url)
        url, monitor_url = server.url, server.monitor_url
        await server.kill()
        await server.start()
        assert (server.url, server.monitor_url) == (url, monitor_url)
        assert await stored_count(url) == 1


async def test_a_named_data_folder_is_kept_and_an_unnamed_one_is_removed(tmp_path: Path) -> None:
    async with running_nats_server(data_dir=tmp_path / "new") as named:
        assert named.data_dir == tmp_path / "new"
    async with running_nats_server() as unnamed:
        assert unnamed.data_dir.is_dir()
    assert (tmp_path / "new" / "store").is_dir()
    assert not unnamed.data_dir.exists()


async def test_a_second_server_on_the_same_folder_is_refused_until_the_first_has_ended(
    tmp_path: Path,
) -> None:
    async with running_nats_server(data_dir=tmp_path):
        second = NatsServer(NatsServerSettings(data_dir=tmp_path))
        with pytest.raises(NatsServerError, match="another nats-server runs on"):
            await second.start()
    async with running_nats_server(data_dir=tmp_path) as next_one:
        assert urlsplit(next_one.url).port


async def test_a_taken_port_fails_with_the_end_of_the_servers_log(nats_server: NatsServer) -> None:
    with pytest.raises(NatsServerError, match="address already in use"):
        async with running_nats_server(port=urlsplit(nats_server.url).port or 0):
            pass


async def test_a_wrong_configuration_fails_and_leaves_no_process(tmp_path: Path) -> None:
    server = NatsServer(
        NatsServerSettings(data_dir=tmp_path, extra_config='authorization: "not a map"')
    )
    with pytest.raises(NatsServerError, match="ended with 1"):
        await server.start()
    with pytest.raises(NatsServerError, match="no nats-server runs"):
        _ = server.pid


async def test_extra_configuration_reaches_the_server(tmp_path: Path) -> None:
    async with running_nats_server(extra_config="max_payload: 1000") as server:
        client = await nats.connect(server.url)
        assert client.max_payload == 1000
        await client.close()


@pytest.fixture
def deaf_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the server's place, a program that runs and never listens."""
    script = tmp_path / "deaf"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)

    def find() -> Path:
        return script

    monkeypatch.setattr("tutti.nats_server.find_nats_server", find)


@pytest.mark.usefixtures("deaf_binary")
async def test_a_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    server = NatsServer(NatsServerSettings(data_dir=tmp_path / "data"))
    before = set(psutil.Process().children())
    starting = asyncio.create_task(server.start())
    await eventually(lambda: set(psutil.Process().children()) - before)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not set(psutil.Process().children()) - before


@pytest.mark.usefixtures("deaf_binary")
async def test_a_server_that_never_listens_fails_the_start_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tutti.nats_server.START_TIMEOUT_S", 0.05)
    server = NatsServer(NatsServerSettings(data_dir=tmp_path / "data"))
    before = set(psutil.Process().children())
    with pytest.raises(NatsServerError, match="not ready in"):
        await server.start()
    assert not set(psutil.Process().children()) - before


async def test_a_server_that_someone_else_ended_is_reported_and_can_be_started_again(
    nats_server: NatsServer,
) -> None:
    os.kill(nats_server.pid, signal.SIGKILL)
    assert await nats_server.wait() == -signal.SIGKILL
    await nats_server.start()
    await store_one(nats_server.url)


async def test_stopping_twice_is_harmless() -> None:
    async with running_nats_server() as server:
        await server.stop()
        await server.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
async def test_the_server_dies_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from tests.support.nats_server import running_nats_server\n"
        "async def main():\n"
        "    async with running_nats_server(data_dir=Path(sys.argv[1])) as server:\n"
        "        print(server.pid, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    server = psutil.Process(int(await parent.stdout.readline()))
    parent.kill()
    await parent.wait()

    def ended() -> bool:
        # An orphan's new parent may be slow to reap it: a zombie has ended too.
        return not server.is_running() or server.status() == psutil.STATUS_ZOMBIE

    await eventually(ended, because="the orphaned nats-server ends")


async def test_a_missing_binary_is_an_error_that_names_the_ways_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_scripts(_name: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr(sysconfig, "get_path", no_scripts)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NatsServerError, match=r"extra `embedded`.*--nats"):
        find_nats_server()
