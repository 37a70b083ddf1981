"""Runs a part in a process of its own, to its end or its limit, and remembers how it ended."""

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from bench.certify.parts import ROOT, Part

#: What a part has to stop in after its limit, before it is killed with all that it started.
_GRACE_S: Final = 30.0
_SUMMARY_MAX: Final = 240
_SKIPPED: Final = re.compile(r"^SKIPPED \[\d+\] (.+)$", re.MULTILINE)
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a part ended."""

    name: str
    typed: str
    how: Literal["ok", "failed", "took too long"]
    status: int
    minutes: float
    #: The commit that was tried; what the part depends on has not changed since.
    commit: str = ""
    #: The last line that it printed.
    summary: str
    #: Tests that failed, where it was tests.
    failed: tuple[str, ...] = ()
    #: Tests that did not run, each with its place and its reason.
    skipped: tuple[str, ...] = ()


class Ledger:
    """What has ended, kept in a folder: a certificate that was interrupted continues where it was,
    and after a change only what depends on what was changed is run again.
    """

    def __init__(self, folder: Path, commit: str, digest_of: Callable[[Part], str]) -> None:
        """Of this commit; `digest_of` what a part depends on in it."""
        self._folder = folder
        self._commit = commit
        self._digest_of = digest_of
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, part: Part) -> Ended | None:
        """How it ended, if it was run already with the same arguments."""
        path = self._path(part, ".json")
        if not path.is_file():
            return None
        ended = msgspec.json.decode(path.read_bytes(), type=Ended)
        return ended if ended.typed == part.typed else None

    def minutes_before(self, part: Part) -> float:
        """How long it took the last time, whatever was changed since; infinite if it never ran."""
        kept = self._folder.glob(f"{_stem(part)}-*.json")
        newest = max(kept, key=lambda path: path.stat().st_mtime, default=None)
        if newest is None:
            return math.inf
        return msgspec.json.decode(newest.read_bytes(), type=Ended).minutes

    def run(self, part: Part) -> Ended:
        """Run it; its output is in the folder, and how it ended."""
        log = self._path(part, ".log")
        started = time.monotonic()
        with log.open("wb") as output:
            # Those that draw examples draw fresh ones here.
            process = subprocess.Popen(
                [sys.executable, "-m", part.module, *part.arguments],
                cwd=ROOT,
                env={**os.environ, "HYPOTHESIS": "fresh"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            in_time = _wait(process, part.limit_minutes * 60)
        status = process.returncode
        text = log.read_text(errors="replace")
        ended = Ended(
            name=part.name,
            typed=part.typed,
            how="took too long" if not in_time else "ok" if status == 0 else "failed",
            status=status,
            minutes=(time.monotonic() - started) / 60,
            commit=self._commit,
            # A certificate names no folder of the machine that it comes from.
            summary=_last_line(text.replace(f"{ROOT}/", "")),
            failed=tuple(dict.fromkeys(_FAILED.findall(text))),
            skipped=tuple(dict.fromkeys(_SKIPPED.findall(text))),
        )
        self._path(part, ".json").write_bytes(msgspec.json.encode(ended))
        return ended

    def _path(self, part: Part, suffix: str) -> Path:
        return self._folder / f"{_stem(part)}-{self._digest_of(part)}{suffix}"


def _stem(part: Part) -> str:
    return re.sub(r"[^\w.]+", "-", part.name)


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Whether it ended by itself; nothing of its session is left in any case."""
    try:
        process.wait(limit_s)
        in_time = True
    except subprocess.TimeoutExpired:
        in_time = False
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    _signal(process, signal.SIGKILL)
    process.wait()
    return in_time


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _last_line(text: str) -> str:
    """The last line with words in it, without pytest's rules."""
    lines = [line.strip("= \t") for line in text.splitlines()]
    line = next((line for line in reversed(lines) if line), "no output")
    return line if len(line) <= _SUMMARY_MAX else line[: _SUMMARY_MAX - 1] + "…"
