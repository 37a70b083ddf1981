"""A CA's file may be replaced while a connection lives."""

from pathlib import Path

import pytest

from shared.bus.authorization import authorization, new_seed, public_key
from shared.bus.connection import Bus
from shared.bus.permissions import User
from shared.bus.security import Security
from tests.controlplane.certificates import Authority
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer, NatsServerSettings

USER = User(name="one", publish=("a.>",), subscribe=("_INBOX_one.>",), answers=False)


def certify(folder: Path, authority: Authority) -> None:
    pair = authority.server(["127.0.0.1"])
    (folder / "tls.crt").write_bytes(pair.certificate_pem)
    (folder / "tls.key").write_bytes(pair.key_pem)


async def test_a_bus_trusts_a_new_ca_when_its_file_was_replaced_before_the_server_came_back(
    tmp_path: Path,
) -> None:
    seed, ca = tmp_path / "seed", tmp_path / "ca.crt"
    seed.write_text(new_seed())
    old, new = Authority(), Authority()
    certify(tmp_path, old)
    ca.write_bytes(old.certificate_pem)
    settings = NatsServerSettings(
        data_dir=tmp_path / "nats",
        extra_config=(
            f'tls {{ cert_file: "{tmp_path}/tls.crt", key_file: "{tmp_path}/tls.key" }}\n'
            + authorization([USER], {"one": public_key(seed.read_text())})
        ),
    )
    server = NatsServer(settings)
    await server.start()
    bus = await Bus.connect(
        server.url, name="one", credentials=str(seed), tls_ca=str(ca), patience_s=10.0
    )
    try:
        await server.stop()
        certify(tmp_path, new)
        ca.write_bytes(new.certificate_pem + old.certificate_pem)
        await server.start()
        await eventually(lambda: bus.connections == 2, timeout_s=30)
    finally:
        await bus.close()
        await server.stop()


def test_a_ca_file_that_is_missing_or_half_written_is_looked_at_again(tmp_path: Path) -> None:
    old, new = Authority(), Authority()
    path = tmp_path / "ca.crt"
    path.write_bytes(old.certificate_pem)
    security = Security("", str(path))
    context = security.options["tls"]
    path.unlink()
    security.refresh()
    path.write_bytes(new.certificate_pem[:40])
    security.refresh()
    assert len(context.get_ca_certs()) == 1
    path.write_bytes(new.certificate_pem)
    security.refresh()
    assert len(context.get_ca_certs()) == 2


def test_without_a_ca_there_is_nothing_to_look_at() -> None:
    assert not Security("", "").may_change


def test_a_missing_file_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Security(str(tmp_path / "none"), "")
