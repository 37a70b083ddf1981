"""What a part depends on: while that stays the same, how it ended stays true.

Only the tests of the documents depend on documents, and no part depends on how parts are run and
reported. A file of tests is an input of its own part and of parts that run the tests; what tests
share is not in them.
"""

import hashlib
from pathlib import PurePosixPath
from typing import Final

from bench.certify.parts import Part

_RUNNING: Final = ("bench/certify/", "tests/bench/test_certify.py")


def is_document(path: str) -> bool:
    """Whether a file of the repository only tells."""
    return path.startswith("docs/") or path.endswith(".md")


def digest_of(part: Part | None, tree: str) -> str:
    """Return a short digest of what the part depends on.

    Args:
        part: One of a certificate's parts; None: any program that plays no tests.
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
    if not (path.startswith("tests/") and PurePosixPath(path).name.startswith("test_")):
        return True
    return part is not None and (path == part.name or path.startswith(part.also_runs))
