"""The bundle is what the sources give, and the sources pass their own tests."""

import shutil
from pathlib import Path

import pytest

from tests.console.toolchain import SOURCES, node_folder
from tests.support.packages import ROOT, run

pytestmark = [pytest.mark.certify, pytest.mark.timeout(900)]

ASSETS = ROOT / "shared" / "console" / "assets"


@pytest.fixture
def console(tmp_path: Path) -> Path:
    """A copy of the sources, beside the packages that they need."""
    packages = node_folder()
    folder = tmp_path / "console"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("node_modules", "build"))
    (folder / "node_modules").symlink_to(packages / "node_modules")
    return folder


def test_types_and_unit_tests_pass(console: Path) -> None:
    run(("npm", "run", "--silent", "check"), console)
    assert "# fail 0" in run(("npm", "run", "--silent", "test"), console)


def test_a_build_gives_the_committed_bytes(console: Path, tmp_path: Path) -> None:
    built = tmp_path / "built"
    run(("node", "build.mjs", "--out", str(built)), console)
    names = {one.name for one in ASSETS.iterdir()}
    assert {one.name for one in built.iterdir()} == names
    for name in names:
        assert (built / name).read_bytes() == (ASSETS / name).read_bytes(), f"{name}: make console"
