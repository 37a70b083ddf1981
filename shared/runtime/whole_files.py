"""Files that are there whole or not at all, whichever process reads them and whenever we are
killed.
"""

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace the file in one step; after a failure it is what it was. Blocks.

    Args:
        path: Where, in a folder that exists.
        content: All of it.
        mode: The users that may read it, less what the process's umask takes away; else only its
            owner can.

    Raises:
        OSError: It cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")
    # What a killed process of our number left may have other rights: it is never written into.
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
