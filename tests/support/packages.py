"""Packages that a few tests need besides .venv, in the cache outside the checkout."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.controlplane.go_builds import cache_root
from tests.controlplane.locks import exclusive
from tests.support.progress import reported

ROOT: Final = Path(__file__).parents[2]
_INSTALL_S: Final = 600.0


def make_importable(name: str, lock: Path) -> None:
    """Install what a lock file pins, if it is not in the cache yet, for imports of this process."""
    folder = pinned(name, lock)
    if str(folder) not in sys.path:
        # At the end: .venv's own packages come first.
        sys.path.append(str(folder))


def pinned(name: str, lock: Path) -> Path:
    """The folder of the cache that has what a lock file pins, installed if it is not there yet."""
    return installed(
        name,
        lock.read_bytes(),
        lambda made: (
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--target", str(made), "-r", str(lock)),
        ),
    )


def installed(
    name: str,
    content: bytes,
    command: Callable[[Path], tuple[str, ...]],
    files: Mapping[str, Path] = MappingProxyType({}),
) -> Path:
    """The folder of the cache that a command has filled; one for each content of its lock file."""
    root = cache_root().parent / "packages"
    root.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(content + sys.version.encode()).hexdigest()[:16]
    folder = root / f"{name}-{digest}"
    with exclusive(root / f"{name}.lock"):
        if not folder.exists():
            with (
                reported(f"installing {name} for tests", "a minute"),
                tempfile.TemporaryDirectory(dir=root) as scratch,
            ):
                made = Path(scratch) / "made"
                made.mkdir()
                for target, source in files.items():
                    shutil.copyfile(source, made / target)
                run(command(made), made)
                made.rename(folder)
    return folder


def run(command: tuple[str, ...], folder: Path) -> str:
    """Run a program, and return what it prints. Raises AssertionError with that if it fails."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=_INSTALL_S
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout
