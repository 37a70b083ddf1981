"""Writes files atomically: a reader never finds a part of the content, also after a kill."""

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace a file, in an existing folder, in one step; after a failure it is unchanged. Blocks.
    `mode` are its permissions, less the process's umask; by default only its owner has any.

    Raises:
        OSError: It cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")
    # A killed process with our PID may have left a file with other permissions.
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
