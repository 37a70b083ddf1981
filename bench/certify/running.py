"""Runs a part in a process of its own, to its end or its limit, and remembers how it ended."""

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
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
    #: Of what the part depends on (`inputs.digest_of`).
    digest: str = ""
    #: The last line that it printed.
    summary: str
    #: Tests that failed, where it was tests.
    failed: tuple[str, ...] = ()
    #: Tests that did not run, each with its place and its reason.
    skipped: tuple[str, ...] = ()


class Ledger:
    """How parts ended: a certificate that was interrupted continues where it was, also on another
    machine, and after a change only what depends on what was changed is run again.

    Each part has a file in a folder. The newest outcome of each is also a line of a file that is
    committed, since a machine may not live as long as a certificate takes.
    """

    def __init__(
        self, folder: Path, committed: Path, commit: str, digest_of: Callable[[Part], str]
    ) -> None:
        """Of this commit; `digest_of` what a part depends on in it."""
        self._folder = folder
        self._committed = committed
        self._commit = commit
        self._digest_of = digest_of
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, part: Part) -> Ended | None:
        """How it ended, if it was run already with the same arguments and inputs."""
        path = self._path(part, ".json")
        if path.is_file():
            here = msgspec.json.decode(path.read_bytes(), type=Ended)
            return here if here.typed == part.typed else None
        there = self._elsewhere().get(part.name)
        if there is None or (there.typed, there.digest) != (part.typed, self._digest_of(part)):
            return None
        return there

    def minutes_before(self, part: Part) -> float:
        """How long it took the last time, whatever was changed since; infinite if it never ran."""
        kept = self._folder.glob(f"{_stem(part)}-*.json")
        newest = max(kept, key=lambda path: path.stat().st_mtime, default=None)
        if newest is not None:
            return msgspec.json.decode(newest.read_bytes(), type=Ended).minutes
        before = self._elsewhere().get(part.name)
        return before.minutes if before is not None else math.inf

    def commit_to(self, ended: Iterable[Ended]) -> None:
        """Have the committed file state how these ended, instead of what it had of them."""
        lines = self._elsewhere() | {one.name: one for one in ended}
        encoded = msgspec.json.Encoder(order="deterministic").encode_lines(
            [lines[name] for name in sorted(lines)]
        )
        written = self._committed.with_suffix(".new")
        written.write_bytes(encoded)
        written.replace(self._committed)

    def _elsewhere(self) -> dict[str, Ended]:
        """The committed outcomes, by part."""
        if not self._committed.is_file():
            return {}
        lines = msgspec.json.Decoder(Ended).decode_lines(self._committed.read_bytes())
        return {one.name: one for one in lines}

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
            digest=self._digest_of(part),
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
