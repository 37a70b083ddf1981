"""A .tar.gz with a manifest: every file with its size and digest, and what is missing, and why."""

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Final

import msgspec

MANIFEST: Final = "manifest.json"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a bundle."""

    path: str
    what: str
    size_bytes: int
    sha256: str


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle would have had."""

    what: str
    why: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle holds; the first file in it."""

    version: str
    created_at: str
    files: tuple[Entry, ...]
    missing: tuple[Missing, ...] = ()


class Archive:
    """Gathers files in memory, and writes them once."""

    def __init__(self) -> None:
        self._files: list[tuple[Entry, bytes]] = []
        self._missing: list[Missing] = []

    def add(self, path: str, what: str, content: bytes) -> None:
        """Put a file in. A path that is there already is an error."""
        assert all(entry.path != path for entry, _ in self._files), path
        digest = hashlib.sha256(content).hexdigest()
        entry = Entry(path=path, what=what, size_bytes=len(content), sha256=digest)
        self._files.append((entry, content))

    def add_json(self, path: str, what: str, found: object) -> None:
        """Put in a file of JSON, laid out for people."""
        self.add(path, what, msgspec.json.format(msgspec.json.encode(found)) + b"\n")

    def miss(self, what: str, why: str) -> None:
        """Say of something why it is not there."""
        self._missing.append(Missing(what=what, why=why))

    def write(self, path: Path, *, version: str, created_at: str, created_s: int) -> Manifest:
        """Write everything below a folder that is called as the file. Raises OSError."""
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
