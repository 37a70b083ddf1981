"""The users of a suite's own NATS: an nkey each, made once and kept in the data folder, readable
for its owner only.

They are the chart's (`shared.bus.permissions`), so that what holds in a cluster holds here: a
client without a key is refused, and one with a service's key can do what that service does. Only
without TLS: only this machine's processes can listen.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from shared.bus.authorization import SERVICES, BadSeed, authorization, new_seed, public_key
from shared.bus.permissions import User
from shared.runtime.whole_files import write_whole

#: In the data folder.
FOLDER: Final = "nats-keys"
#: Where nats-server keeps the streams of connections without a user, and of those in an account.
_STREAMS: Final = Path("store", "jetstream")
_BEFORE: Final = "$G"


class BadKey(Exception):
    """A file holds no seed of a user; the message names it. It is not made again unasked."""


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """Where each user finds its seed; nowhere where the NATS was given."""

    folder: Path | None = None

    def file(self, user: str) -> str:
        """The file with a user's seed; "" where there are no users."""
        return "" if self.folder is None else str(self.folder / f"{user}.nk")

    def flags(self, user: str) -> list[str]:
        """What a service gets of them."""
        if self.folder is None:
            return []
        return [f"--nats-user={user}", f"--nats-credentials={self.file(user)}"]


def keep(data_dir: Path, users: Sequence[User]) -> tuple[Keys, str]:
    """Make the seeds that are missing; returns where all are, and the server's configuration.

    Blocks.

    Raises:
        BadKey: A file holds what it should not.
        OSError: The folder cannot be read or written.
    """
    keys = Keys(folder=data_dir / FOLDER)
    assert keys.folder is not None
    keys.folder.mkdir(mode=0o700, exist_ok=True)
    public: dict[str, str] = {}
    for user in users:
        path = Path(keys.file(user.name))
        if not path.exists():
            write_whole(path, new_seed().encode())
        try:
            public[user.name] = public_key(path.read_text(encoding="ascii"))
        except (BadSeed, UnicodeDecodeError) as error:
            raise BadKey(f"{path}: {error}; without the file another key is made") from error
    return keys, authorization(users, public)


def restorer(keys: Keys) -> Callable[[], None]:
    """Remember the seeds, and return what writes those again whose file is gone: the user who
    removed the folder under running services must not lock them out. Both block, and raise OSError.
    """
    folder = keys.folder
    assert folder is not None, "our own NATS has users"
    remembered = {path: path.read_bytes() for path in sorted(folder.glob("*.nk"))}

    def restore() -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, seed in remembered.items():
            if not path.exists():
                write_whole(path, seed)

    return restore


def adopt_streams(nats_dir: Path) -> None:
    """Give the services' account the streams of a folder in which no service had a key: what was
    decided is remembered. Blocks; only while no server runs on the folder. Raises OSError.
    """
    before, now = (nats_dir / _STREAMS / name for name in (_BEFORE, SERVICES))
    if before.is_dir() and not now.exists():
        before.rename(now)
