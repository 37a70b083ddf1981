"""What a data folder gives to a bundle."""

import tarfile
from pathlib import Path

from tutti import bundle_command as collection
from tutti.bundle_command import Archive


def packed(archive: Archive, folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """Files by name, and what is missing."""
    path = folder / "b.tar.gz"
    manifest = archive.write(path, version="1", created_at="now", created_s=1)
    found: dict[str, bytes] = {}
    with tarfile.open(path) as tar:
        for entry in manifest.files:
            file = tar.extractfile(f"b/{entry.path}")
            assert file is not None
            found[entry.path] = file.read()
    return found, [one.what for one in manifest.missing]


def test_of_a_long_log_the_end_is_taken_from_the_beginning_of_a_line(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "short-0.log").write_bytes(b"one\ntwo\n")
    line = b"x" * 99 + b"\n"
    (logs / "long-0.log").write_bytes(b"first" + line * (collection.LOG_BYTES // len(line) + 9))
    archive = Archive()
    collection.collect_logs(archive, tmp_path)
    found, missing = packed(archive, tmp_path)
    assert found["logs/short-0.log"] == b"one\ntwo\n"
    long = found["logs/long-0.log"]
    assert collection.LOG_BYTES - len(line) <= len(long) <= collection.LOG_BYTES
    assert set(long.splitlines(keepends=True)) == {line}
    assert not missing


def test_logs_are_taken_without_secrets_in_them(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "nats-0.log").write_text("connect nats://me:hunter2@host:4222\nnext line @ once\n")
    archive = Archive()
    collection.collect_logs(archive, tmp_path)
    found, _ = packed(archive, tmp_path)
    assert found["logs/nats-0.log"] == b"connect nats://***@host:4222\nnext line @ once\n"


def test_the_newest_segments_are_taken_as_far_as_they_have_room(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    for planner, name, size in (
        ("gang-planner-0", "000000000300", 60),
        ("gang-planner-1", "000000000200", 30),
        ("gang-planner-0", "000000000100", 30),
        ("gang-planner-0", "000000000400", 0),
    ):
        path = folder / planner / f"{name}.tutti-recording"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"r" * size)
    archive = Archive()
    collection.collect_recordings(archive, folder, 100)
    found, missing = packed(archive, tmp_path)
    assert list(found) == [
        "recordings/gang-planner-0/000000000300.tutti-recording",
        "recordings/gang-planner-1/000000000200.tutti-recording",
    ]
    assert missing == ["recording 000000000100.tutti-recording"]


def test_the_newest_segment_is_taken_whole_however_large_it_is(tmp_path: Path) -> None:
    (tmp_path / "1.tutti-recording").write_bytes(b"r" * 500)
    archive = Archive()
    collection.collect_recordings(archive, tmp_path, 100)
    found, _ = packed(archive, tmp_path)
    assert [len(content) for content in found.values()] == [500]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    archive = Archive()
    collection.collect_logs(archive, tmp_path)
    collection.collect_recordings(archive, tmp_path / "none", 100)
    assert packed(archive, tmp_path) == ({}, ["logs", "recording"])
