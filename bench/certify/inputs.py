"""What a part depends on: while that stays the same, how it ended stays true.

Only the tests of the documents depend on documents, no part depends on how parts are run and
reported, and of the tests only those of `bench` depend on it; a program there depends on what it
imports of it. A file of tests is an input of its own part and of parts that run the tests. What
tests share is an input of all, but for what only the tests of rights use.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final

from bench.certify.parts import ROOT, Part

_RUNNING: Final = ("bench/certify/", "tests/bench/test_certify.py")
_DRAINS: Final = "bench"
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
    if not is_test and path not in _OF_RIGHTS:
        return True
    return part is not None and (path == part.name or path.startswith(part.also_runs))


def _of_bench(path: str, part: Part | None) -> bool:
    if part is not None and part.name.startswith("tests/"):
        return part.name.startswith("tests/bench/")
    return path in bench_files(part.module if part is not None else _DRAINS)


@lru_cache
def bench_files(module: str) -> frozenset[str]:
    """Return the files of `bench` that a program imports, itself included; of others none."""
    found: set[str] = set()
    waiting = [module, f"{module}.__main__"]
    while waiting:
        name = waiting.pop()
        path = name.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if name.partition(".")[0] != "bench" or file in found or not (ROOT / file).is_file():
                continue
            found.add(file)
            waiting.extend(_imported((ROOT / file).read_text(encoding="utf-8")))
            waiting.append(name.rpartition(".")[0])
    return frozenset(found)


def _imported(source: str) -> Iterator[str]:
    """Names that may be modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
