"""Which suite is meant: what was typed, or what `tutti up` left word of."""

from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from shared.bus.authorization import new_seed, public_key
from shared.bus.connection import Bus
from shared.bus.permissions import PROVISION, READER, users
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from tests.support.nats_server import running_nats_server
from tutti.api.failures import Refusal
from tutti.nats_server import NatsServer
from tutti.provision.stores import provision_folder
from tutti.service_access import ServiceBus, service_options
from tutti.up.readiness import STATE_FILE


async def test_what_is_typed_goes_before_what_is_found(tmp_path: Path) -> None:
    found = await ServiceBus(nats="nats://a:1", data_dir=tmp_path).find()
    assert found.nats_url == "nats://a:1"


async def test_a_folder_without_a_running_suite_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=f"no tutti up runs in {tmp_path}"):
        await ServiceBus(data_dir=tmp_path).find()


async def test_a_state_file_that_cannot_be_read_is_no_suite(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_bytes(b"half a li")
    with pytest.raises(Refusal, match="no tutti up runs in"):
        await ServiceBus(data_dir=tmp_path).find()


async def test_a_block_has_the_bus_and_leaves_it_closed(nats_server: NatsServer) -> None:
    async with ServiceBus(nats=nats_server.url).connected("tutti-test") as bus:
        assert bus.connected
    assert not bus.connected


async def test_people_with_a_key_of_their_own_find_the_streams(tmp_path: Path) -> None:
    made = provision_folder(tmp_path, users(), ["127.0.0.1"])
    assert made
    rights = (tmp_path / "server" / "authorization.conf").read_text()
    async with running_nats_server(extra_config=rights) as server:
        setup = await Bus.connect(
            server.url,
            name="setup",
            user=PROVISION,
            credentials=str(tmp_path / PROVISION / "seed"),
            patience_s=5.0,
        )
        await ensure_streams(setup)
        await setup.close()
        asked = ServiceBus(nats=server.url, nats_credentials=str(tmp_path / READER / "seed"))
        async with asked.connected("tutti-test") as bus:
            assert (await bus.stream_info(subjects.CLUSTER)).last_seq == 1
            assert await bus.get_last(subjects.DECISIONS, subjects.DECISIONS_OPENED)


async def test_a_key_of_a_server_without_our_accounts_asks_as_usual(tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    seed.write_text(new_seed())
    rights = f"authorization {{ users: [ {{ nkey: {public_key(seed.read_text())} }} ] }}"
    async with running_nats_server(extra_config=rights) as server:
        asked = ServiceBus(nats=server.url, nats_credentials=str(seed))
        async with asked.connected("tutti-test") as bus:
            await ensure_streams(bus)
            assert (await bus.stream_info(subjects.CLUSTER)).last_seq == 1


def test_a_command_gets_all_that_was_typed_as_one_argument() -> None:
    seen: list[ServiceBus] = []

    @click.command()
    @service_options
    def ask(*, services: ServiceBus) -> None:
        seen.append(services)

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
        "verbosity": 0,
    }
