"""`python -m tests.mutation`: which mutants of the lists the fast tests notice.

Exits with 1 if a mutant survives, or if one that is listed as equivalent dies.
"""

import argparse
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutation.coverage import TESTS, files_of
from tests.mutation.running import TestsFail, Verdict, run_mutants
from tests.mutation.table import AREAS, LISTS, InvalidList, Mutant, read_lists, source_of

#: For the tests of one mutant, beside the time that they took without it: most need less than a
#: second.
_LIMIT_S: Final = 60.0
_FAST: Final = "not certify and not integration and not slow"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("only", nargs="*", help="areas, or words of paths and promises")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="forks at a time")
    parser.add_argument("--lists", type=Path, default=LISTS, help="folder of the lists")
    parser.add_argument("--tests", nargs="+", help="the tests to run, in place of the areas' own")
    parser.add_argument("--marks", default=_FAST, help="marks of the tests to run")
    asked = parser.parse_args()
    # So that its forks end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    verdicts: list[Verdict] = []

    def take(verdict: Verdict) -> None:
        verdicts.append(verdict)
        _say(_line(verdict))

    try:
        mutants = [one for one in read_lists(asked.lists) if _is_chosen(one, asked.only)]
        for mutant in mutants:
            source_of(mutant)
        for tests in dict.fromkeys(TESTS.values()):
            # Areas with the same tests are one session.
            chosen = [one for one in mutants if TESTS[one.area] == tests]
            if chosen:
                files = asked.tests or files_of(tests, (one.path for one in chosen))
                run_mutants(
                    chosen, files, take, jobs=asked.jobs, limit_s=_LIMIT_S, marks=asked.marks
                )
    except (InvalidList, TestsFail) as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    return _report(verdicts)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _is_chosen(mutant: Mutant, only: Sequence[str]) -> bool:
    words = f"{mutant.path} {mutant.promise}"
    return not only or any(one == mutant.area if one in AREAS else one in words for one in only)


def _line(verdict: Verdict) -> str:
    mutant = verdict.mutant
    what = f"{mutant.path}: {mutant.promise}"
    tests = f"{verdict.tests:4} tests"
    return f"{verdict.fate:9} {verdict.seconds:6.1f} s {tests}  {what}  {verdict.by}".rstrip()


def _report(verdicts: Sequence[Verdict]) -> int:
    """Print the table and the summary; returns the status to exit with."""
    mutants = [one.mutant for one in verdicts]
    dead = {one.mutant for one in verdicts if one.fate in {"dead", "too slow"}}
    surviving = [one for one in mutants if one not in dead and not one.equivalent]
    wrong = [one for one in mutants if one in dead and one.equivalent]
    for title, found in (("survives", surviving), ("listed as equivalent, and dies", wrong)):
        for one in found:
            _say(f"\n{title}: {one.path}: {one.promise}\n- {one.anchor}\n+ {one.replacement}")
    equivalent = Counter(one.area for one in mutants if one.equivalent)
    counts = Counter(one.area for one in mutants)
    lives = Counter(one.area for one in surviving)
    _say("\n| area | mutants | dead | surviving | equivalent |")
    _say("| --- | ---: | ---: | ---: | ---: |")
    for area in filter(counts.__contains__, AREAS):
        total, alive, same = counts[area], lives[area], equivalent[area]
        _say(f"| {area} | {total} | {total - alive - same} | {alive} | {same} |")
    judged = len(mutants) - equivalent.total()
    killed = judged - len(surviving)
    share = 100 * killed / judged if judged else 100.0
    _say(
        f"\n{killed} of {judged} mutants die ({share:.1f} %), {len(surviving)} survive, "
        f"{equivalent.total()} more are equivalent"
    )
    return 1 if surviving or wrong or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
