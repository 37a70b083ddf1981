"""What a part depends on: while that stays the same, how it ended stays true.

Only the tests of the documents depend on documents, no part depends on how parts are run and
reported, and of the tests only those of `bench` depend on it; a program there depends on what it
imports of it. A file of tests is an input of its own part and of parts that run the tests. What
tests share is an input of all, but for what only the tests of rights use, and for the simulation,
the real nodes and the tests of benchmarks: these are inputs of their own tests, some of which start
programs of the folder, and of the parts that import them.
"""

import ast
import hashlib
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import Final

from bench.certify.parts import ROOT, Part

_RUNNING: Final = ("bench/certify/", "tests/bench/test_certify.py")
_DRAINS: Final = "bench"
#: Folders of tests whose shared files are inputs of their own tests and of parts that import them.
_FOLLOWED: Final = ("tests/bench/", "tests/realnodes/", "tests/simulation/")
#: Packages whose imports are followed.
_OURS: Final = frozenset({"bench", "tests"})
#: Used where `tests.rights` runs other tests, and by nothing else.
_OF_RIGHTS: Final = ("tests/rights/__main__.py", "tests/rights/guarded_up.py")


def is_document(path: str) -> bool:
    """Whether a file of the repository is only documentation."""
    return path.startswith("docs/") or path.endswith(".md")


def digest_of(part: Part | None, tree: str) -> str:
    """Return a short digest of what the part depends on.

    Args:
        part: One of a certificate's parts; None: the drains.
        tree: What ``git ls-tree -r`` printed of a commit; its paths are after a tab.
    """
    digest = hashlib.sha256()
    for line in tree.splitlines():
        if _matters(line.partition("\t")[2], part):
            digest.update(f"{line}\n".encode())
    return digest.hexdigest()[:12]


def _matters(path: str, part: Part | None) -> bool:
    if path.startswith(_RUNNING):
        return False
    if is_document(path):
        return part is not None and part.name.startswith("tests/documents/")
    if path.startswith("bench/"):
        return _of_bench(path, part)
    is_test = path.startswith("tests/") and PurePosixPath(path).name.startswith("test_")
    if is_test or path in _OF_RIGHTS:
        return part is not None and (path == part.name or path.startswith(part.also_runs))
    for folder in _FOLLOWED:
        if path.startswith(folder):
            own = part is not None and part.name.startswith(folder)
            return own or path in imported_files(_roots(part), folder)
    return True


def _of_bench(path: str, part: Part | None) -> bool:
    if part is not None and part.name.startswith("tests/"):
        return part.name.startswith("tests/bench/")
    return path in imported_files((part.module if part is not None else _DRAINS,), "bench/")


def _roots(part: Part | None) -> tuple[str, ...]:
    """The modules that a part starts with: its program, or its file of tests with its conftests."""
    if part is None:
        return (_DRAINS,)
    if not part.name.startswith("tests/"):
        return (part.module,)
    files = [part.name]
    for prefix in part.also_runs:
        folder, _, stem = prefix.rpartition("/")
        files += [
            str(path.relative_to(ROOT))
            for path in sorted((ROOT / folder).rglob("test_*.py"))
            if str(path.relative_to(ROOT)).startswith(f"{folder}/{stem}")
        ]
    folders = {parent for file in files for parent in PurePosixPath(file).parents}
    conftests = (str(folder / "conftest.py") for folder in sorted(folders))
    return tuple(_module_of(file) for file in (*files, *conftests))


def _module_of(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


@lru_cache
def imported_files(roots: tuple[str, ...], folder: str) -> frozenset[str]:
    """Return the files of a folder that modules import, directly or through other files of this
    repository, themselves included.

    Args:
        roots: Names of the modules; one that does not exist imports nothing.
        folder: The folder, with a slash at its end.
    """
    found: set[str] = set()
    waiting = [name for root in roots for name in (root, f"{root}.__main__")]
    while waiting:
        name = waiting.pop()
        path = name.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if name.partition(".")[0] not in _OURS or file in found or not (ROOT / file).is_file():
                continue
            found.add(file)
            waiting.extend(_imported(file))
            waiting.append(name.rpartition(".")[0])
    return frozenset(file for file in found if file.startswith(folder))


@cache
def _imported(file: str) -> tuple[str, ...]:
    """Names in the imports of a file that may be modules of this repository."""
    found: list[str] = []
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return tuple(name for name in found if name.partition(".")[0] in _OURS)
