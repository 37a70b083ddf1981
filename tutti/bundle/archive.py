"""A .tar.gz with a manifest: every file with its size and digest, and every missing one with the
reason.
"""

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Final

import msgspec

from shared.model.invariants import InvariantViolation

MANIFEST: Final = "manifest.json"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a bundle."""

    path: str
    what: str
    size_bytes: int
    sha256: str


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Data that could not be collected."""

    what: str
    why: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a bundle; its first file."""

    version: str
    created_at: str
    files: tuple[Entry, ...]
    missing: tuple[Missing, ...] = ()


class Archive:
    """Collects files in memory, and writes them once."""

    def __init__(self) -> None:
        self._files: list[tuple[Entry, bytes]] = []
        self._missing: list[Missing] = []

    def add(self, path: str, what: str, content: bytes) -> None:
        """Add a file; no two have the same path."""
        if any(entry.path == path for entry, _ in self._files):
            raise InvariantViolation(path, "must be added once")
        digest = hashlib.sha256(content).hexdigest()
        entry = Entry(path=path, what=what, size_bytes=len(content), sha256=digest)
        self._files.append((entry, content))

    def add_json(self, path: str, what: str, found: object) -> None:
        self.add(path, what, msgspec.json.format(msgspec.json.encode(found)) + b"\n")

    def miss(self, what: str, why: str) -> None:
        """Record that data is missing, and why."""
        self._missing.append(Missing(what=what, why=why))

    def write(self, path: Path, *, version: str, created_at: str, created_s: int) -> Manifest:
        """Write all files, below a folder with the archive's name. Raises OSError."""
        manifest = Manifest(
            version=version,
            created_at=created_at,
            files=tuple(entry for entry, _ in self._files),
            missing=tuple(self._missing),
        )
        folder = path.name.removesuffix(".tar.gz")
        first = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
        contents = [(MANIFEST, first), *((entry.path, content) for entry, content in self._files)]
        with tarfile.open(path, "x:gz") as tar:
            for name, content in contents:
                header = tarfile.TarInfo(f"{folder}/{name}")
                header.size = len(content)
                header.mtime = created_s
                header.mode = 0o600
                tar.addfile(header, io.BytesIO(content))
        path.chmod(0o600)
        return manifest
