"""The files that a reader opens to follow a piece of work: those whose functions it calls."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple


class Length(NamedTuple):
    """How long a way is: `files` that are opened, and `returns` to one that was left."""

    files: int
    returns: int


def files_called(work: Callable[[], object], root: Path, *packages: str) -> list[str]:
    """The file of each call below `root`, in order, while this thread does the work; with
    `packages`, only those in one of these folders.
    """
    files: list[str] = []
    folders = [root / package for package in packages] or [root]

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and any(path.is_relative_to(folder) for folder in folders):
            files.append(path.relative_to(root).as_posix())

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return files


def length_of(files: list[str]) -> Length:
    """A visit is a run of calls into one file; a return is a visit of a file that was left."""
    visits = [file for file, before in zip(files, ["", *files], strict=False) if file != before]
    return Length(len(set(visits)), len(visits) - len(set(visits)))
