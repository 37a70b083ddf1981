"""The file with the SHA-256 of every artefact, which `sha256sum --check` reads."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from release.oci import digest_of

FILE: Final = "SHA256SUMS"


def checksums(files: Iterable[Path]) -> str:
    """A line for each file, by its name."""
    lines = (f"{digest_of(path)[0]}  {path.name}\n" for path in sorted(files))
    return "".join(lines)
