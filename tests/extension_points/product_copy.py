"""A temporary copy of the product, to which tests add files."""

import ast
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
#: The tests that run in the copy, and what a dialect's page imports. What these import follows.
_TESTS: Final = (
    "tests.scenarios.test_scenarios",
    "tests.services.gang_planner.core.test_policies",
    "tests.shared.dialects.reading",
)


def _test_files() -> set[Path]:
    """Files of the tests that the copy needs: imported ones, and the packages that they are in."""
    files: set[Path] = set()
    modules = [*_TESTS]
    while modules:
        file = Path(*modules.pop().split(".")).with_suffix(".py")
        if file in files or not (ROOT / file).is_file():
            continue
        files |= {file, *(folder / "__init__.py" for folder in file.parents[:-1])}
        for node in ast.walk(ast.parse((ROOT / file).read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
                # What is imported may be a module of a package.
                names = [f"{node.module}.{imported.name}" for imported in node.names]
                modules += [f"{node.module}", *names]
    return files


class ProductCopy:
    """The copy's folder, and what tests do in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for package in _PACKAGES:
            shutil.copytree(ROOT / package, root / package)
        for file in _test_files():
            target = root / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, target)

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
