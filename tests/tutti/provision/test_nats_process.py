"""A running nats-server takes a renewed certificate without a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from click.testing import CliRunner

from shared.bus.connection import Bus
from shared.bus.errors import BusUnavailable
from tests.controlplane.certificates import Authority
from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually
from tutti.provision.command import nats_reload
from tutti.provision.nats_process import keep_loaded


def certify(folder: Path, authority: Authority) -> None:
    pair = authority.server(["127.0.0.1"])
    (folder / "tls.crt").write_bytes(pair.certificate_pem)
    (folder / "tls.key").write_bytes(pair.key_pem)


@asynccontextmanager
async def keeping(folder: Path, pid_file: Path, said: list[str]) -> AsyncIterator[None]:
    work = keep_loaded([folder], pid_file, said.append, every_s=0.02)
    task = asyncio.create_task(work, name="keep loaded")
    try:
        await eventually(lambda: said)
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_new_certificate_is_shown_and_connections_stay(tmp_path: Path) -> None:
    served, pid_file = tmp_path / "served", tmp_path / "pid"
    served.mkdir()
    old, new = Authority(), Authority()
    certify(served, old)
    for name, authority in (("old", old), ("new", new)):
        (tmp_path / name).write_bytes(authority.certificate_pem)
    config = (
        f'pid_file: "{pid_file}"\n'
        f'tls {{ cert_file: "{served}/tls.crt", key_file: "{served}/tls.key" }}'
    )
    said: list[str] = []
    async with running_nats_server(extra_config=config) as server:
        bus = await Bus.connect(
            server.url, name="one", tls_ca=str(tmp_path / "old"), patience_s=10.0
        )

        async def trusts_new() -> bool:
            try:
                other = await Bus.connect(
                    server.url, name="two", tls_ca=str(tmp_path / "new"), patience_s=2.0
                )
            except BusUnavailable:
                return False
            await other.close()
            return True

        try:
            async with keeping(served, pid_file, said):
                await eventually(pid_file.is_file)
                certify(served, new)
                assert await eventually(trusts_new, timeout_s=30)
            assert bus.connections == 1
            assert bus.connected
        finally:
            await bus.close()
    assert said[1].startswith(f"signalled nats-server {server_pid(said[1])} to reload: ")


def server_pid(line: str) -> int:
    return int(line.split()[2])


async def test_without_a_server_it_goes_on_looking(tmp_path: Path) -> None:
    served, said = tmp_path / "served", list[str]()
    served.mkdir()
    (served / "tls.crt").write_text("one")
    async with keeping(served, tmp_path / "pid", said):
        (served / "new").write_text("two")
        await eventually(lambda: len(said) > 2)
    assert set(said[1:]) == {f"no nats-server is named in {tmp_path / 'pid'}"}


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    done = CliRunner().invoke(nats_reload, ["--pid-file=x", str(tmp_path / "none")])
    assert done.exit_code == 2
