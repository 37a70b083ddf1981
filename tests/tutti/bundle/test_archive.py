"""The file that a bundle is."""

import hashlib
import tarfile
from pathlib import Path

import msgspec
import pytest

from tutti.bundle_command import MANIFEST, Archive, Manifest


def test_the_manifest_is_first_and_lists_files_and_missing_data(tmp_path: Path) -> None:
    archive = Archive()
    archive.add("logs/a.log", "a log", b"lines")
    archive.add_json("versions.json", "versions", {"tutti": "1"})
    archive.miss("recording", "no segments")
    path = tmp_path / "bundle.tar.gz"
    archive.write(path, version="1", created_at="now", created_s=1)
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as tar:
        names = tar.getnames()
        assert names == [f"bundle/{MANIFEST}", "bundle/logs/a.log", "bundle/versions.json"]
        files = {name: tar.extractfile(name) for name in names}
        contents = {name: file.read() for name, file in files.items() if file is not None}
    manifest = msgspec.json.decode(contents[f"bundle/{MANIFEST}"], type=Manifest)
    assert [(one.what, one.why) for one in manifest.missing] == [("recording", "no segments")]
    for entry in manifest.files:
        content = contents[f"bundle/{entry.path}"]
        assert (entry.size_bytes, entry.sha256) == (
            len(content),
            hashlib.sha256(content).hexdigest(),
        )


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        Archive().write(path, version="1", created_at="now", created_s=1)
    assert path.read_text() == "mine"
