"""What a nats-server whose store failed says of itself, and whether a file can be written.

The tests with a small tmpfs need root, to mount it.
"""

import asyncio
import shutil
from pathlib import Path

import aiohttp
import pytest

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.setup import ensure_streams
from tests.support.small_disk import fill, small_disk
from tests.support.waiting import eventually
from tutti.nats_server import (
    NatsServer,
    NatsServerSettings,
    NoHealth,
    read_problem,
    store_problem,
    write_problem,
)
from tutti.provision.nats_process import keep_storing

__all__ = ["small_disk"]

FULL = b"""{"status":"error","errors":[{"type":"STREAM","account":"$G","stream":"CLUSTER","error":
"JetStream stream '$G > CLUSTER' write error: write /x/1.blk: no space left on device"}]}"""
LAGGING = b"""{"status":"error","errors":[{"type":"STREAM","account":"$G","stream":"CLUSTER",
"error":"JetStream stream '$G > CLUSTER' is not current"}]}"""
JOINING = [
    "JetStream has not established contact with a meta leader",
    "JetStream is not current with the meta leader",
    "JetStream is still recovering meta layer",
]
OFF = b"""{"status":"error","errors":[{"type":"JETSTREAM","error":"JetStream is not enabled"}]}"""


def test_only_what_a_restart_ends_is_a_problem_of_the_store() -> None:
    assert "no space left" in read_problem(FULL)
    assert "not enabled" in read_problem(OFF)
    assert read_problem(LAGGING) == "", "a replica that catches up is not helped by a restart"
    assert read_problem(b'{"status":"ok"}') == ""
    assert read_problem(b"<html>") == ""


@pytest.mark.parametrize("error", JOINING)
def test_a_server_that_joins_its_cluster_is_not_helped_by_a_restart(error: str) -> None:
    health = f'{{"status":"error","errors":[{{"type":"JETSTREAM","error":"{error}"}}]}}'
    assert read_problem(health.encode()) == ""


def test_a_folder_is_tried_by_writing_and_nothing_is_left(tmp_path: Path) -> None:
    assert write_problem(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
    assert "No such file" in write_problem(tmp_path / "gone")


async def test_a_server_that_is_not_there_has_no_health() -> None:
    with pytest.raises(NoHealth):
        await store_problem("http://127.0.0.1:1")


async def store_until_nothing_is(bus: Bus) -> None:
    for _ in range(100):
        try:
            await bus.request("cluster.x", bytes(4096), timeout_s=1.0)
        except NoAnswer:
            return
    raise AssertionError("everything was stored")


@pytest.mark.integration
async def test_a_write_error_outlives_the_full_disk_until_the_server_is_restarted(
    small_disk: Path,
) -> None:
    """The fact that everything here rests on: were it not so, no restart would be needed."""
    server = NatsServer(NatsServerSettings(data_dir=small_disk / "nats"))
    await server.start()
    bus = await Bus.connect(server.url, name="test")
    try:
        await ensure_streams(bus)
        assert await store_problem(server.monitor_url) == ""
        fill(small_disk / "filler")
        await store_until_nothing_is(bus)
        assert "no space left" in await store_problem(server.monitor_url)
        assert "No space left" in write_problem(small_disk)
        (small_disk / "filler").unlink()
        assert write_problem(small_disk) == ""
        assert "no space left" in await store_problem(server.monitor_url), "it is sticky"
        with pytest.raises(NoAnswer):
            await bus.request("cluster.x", b"x", timeout_s=1.0)
        await server.stop()
        await server.start()
        assert await store_problem(server.monitor_url) == ""
        await bus.wait_connected()
        await bus.request("cluster.x", b"x", timeout_s=5.0)
    finally:
        await bus.close()
        await server.stop()


@pytest.mark.integration
async def test_a_server_without_its_peers_has_no_problem_of_the_store(tmp_path: Path) -> None:
    """As in a rolling update of three; its own check of health fails until the peers are back."""
    routes = 'routes: ["nats://127.0.0.1:1", "nats://127.0.0.1:2"]'
    cluster = f'server_name: a, cluster {{ name: x, host: "127.0.0.1", port: -1, {routes} }}'
    server = NatsServer(NatsServerSettings(data_dir=tmp_path, extra_config=cluster))
    await server.start()
    try:
        health = f"{server.monitor_url}/healthz?details=true"
        async with aiohttp.ClientSession() as session, session.get(health) as answer:
            assert '"type":"JETSTREAM"' in await answer.text()
        assert await store_problem(server.monitor_url) == ""
    finally:
        await server.stop()


@pytest.mark.integration
async def test_beside_a_server_in_a_pod_it_is_ended_once_it_can_store_again(
    small_disk: Path, tmp_path: Path
) -> None:
    pid_file, said = tmp_path / "pid", list[str]()
    config = f'pid_file: "{pid_file}"'
    server = NatsServer(NatsServerSettings(data_dir=small_disk / "nats", extra_config=config))
    await server.start()
    bus = await Bus.connect(server.url, name="test")
    await ensure_streams(bus)
    watching = asyncio.create_task(
        keep_storing(
            server.monitor_url, small_disk, pid_file, said.append, every_s=0.05, restart_s=60
        )
    )
    try:
        fill(small_disk / "filler")
        await store_until_nothing_is(bus)
        await eventually(lambda: len(said) == 1)
        assert "stores nothing" in said[0]
        ending = asyncio.create_task(server.wait())
        assert not ending.done(), "a restart would not help yet"
        await bus.close()
        (small_disk / "filler").unlink()
        async with asyncio.timeout(10):
            await ending
        await eventually(lambda: len(said) == 2)
        assert said[1].startswith("stopped nats-server ")
    finally:
        watching.cancel()
        await bus.close()
        await server.stop()


@pytest.mark.integration
async def test_a_server_does_not_start_without_its_users_because_the_disk_is_full(
    small_disk: Path,
) -> None:
    """Its configuration is there whole or not at all."""
    server = NatsServer(NatsServerSettings(data_dir=small_disk / "nats", extra_config="# users"))
    await server.start()
    await server.stop()
    config = small_disk / "nats" / "nats.conf"
    before = config.read_text()
    assert "# users" in before
    fill(small_disk / "filler")
    changed = NatsServer(NatsServerSettings(data_dir=small_disk / "nats", extra_config="# 2"))
    with pytest.raises(OSError, match="No space left"):
        await changed.start()
    assert config.read_text() == before
    (small_disk / "filler").unlink()
    await changed.start()
    assert "# 2" in config.read_text()
    await changed.stop()


@pytest.mark.integration
async def test_a_server_whose_folder_was_removed_says_that_all_is_well(tmp_path: Path) -> None:
    """It writes into files that no process can open any more: so the launcher checks the folder."""
    server = NatsServer(NatsServerSettings(data_dir=tmp_path / "nats"))
    await server.start()
    bus = await Bus.connect(server.url, name="test")
    await ensure_streams(bus)
    shutil.rmtree(server.store_dir)
    await eventually(lambda: not server.store_dir.exists())
    assert await store_problem(server.monitor_url) == ""
    await bus.close()
    await server.stop()
