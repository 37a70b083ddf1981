"""``python -m bench.certify``: what a commit reaches, with its evidence, as a page under docs/.

Runs the tests marked `certify` and the long runs, two at a time, then what measures, each alone
and in a process of its own, and writes docs/certificates/<date>-<commit>.md after each of
them, so that nothing is lost. Outputs are in build/certify, outcomes also in
docs/certificates/parts.jsonl: started again, also elsewhere, it runs what has not ended, and of
what has only that which depends on something that was changed since (`inputs`); the page names the
commit of each. Parts that do not begin within `--hours` are named as not run.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from bench import plots
from bench.certify.inputs import digest_of, is_document
from bench.certify.page import certificate
from bench.certify.parts import DRAINS, ROOT, Extent, Part, long_tests, programs
from bench.certify.running import Ended, Ledger
from bench.session import Session

_CERTIFICATES: Final = ROOT / "docs" / "certificates"


def main() -> None:
    """Run what has not been run, write the page; fails when a part did."""
    arguments = _parser().parse_args()
    changed = uncommitted(_git("status", "--porcelain", "--untracked-files=no"))
    if changed:
        sys.exit(f"commit first, a certificate names what it is true of: {', '.join(changed)}")
    commit = _git("rev-parse", "--short=12", "HEAD").strip()
    tree = _git("ls-tree", "-r", "HEAD")
    folder = ROOT / "build" / "certify"
    folder.mkdir(parents=True, exist_ok=True)
    committed = _CERTIFICATES / "parts.jsonl"
    ledger = Ledger(folder, committed, commit, lambda part: digest_of(part, tree))
    extent = Extent(
        runs=arguments.runs,
        minutes=arguments.minutes,
        nodes=arguments.nodes,
        other_schedulers=tuple(arguments.rival),
    )
    measured = folder / f"session-{digest_of(None, tree)}.json"
    everything = [*long_tests(), *programs(extent, measured.relative_to(ROOT))]
    chosen = chosen_of(everything, arguments.only)
    if not chosen:
        known = ", ".join(part.name for part in everything)
        sys.exit(f"no part is called {' or '.join(arguments.only)}; there are {known}")
    stem = _CERTIFICATES / f"{datetime.now(UTC):%Y-%m-%d}-{commit}"
    run = CertifyRun(ledger, again=arguments.again, hours=arguments.hours)
    if not measured.is_file():
        _fetch_session(ledger, everything, measured)
    for _ in run.all(chosen, together=arguments.together):
        ended = [run.ended[part.name] for part in everything if part.name in run.ended]
        left_out = [part.name for part in everything if part.name not in run.ended]
        ledger.commit_to(ended)
        _write(stem, ended, left_out, measured, arguments.note, commit)
    print(stem.with_suffix(".md").relative_to(ROOT))
    fine = len(run.ended) == len(chosen) and all(one.how == "ok" for one in run.ended.values())
    sys.exit(0 if fine else 1)


class CertifyRun:
    """Runs parts while there is time, logs each, and keeps how it ended, by its name."""

    def __init__(self, ledger: Ledger, *, again: bool, hours: float) -> None:
        self._ledger = ledger
        self._again = again
        self._deadline_s = time.monotonic() + hours * 3600
        self.ended: dict[str, Ended] = {}

    def all(self, chosen: Sequence[Part], *, together: int) -> Iterator[None]:
        """Run so many parts at a time, then those that measure one by one; yield after each.

        The longest begin first, so that none of them runs by itself at the end.
        """
        side_by_side = [part for part in chosen if not part.alone]
        side_by_side.sort(key=self._ledger.minutes_before, reverse=True)
        with ThreadPoolExecutor(together) as pool:
            running = [pool.submit(self._one, part) for part in side_by_side]
            try:
                for done in as_completed(running):
                    done.result()
                    yield
            finally:
                pool.shutdown(cancel_futures=True)
        for part in chosen:
            if part.alone:
                self._one(part)
                yield

    def _one(self, part: Part) -> None:
        one = None if self._again else self._ledger.find(part)
        if one is None and time.monotonic() > self._deadline_s:
            _say(f"{part.name}: not run, the hours are over")
            return
        _say(f"{part.name}: {part.typed}")
        one = one or self._ledger.run(part)
        _say(f"{part.name}: {one.how} after {one.minutes:.1f} minutes: {one.summary}")
        self.ended[part.name] = one


def _fetch_session(ledger: Ledger, parts: Sequence[Part], measured: Path) -> None:
    """Copy the session of drains that ran elsewhere from the page of their commit."""
    for part in parts:
        if part.name == DRAINS and (ended := ledger.find(part)):
            for session in _CERTIFICATES.glob(f"*-{ended.commit}.json"):
                shutil.copyfile(session, measured)


def _say(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", flush=True)


def uncommitted(status: str) -> list[str]:
    """Return the paths of ``git status --porcelain`` that are not documents."""
    paths = [line[3:] for line in status.splitlines()]
    return [path for path in paths if not is_document(path)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.certify", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each benchmark (medians)")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long the soak lasts")
    parser.add_argument(
        "--hours",
        type=float,
        default=4.0,
        help="when the last part may begin; 0: only write the page",
    )
    parser.add_argument(
        "--together", type=int, default=2, help="parts that do not measure, at a time"
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        help="the part of this name, or parts whose name has this",
    )
    parser.add_argument("--again", action="store_true", help="also what has ended already")
    parser.add_argument("--note", default="", help="what a reader of the figures must know")
    parser.add_argument(
        "--rival", action="append", default=[], metavar="NAME=PATH", help="see python -m bench"
    )
    return parser


def chosen_of(parts: Sequence[Part], words: Sequence[str]) -> list[Part]:
    """The parts that a word names: by its whole name if there is one, else all that contain it.
    Without words: all.
    """
    names = {part.name for part in parts}
    return [
        part
        for part in parts
        if not words
        or any(part.name == word if word in names else word in part.name for word in words)
    ]


def _write(
    stem: Path,
    ended: list[Ended],
    left_out: list[str],
    measured: Path,
    note: str,
    commit: str,
) -> None:
    """The page as it stands so far, beside it the drains' session, and the plots of the newest."""
    found = None
    if measured.is_file():
        found = msgspec.json.decode(measured.read_bytes(), type=Session)
        stem.with_suffix(".json").write_bytes(measured.read_bytes() + b"\n")
        plots.draw(plots.newest())
    title = f"Certificate of {stem.name[:10]}"
    page = certificate(ended, left_out, found, title=title, commit=commit, note=note)
    stem.with_suffix(".md").write_text(page)


def _git(*arguments: str) -> str:
    command = ("git", *arguments)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
