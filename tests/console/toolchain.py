"""What tests of the console need besides .venv, in the cache outside the checkout: Debian's
Chromium, Playwright's Python library, and the packages that Node builds and checks with.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from tests.controlplane.go_builds import cache_root
from tests.controlplane.locks import exclusive
from tests.support.debian import lacking
from tests.support.progress import reported

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "console"
CHROMIUM: Final = "/usr/bin/chromium"
_LOCK: Final = ROOT / "requirements" / "browser.lock"
_NODE_MAJOR_MIN: Final = 20
_INSTALL_S: Final = 600.0


def require_browser() -> None:
    """Make `playwright` importable and Chromium present; skips the test if that is impossible."""
    # Without fonts Chromium draws no text.
    wanted = {CHROMIUM: "chromium", "/usr/share/fonts/truetype/dejavu/*.ttf": "fonts-dejavu-core"}
    if why := lacking(wanted):
        pytest.skip(why)
    folder = _installed(
        "playwright",
        _LOCK.read_bytes(),
        lambda made: (
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--target", str(made), "-r", str(_LOCK)),
        ),
    )
    if str(folder) not in sys.path:
        # At the end: .venv's own packages come first.
        sys.path.append(str(folder))


def node_folder() -> Path:
    """A folder with the packages that `console/` needs; skips the test if there is no Node."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        pytest.skip("Node and npm are needed")
    major = int(run(("node", "--version"), ROOT).lstrip("v").partition(".")[0])
    if major < _NODE_MAJOR_MIN:
        pytest.skip(f"Node {_NODE_MAJOR_MIN} is needed, and this is {major}")
    files = ("package.json", "package-lock.json", ".npmrc")
    content = b"\0".join((SOURCES / name).read_bytes() for name in files)
    return _installed(
        "node",
        content,
        lambda _made: ("npm", "ci", "--ignore-scripts", "--silent"),
        {name: SOURCES / name for name in files},
    )


def run(command: tuple[str, ...], folder: Path) -> str:
    """Run a program, and return what it prints. Raises AssertionError with that if it fails."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=_INSTALL_S
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def _installed(
    name: str,
    content: bytes,
    command: Callable[[Path], tuple[str, ...]],
    files: Mapping[str, Path] = MappingProxyType({}),
) -> Path:
    """The folder of the cache that a command has filled; one for each content of its lock file."""
    root = cache_root().parent / "console"
    root.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(content + sys.version.encode()).hexdigest()[:16]
    folder = root / f"{name}-{digest}"
    with exclusive(root / f"{name}.lock"):
        if not folder.exists():
            with (
                reported(f"installing {name} for the console", "a minute"),
                tempfile.TemporaryDirectory(dir=root) as scratch,
            ):
                made = Path(scratch) / "made"
                made.mkdir()
                for target, source in files.items():
                    shutil.copyfile(source, made / target)
                run(command(made), made)
                made.rename(folder)
    return folder
