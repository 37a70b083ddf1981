"""A temporary copy of the product, to which tests add files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.documents.blocks import blocks
from tests.documents.links import ROOT

_PACKAGES: Final = ("services", "shared", "tutti")
#: What scenarios and the tests of dialects need of the tests.
_TESTS: Final = (
    "scenarios/__init__.py",
    "scenarios/reading.py",
    "scenarios/test_scenarios.py",
    "services/__init__.py",
    "services/gang_planner/__init__.py",
    "services/gang_planner/core/__init__.py",
    "services/gang_planner/core/invariants.py",
    "services/gang_planner/core/scene.py",
    "services/gang_planner/core/test_policies.py",
    "shared/__init__.py",
    "shared/dialects/__init__.py",
    "shared/dialects/reading.py",
    "support/__init__.py",
    "support/snapshots.py",
)


class ProductCopy:
    """The copy's folder, and what tests do in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for package in _PACKAGES:
            shutil.copytree(ROOT / package, root / package)
        for name in ("__init__.py", *_TESTS):
            target = root / "tests" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "tests" / name, target)

    def add(self, path: str, text: str) -> None:
        """Add a file. It must be new: an extension edits nothing.

        Raises:
            FileExistsError: The product has a file of that name.
        """
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x") as file:
            file.write(text)

    def add_files_of_page(self, page: str) -> list[str]:
        """Add each block of a page that is marked as a file; their paths, in the page's order."""
        added = []
        for block in blocks(page, (ROOT / page).read_text()):
            if block.what == "file":
                self.add(block.detail, block.text)
                added.append(block.detail)
        return added

    def run(self, *arguments: str) -> str:
        """Run Python in the copy and return its output; an error fails the test with its output."""
        found = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert found.returncode == 0, found.stdout
        return found.stdout

    def run_tests(self, paths: Iterable[str], *, only: str = "") -> str:
        """Run tests of the copy, those whose names match `only`; the report."""
        plain = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull)
        return self.run(*plain, "--rootdir", str(self.root), *paths, "-k", only)
