"""Archives have the same bytes wherever and whenever they are made."""

import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path

from release.archives import Tree, write_tar, write_tar_gz

_EPOCH = 1_700_000_000


def _folder(root: Path, names: list[str]) -> Path:
    root.mkdir(parents=True)
    for name in names:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(name)
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o700)
    (root / "link").symlink_to("run")
    (root / "empty").mkdir()
    return root


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_folders_made_in_another_order_at_another_time_give_the_same_archive(
    tmp_path: Path,
) -> None:
    names = ["b/two", "a", "b/one"]
    first, second = Tree(), Tree()
    first.add_all(_folder(tmp_path / "one", names))
    other = _folder(tmp_path / "two" / "below", names[::-1])
    (other / "a").chmod(0o664)
    os.utime(other / "a", (1, 1))
    second.add_all(other)
    archives = [tmp_path / "first.tgz", tmp_path / "second.tgz"]
    for path, tree in zip(archives, (first, second), strict=True):
        write_tar_gz(path, tree, _EPOCH)
    assert _digest(archives[0]) == _digest(archives[1])


def test_members_are_sorted_and_have_the_same_time_and_owner(tmp_path: Path) -> None:
    tree = Tree()
    tree.add_all(_folder(tmp_path / "one", ["b/two", "a"]), "top")
    tree.add_folder("top/volume", owner=7)
    target = io.BytesIO()
    write_tar(target, tree, _EPOCH)
    with tarfile.open(fileobj=io.BytesIO(target.getvalue())) as archive:
        members = archive.getmembers()
    assert [one.name for one in members] == [
        "top",
        "top/a",
        "top/b",
        "top/b/two",
        "top/empty",
        "top/link",
        "top/run",
        "top/volume",
    ]
    assert {one.mtime for one in members} == {_EPOCH}
    assert {(one.uid, one.gid) for one in members[:-1]} == {(0, 0)}
    assert (members[-1].uid, members[-1].gid, members[-1].isdir()) == (7, 7, True)
    assert {one.name: oct(one.mode) for one in members if one.isreg()} == {
        "top/a": "0o644",
        "top/b/two": "0o644",
        "top/run": "0o755",
    }
    assert members[5].linkname == "run"


def test_the_header_of_gzip_has_no_name_and_no_time(tmp_path: Path) -> None:
    tree = Tree()
    tree.add_file("a", b"content")
    path = tmp_path / "named.tgz"
    write_tar_gz(path, tree, _EPOCH)
    flags, seconds = path.read_bytes()[3], path.read_bytes()[4:8]
    assert (flags, seconds) == (0, b"\0\0\0\0")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(path.read_bytes()))) as archive:
        assert archive.getnames() == ["a"]
