"""Keeps keys and certificates in files, `FOLDER/NAME/KEY`, as Secrets are mounted."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from shared.bus.permissions import User
from shared.runtime.whole_files import write_whole
from tutti.provision.plan import BadSecret, names, plan


def provision(
    folder: Path, users: Sequence[User], addresses: Sequence[str], now: datetime | None = None
) -> tuple[str, ...]:
    """Create missing files, renew certificates that expire soon, and return the written paths.

    Blocks. Only the owner can read the files. Idempotent: after a failure run it again.

    Raises:
        BadSecret: The content of a file is not valid; nothing is written.
        OSError: The folder cannot be read or written.
    """
    wanted_names = names(users)
    stored = {name: _read(folder / name) for name in wanted_names if (folder / name).is_dir()}
    try:
        wanted = plan(users, tuple(addresses), stored, now or datetime.now(UTC))
    except BadSecret as error:
        raise BadSecret(f"{folder}: {error}") from error
    written: list[str] = []
    for name in wanted_names:
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        known = stored.get(name, {})
        for key, value in wanted[name].items():
            if known.get(key) != value:
                write_whole(folder / name / key, value)
                written.append(f"{name}/{key}")
        for key in sorted(known.keys() - wanted[name].keys()):
            (folder / name / key).unlink()
    return tuple(written)


def _read(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    return {path.name: path.read_bytes() for path in files}
