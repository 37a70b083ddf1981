"""Writes files atomically: a reader never finds a part of the content, also after a kill."""

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace the file in one step; after a failure it is unchanged. Blocks.

    Args:
        path: The file, in an existing folder.
        content: The whole content.
        mode: The file's permissions, less the process's umask; by default only its owner has any.

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
