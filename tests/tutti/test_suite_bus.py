"""Which suite is meant: what was typed, or what `tutti up` left word of."""

from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from tutti.nats_server import NatsServer
from tutti.suite_bus import NoSuite, SuiteBus, suite_options
from tutti.up.readiness import STATE_FILE


async def test_what_is_typed_goes_before_what_is_found(tmp_path: Path) -> None:
    assert await SuiteBus(nats="nats://a:1", data_dir=tmp_path).find() == "nats://a:1"


async def test_a_folder_without_a_running_suite_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(NoSuite, match=f"no tutti up runs in {tmp_path}"):
        await SuiteBus(data_dir=tmp_path).find()


async def test_a_state_file_that_cannot_be_read_is_no_suite(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_bytes(b"half a li")
    with pytest.raises(NoSuite):
        await SuiteBus(data_dir=tmp_path).find()


async def test_a_block_has_the_bus_and_leaves_it_closed(nats_server: NatsServer) -> None:
    async with SuiteBus(nats=nats_server.url).connected("tutti-test") as bus:
        assert bus.connected
    assert not bus.connected


def test_a_command_gets_all_that_was_typed_as_one_argument() -> None:
    seen: list[SuiteBus] = []

    @click.command()
    @suite_options
    def ask(*, suite: SuiteBus) -> None:
        seen.append(suite)

    typed = ["--nats", "nats://a:1", "--nats-ca", "ca.crt", "--data-dir", "there"]
    done = CliRunner().invoke(ask, typed, catch_exceptions=False)
    assert done.exit_code == 0
    assert msgspec.structs.asdict(seen[0]) == {
        "nats": "nats://a:1",
        "nats_credentials": "",
        "nats_ca": "ca.crt",
        "data_dir": Path("there"),
        "kubeconfig": "",
        "context": "",
    }
