"""Locks between processes that the kernel releases even when their holder is killed."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait for the lock on this file, made if it is missing, and hold it for the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def try_exclusive(path: Path) -> TextIO | None:
    """Return an open file that holds the lock until it is closed, or None if another has it."""
    handle = path.open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle
