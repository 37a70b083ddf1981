"""``python -m bench.certify``: what an issue reached, with its evidence, as a page under docs/.

Runs every benchmark, every long run and the tests marked `certify`, each in a process of its own,
and writes docs/certificates/<date>-issue<N>-<commit>.md after each of them, so that nothing is
lost. Outputs are in build/certify/<digest of the code>: started again on the same code it resumes
after the last part that ended, also when only documents have changed since. Parts that do not
begin within `--hours` are named as not run.
"""

import argparse
import hashlib
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from bench.certify.page import certificate
from bench.certify.parts import ROOT, Extent, Part, long_tests, programs, session_file
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
    folder = ROOT / "build" / "certify" / code_digest(_git("ls-tree", "-r", "HEAD"))
    extent = Extent(
        runs=arguments.runs,
        minutes=arguments.minutes,
        nodes=arguments.nodes,
        rivals=tuple(arguments.rival),
    )
    everything = [*long_tests(), *programs(extent, folder)]
    chosen = [part for part in everything if not arguments.only or _named(part, arguments.only)]
    if not chosen:
        known = ", ".join(part.name for part in everything)
        sys.exit(f"no part is called {' or '.join(arguments.only)}; there are {known}")
    ledger = Ledger(folder)
    stem = _CERTIFICATES / f"{datetime.now(UTC):%Y-%m-%d}-issue{arguments.issue}-{commit}"
    ended: list[Ended] = []
    deadline_s = time.monotonic() + arguments.hours * 3600
    for part in chosen:
        if time.monotonic() > deadline_s:
            print(f"{arguments.hours:g} hours are over; the parts that are left were not run")
            break
        print(f"{datetime.now(UTC):%H:%M:%S} {part.name}: {part.typed}", flush=True)
        one = (None if arguments.again else ledger.find(part)) or ledger.run(part)
        print(f"         {one.how} after {one.minutes:.1f} minutes: {one.told}", flush=True)
        ended.append(one)
        done = {each.name for each in ended}
        left_out = [each.name for each in everything if each.name not in done]
        _write(stem, ended, left_out, folder, arguments.note, commit, arguments.issue)
    print(stem.with_suffix(".md").relative_to(ROOT))
    sys.exit(0 if len(ended) == len(chosen) and all(one.how == "ok" for one in ended) else 1)


def code_digest(tree: str) -> str:
    """Return a short digest of a commit's files but its documents.

    Args:
        tree: What ``git ls-tree -r`` printed: mode, type, object and, after a tab, path.
    """
    digest = hashlib.sha256()
    for line in tree.splitlines():
        if not _is_document(line.partition("\t")[2]):
            digest.update(f"{line}\n".encode())
    return digest.hexdigest()[:12]


def uncommitted(status: str) -> list[str]:
    """Return the paths of ``git status --porcelain`` that are not documents."""
    paths = [line[3:] for line in status.splitlines()]
    return [path for path in paths if not _is_document(path)]


def _is_document(path: str) -> bool:
    return path.startswith("docs/") or path.endswith(".md")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.certify", description=__doc__)
    parser.add_argument("--issue", type=int, required=True)
    parser.add_argument("--runs", type=int, default=3, help="runs of each benchmark (medians)")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long the soak lasts")
    parser.add_argument("--hours", type=float, default=4.0, help="when the last part may begin")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--only", action="append", default=[], help="parts whose name has this")
    parser.add_argument("--again", action="store_true", help="also what was run on this commit")
    parser.add_argument("--note", default="", help="what a reader of the figures must know")
    parser.add_argument(
        "--rival", action="append", default=[], metavar="NAME=PATH", help="see python -m bench"
    )
    return parser


def _named(part: Part, words: list[str]) -> bool:
    return any(word in part.name for word in words)


def _write(
    stem: Path,
    ended: list[Ended],
    left_out: list[str],
    folder: Path,
    note: str,
    commit: str,
    issue: int,
) -> None:
    """The page as it stands so far, and beside it the drains' session."""
    measured = session_file(folder)
    found = None
    if measured.is_file():
        found = msgspec.json.decode(measured.read_bytes(), type=Session)
        stem.with_suffix(".json").write_bytes(measured.read_bytes() + b"\n")
    title = f"Issue {issue}, {stem.name[:10]}"
    page = certificate(ended, left_out, found, title=title, commit=commit, note=note)
    stem.with_suffix(".md").write_text(page)


def _git(*arguments: str) -> str:
    command = ("git", *arguments)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
