"""Archives whose bytes depend on their content only: sorted, with fixed times and owners."""

import gzip
import io
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Final, Protocol, cast

_COMPRESSION_LEVEL: Final = 6


class Sink(Protocol):
    """What an archive is written to: no more of a file is needed."""

    def write(self, content: bytes, /) -> int:
        """Take the next bytes."""
        ...

    def tell(self) -> int:
        """How many there were."""
        ...


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One member of an archive.

    Attributes:
        content: Bytes, or the file that has them; None for a folder.
        target: What a symbolic link points to; None if it is no link.
        mode: Permission bits.
        owner: Both the user's and the group's number.
    """

    content: bytes | Path | None = None
    target: str | None = None
    mode: int = 0o644
    owner: int = 0


@dataclass
class Tree:
    """The members of an archive by their relative path, in any order."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def add_file(self, path: str, content: bytes | Path, *, executable: bool = False) -> None:
        """Add a regular file."""
        self.entries[path] = Entry(content=content, mode=0o755 if executable else 0o644)

    def add_folder(self, path: str, *, mode: int = 0o755, owner: int = 0) -> None:
        """Add a folder, which may be empty."""
        self.entries[path] = Entry(mode=mode, owner=owner)

    def add_link(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self.entries[path] = Entry(target=target, mode=0o777)

    def add_all(self, folder: Path, prefix: str = "") -> None:
        """Add what a folder on disk has; of modes only the owner's executable bit counts."""
        for path in sorted(folder.rglob("*")):
            name = str(PurePosixPath(prefix) / path.relative_to(folder).as_posix())
            if path.is_symlink():
                self.add_link(name, str(path.readlink()))
            elif path.is_dir():
                self.add_folder(name)
            else:
                self.add_file(name, path, executable=bool(path.stat().st_mode & stat.S_IXUSR))

    def sorted_with_parents(self) -> Iterator[tuple[str, Entry]]:
        """All entries by path, and the folders above them."""
        found = dict(self.entries)
        for name in self.entries:
            for parent in PurePosixPath(name).parents:
                if parent.parts:
                    found.setdefault(str(parent), Entry(mode=0o755))
        yield from sorted(found.items(), key=lambda item: PurePosixPath(item[0]).parts)


def write_tar(target: Sink, tree: Tree, epoch: int) -> None:
    """Write the tree as a tar archive.

    Args:
        target: Where to.
        tree: Its members.
        epoch: Seconds since 1970 that every member gets as its time of change.
    """
    file = cast("IO[bytes]", target)
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, entry in tree.sorted_with_parents():
            member = tarfile.TarInfo(name)
            member.mtime, member.mode = epoch, entry.mode
            member.uid = member.gid = entry.owner
            _add(archive, member, entry)


def _add(archive: tarfile.TarFile, member: tarfile.TarInfo, entry: Entry) -> None:
    match entry:
        case Entry(target=str(link)):
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
        case Entry(content=bytes(content)):
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        case Entry(content=Path() as path):
            member.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(member, file)
        case _:
            member.type = tarfile.DIRTYPE
            archive.addfile(member)


def write_tar_gz(path: Path, tree: Tree, epoch: int) -> None:
    """Write the tree as a compressed tar archive; its header has neither name nor time."""
    with path.open("wb") as file, compressed(file) as target:
        write_tar(target, tree, epoch)


def compressed(target: BinaryIO) -> gzip.GzipFile:
    """A gzip stream onto the target, without a name and a time in its header."""
    return gzip.GzipFile(
        filename="", mode="wb", fileobj=target, mtime=0, compresslevel=_COMPRESSION_LEVEL
    )


def tree_of(files: Mapping[str, bytes]) -> Tree:
    """A tree of regular files with this content."""
    tree = Tree()
    for name, content in files.items():
        tree.add_file(name, content)
    return tree
