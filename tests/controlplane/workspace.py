"""The folder a control plane lives in: in memory if that is possible, swept if abandoned."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import TextIO

from tests.controlplane.locks import exclusive, try_exclusive

PREFIX = f"tutti-controlplane-{os.getuid()}-"
OWNER_LOCK = "owner.lock"
SHARED_MEMORY = Path("/dev/shm")


class Workspace:
    """A private folder, removed by ``close`` or, if its owner was killed, by the next workspace."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent if parent is not None else default_parent()
        parent.mkdir(parents=True, exist_ok=True)
        # Sweeping and making exclude each other: a folder is never seen without its owner's lock.
        with exclusive(parent / f"{PREFIX}sweep.lock"):
            sweep(parent)
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            lock = try_exclusive(self.path / OWNER_LOCK)
        assert lock is not None, "a folder made a moment ago has another owner"
        self._lock: TextIO = lock

    def close(self) -> None:
        """Remove the folder and all it holds; repeating it does no harm."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def default_parent() -> Path:
    """Return shared memory where there is some (etcd is several times faster there)."""
    if SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK):
        return SHARED_MEMORY
    return Path(tempfile.gettempdir())


def sweep(parent: Path) -> list[Path]:
    """Remove and return the folders whose owners are gone; living ones hold their lock."""
    removed: list[Path] = []
    for folder in sorted(parent.glob(f"{PREFIX}*")):
        if not folder.is_dir():
            continue
        try:
            lock = try_exclusive(folder / OWNER_LOCK)
        except FileNotFoundError:
            continue  # its owner has removed it
        if lock is None:
            continue
        with lock:
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
    return removed
