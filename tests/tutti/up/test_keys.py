"""The users of Tutti's own NATS: a client without a key is refused, one with a service's key can do
no more than the service, and a folder of before, or of a killed Tutti, continues.
"""

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import nats
import pytest
from msgspec.structs import replace

from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.jetstream_api import StreamInfo
from shared.bus.permissions import PROVISION, local_users
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from shared.runtime.whole_files import write_whole
from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually
from tests.tutti.up.running import healthy, suite, tutti
from tutti.api.failures import Refusal
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.up.keys import FOLDER, Keys, keep
from tutti.up.nats import running_nats

USERS = local_users(planners=2, webhooks=1, apis=1)


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    async with EmbeddedCluster(Settings(nodes=2)) as cluster:
        yield cluster.kubeconfig(tmp_path / "kubeconfig")


def seed_of(keys: Keys, user: str) -> str:
    return Path(keys.file(user)).read_text()


async def answer_to_a_stranger(url: str) -> str:
    """What the server says to a client without a key, in its own protocol: nats-py leaves the
    connection open that was refused.
    """
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(b"CONNECT {}\r\nPING\r\n")
        async with asyncio.timeout(20.0):
            return (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()


async def look(url: str, keys: Keys) -> StreamInfo:
    """What DECISIONS holds, as the provisioning user sees it."""
    bus = await Bus.connect(
        url, name="test", user=PROVISION, credentials=keys.file(PROVISION), patience_s=5.0
    )
    try:
        return replace(await bus.stream_info(subjects.DECISIONS), now_ms=None)
    finally:
        await bus.close()


def test_keys_are_made_once_for_their_owner_only(tmp_path: Path) -> None:
    keys, rights = keep(tmp_path, USERS)
    assert keep(tmp_path, USERS) == (keys, rights)
    assert stat.S_IMODE((tmp_path / FOLDER).stat().st_mode) == 0o700
    files = list((tmp_path / FOLDER).iterdir())
    assert {path.stem for path in files} == {user.name for user in USERS}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert not [path for path in files if path.read_text() in rights]


def test_a_file_that_is_no_key_is_named_and_not_made_again(tmp_path: Path) -> None:
    keys, _ = keep(tmp_path, USERS)
    Path(keys.file("binder")).write_text("a secret of something else")
    with pytest.raises(Refusal, match=r"nats-keys/binder\.nk: no nkey seed"):
        keep(tmp_path, USERS)
    assert Path(keys.file("binder")).read_text() == "a secret of something else"


def test_a_nats_that_was_given_has_no_keys_of_ours() -> None:
    assert Keys().file("binder") == ""
    assert Keys().flags("binder") == []


@pytest.mark.integration
async def test_a_folder_of_before_there_were_keys_keeps_what_its_streams_hold(
    tmp_path: Path,
) -> None:
    async with running_nats_server(data_dir=tmp_path / "nats") as server:
        bus = await Bus.connect(server.url, name="before")
        await ensure_streams(bus, planners=2, webhooks=1, apis=1)
        await bus.request(subjects.note("remembered"), b"told", timeout_s=10.0)
        before = replace(await bus.stream_info(subjects.DECISIONS), now_ms=None)
        await bus.close()
    for _ in range(2):
        async with running_nats("", tmp_path, USERS) as ours:
            assert await look(ours.url, ours.keys) == before


@pytest.mark.integration
@pytest.mark.slow
async def test_a_client_without_a_key_is_refused_and_the_watchers_key_cannot_append_decisions(
    kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path, "--no-webhook") as running:
        ready = await running.wait_ready()
        assert "Authorization Violation" in await answer_to_a_stranger(ready.nats_url)
        data_dir = tmp_path / "data"
        keys = Keys(folder=data_dir / FOLDER)
        before = await look(ready.nats_url, keys)
        refused: list[str] = []

        async def on_error(error: Exception) -> None:
            refused.append(str(error))

        thief = await nats.connect(
            ready.nats_url,
            nkeys_seed_str=seed_of(keys, "watcher"),
            error_cb=on_error,
        )
        await thief.publish(subjects.act("g"), b"bind it")
        await eventually(lambda: refused)
        await thief.close()
        assert "permissions violation for publish to" in refused[0].lower()
        assert await look(ready.nats_url, keys) == before
        # People need not know of keys: what asks finds the reader's.
        assert "binder-0" in await healthy(f"--data-dir={data_dir}")
        bundle = str(tmp_path / "bundle.tar.gz")
        status, text, errors = await tutti("bundle", bundle, f"--data-dir={data_dir}")
        assert status == 0, (text, errors)
        assert "nats-keys" not in text
        asked = ("--data-dir", str(data_dir), "--nats-credentials", keys.file("binder"))
        status, _, _ = await tutti("status", *asked, "--interval=0.1")
        assert status != 0, "a binder may not ask"


@pytest.mark.integration
@pytest.mark.slow
async def test_a_suite_that_was_killed_starts_again_with_the_same_keys_and_streams(
    kubeconfig: Path, tmp_path: Path
) -> None:
    keys = Keys(folder=tmp_path / "data" / FOLDER)
    async with suite(kubeconfig, tmp_path, "--no-webhook") as first:
        ready = await first.wait_ready()
        before = await look(ready.nats_url, keys)
        seed = seed_of(keys, "gang-planner")
        os.kill(first.process.pid, signal.SIGKILL)
        await eventually(lambda: not first.left())
    (tmp_path / "ready.json").unlink()
    async with suite(kubeconfig, tmp_path, "--no-webhook") as second:
        ready = await second.wait_ready()
        assert (await look(ready.nats_url, keys)).generation == before.generation
        assert seed_of(keys, "gang-planner") == seed
        os.kill(ready.nats_pid, signal.SIGKILL)
        await eventually(lambda: "nats was killed by SIGKILL" in second.errors)

        async def again() -> bool:
            try:
                found = await look(ready.nats_url, keys)
            except BusError:
                return False
            return found.generation == before.generation

        await eventually(again, timeout_s=30.0, because="NATS is started with the same users")


@pytest.mark.integration
@pytest.mark.slow
async def test_a_key_that_is_none_ends_the_start_with_its_name(
    kubeconfig: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data" / FOLDER
    folder.mkdir(parents=True)
    write_whole(folder / "reader.nk", b"junk")
    flags = (f"--kubeconfig={kubeconfig}", f"--data-dir={tmp_path / 'data'}", "--no-webhook")
    status, _, errors = await tutti("up", *flags)
    assert status == 1
    assert "reader.nk: no nkey seed" in errors
