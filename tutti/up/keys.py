"""The users of the NATS of `tutti up`: an nkey each, created once and kept in the data folder,
readable only by its owner.

Users and permissions are the chart's (`shared.bus.permissions`): a client without a key is refused,
and a service's key permits what that service does. There is no TLS, since NATS listens on this
machine only.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from shared.bus.authorization import SERVICES, BadSeed, authorization, new_seed, public_key
from shared.bus.permissions import User
from shared.model.invariants import required
from shared.runtime.whole_files import write_whole
from tutti.api.failures import Refusal

#: In the data folder.
FOLDER: Final = "nats-keys"
#: Folder below which nats-server keeps streams by account; `$G`: those of clients without a user.
_STREAMS: Final = Path("store", "jetstream")
_BEFORE: Final = "$G"


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of the users' seeds; None if NATS was given by `--nats`."""

    folder: Path | None = None

    def file(self, user: str) -> str:
        """The file with a user's seed; "" if there are no users."""
        return "" if self.folder is None else str(self.folder / f"{user}.nk")

    def flags(self, user: str) -> list[str]:
        """The flags of a service that authenticates as this user."""
        if self.folder is None:
            return []
        return [f"--nats-user={user}", f"--nats-credentials={self.file(user)}"]


def keep(data_dir: Path, users: Sequence[User]) -> tuple[Keys, str]:
    """Create missing seeds; returns their folder, and the server's configuration of users.

    Blocks.

    Raises:
        Refusal: A file is not a seed; it is not replaced automatically.
        OSError: The folder cannot be read or written.
    """
    folder = data_dir / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    keys = Keys(folder=folder)
    public: dict[str, str] = {}
    for user in users:
        path = Path(keys.file(user.name))
        if not path.exists():
            write_whole(path, new_seed().encode())
        try:
            public[user.name] = public_key(path.read_text(encoding="ascii"))
        except (BadSeed, UnicodeDecodeError) as error:
            raise Refusal(
                f"{path}: {error}; remove the file to have another key created"
            ) from error
    return keys, authorization(users, public)


def restorer(keys: Keys) -> Callable[[], None]:
    """Read the seeds, and return a function that rewrites removed ones: removing the folder under
    running services must not lock them out. Both block, and raise OSError.
    """
    folder = required(keys.folder, "keys of NATS users", "must have a folder")
    remembered = {path: path.read_bytes() for path in sorted(folder.glob("*.nk"))}

    def restore() -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, seed in remembered.items():
            if not path.exists():
                write_whole(path, seed)

    return restore


def adopt_streams(nats_dir: Path) -> None:
    """Move streams of a folder without users to the services' account, so that past decisions are
    kept. Blocks. Call it only while no server uses the folder. Raises OSError.
    """
    before, now = (nats_dir / _STREAMS / name for name in (_BEFORE, SERVICES))
    if before.is_dir() and not now.exists():
        before.rename(now)
