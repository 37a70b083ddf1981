"""What tests of the console need besides .venv, in the cache outside the checkout: Debian's
Chromium, Playwright's Python library, and the packages that Node builds and checks with.
"""

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.support.debian import lacking
from tests.support.packages import ROOT, installed, make_importable, run

SOURCES: Final = ROOT / "console"
CHROMIUM: Final = "/usr/bin/chromium"
_LOCK: Final = ROOT / "requirements" / "browser.lock"
_NODE_MAJOR_MIN: Final = 20


def require_browser() -> None:
    """Make `playwright` importable and Chromium present; skips the test if that is impossible."""
    # Without fonts Chromium draws no text.
    wanted = {CHROMIUM: "chromium", "/usr/share/fonts/truetype/dejavu/*.ttf": "fonts-dejavu-core"}
    if why := lacking(wanted):
        pytest.skip(why)
    make_importable("playwright", _LOCK)


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
    return installed(
        "node",
        content,
        lambda _made: ("npm", "ci", "--ignore-scripts", "--silent"),
        {name: SOURCES / name for name in files},
    )
