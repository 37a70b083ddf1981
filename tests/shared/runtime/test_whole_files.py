"""Files that are there whole or not at all."""

import os
from pathlib import Path

import pytest

from shared.runtime.whole_files import write_whole


def test_a_file_is_replaced_whole_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"the one before, and longer")

    write_whole(path, b"new")

    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["key"]


def test_a_world_readable_file_can_be_read(tmp_path: Path) -> None:
    write_whole(tmp_path / "report", b"{}", mode=0o644)

    assert (tmp_path / "report").stat().st_mode & 0o777 == 0o644


def test_what_a_killed_process_left_open_to_others_holds_no_secret(tmp_path: Path) -> None:
    left = tmp_path / f".key.{os.getpid()}"
    left.write_bytes(b"half")
    left.chmod(0o644)

    write_whole(tmp_path / "key", b"secret")

    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert not left.exists()


def test_after_a_failure_the_file_is_what_it_was_and_nothing_is_left(tmp_path: Path) -> None:
    in_the_way = tmp_path / "key"
    in_the_way.mkdir()

    with pytest.raises(OSError, match="key"):
        write_whole(in_the_way, b"secret")

    assert [one.name for one in tmp_path.iterdir()] == ["key"]
