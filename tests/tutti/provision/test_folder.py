"""Keys and certificates in files."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from shared.bus.permissions import User, users
from tutti.provision.command import provision as command
from tutti.provision.plan import BadSecret
from tutti.provision.stores import provision_folder

NOW = datetime(2026, 11, 21, tzinfo=UTC)
USERS = (User(name="one", publish=(), subscribe=(), answers=False),)


def test_files_are_written_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "keys"

    written = provision_folder(folder, USERS, ["here"], NOW)

    assert set(written) == {
        *("ca/ca.crt", "ca/ca.key", "one/seed", "one/ca.crt"),
        *("server/ca.crt", "server/tls.crt", "server/tls.key", "server/authorization.conf"),
    }
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert provision_folder(folder, USERS, ["here"], NOW) == ()


def test_what_is_not_needed_any_more_goes(tmp_path: Path) -> None:
    provision_folder(tmp_path, USERS, ["here"], NOW)
    late = NOW + timedelta(days=3400)
    assert "ca/next.key" in provision_folder(tmp_path, USERS, ["here"], late)
    provision_folder(tmp_path, USERS, ["here"], late + timedelta(days=2))
    assert not (tmp_path / "ca" / "next.key").exists()


def test_a_broken_file_stops_everything(tmp_path: Path) -> None:
    provision_folder(tmp_path, USERS, ["here"], NOW)
    (tmp_path / "one" / "seed").write_text("nonsense")
    (tmp_path / "server" / "tls.crt").unlink()

    with pytest.raises(BadSecret, match="one, key seed"):
        provision_folder(tmp_path, USERS, ["here"], NOW)

    assert not (tmp_path / "server" / "tls.crt").exists()


def test_the_command_makes_a_folder_for_every_user(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [f"--folder={tmp_path}", "--address=nats"])

    assert done.exit_code == 0, done.output
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"ca", "server", *(user.name for user in users())}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--folder=x"], "with --address"),
        (["--namespace=x"], "either --namespace and --name, or --folder"),
    ],
)
def test_what_does_not_fit_together_is_refused(flags: list[str], said: str) -> None:
    done = CliRunner().invoke(command, flags)

    assert done.exit_code == 2
    assert said in done.output
