"""A disk of 24 MiB that a test may fill; needs root, to mount it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs; skips where it cannot be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount_disk(folder)
    yield folder
    while os.path.ismount(folder):
        subprocess.run(["umount", "-l", str(folder)], check=True)


def mount_disk(folder: Path) -> None:
    """Mount an empty one over a folder."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small tmpfs")
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")


def fill(path: Path) -> None:
    """Leave not one byte of its disk free."""
    with path.open("wb", buffering=0) as filler:
        for size in (1 << 16, 1):
            try:
                while filler.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
