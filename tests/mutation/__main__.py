"""`python -m tests.mutation`: which mutants of the lists the fast tests notice.

Exits with 1 if a mutant survives, or if one that is listed as equivalent dies.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutation.coverage import tests_of
from tests.mutation.running import Verdict, Work, preload, run_all
from tests.mutation.table import AREAS, LISTS, InvalidList, Mutant, read_lists, source_of

#: For the tests of one mutant; most need a few seconds of CPU, on a busy machine a minute.
_LIMIT_S: Final = 600.0


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("only", nargs="*", help="areas, or words of paths and promises")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="forks at a time")
    parser.add_argument("--lists", type=Path, default=LISTS, help="folder of the lists")
    parser.add_argument("--close", action="store_true", help="only the tests closest to a file")
    asked = parser.parse_args()
    try:
        mutants = [one for one in read_lists(asked.lists) if _is_chosen(one, asked.only)]
        for mutant in mutants:
            source_of(mutant)
    except InvalidList as invalid:
        print(invalid, file=sys.stderr)
        return 1
    if not mutants:
        print("no mutant is chosen", file=sys.stderr)
        return 1
    preload()
    failing = _failing_without_mutant(mutants, asked.jobs, wide=not asked.close)
    if failing:
        print("\n".join(["tests fail without a mutant:", *failing]), file=sys.stderr)
        return 1
    dead = _run(mutants, asked.jobs, wide=False)
    if not asked.close:
        left = [one for one in mutants if one not in dead and tests_of(one.path, wide=True)]
        dead |= _run(left, asked.jobs, wide=True)
    return _report(mutants, dead)


def _is_chosen(mutant: Mutant, only: Sequence[str]) -> bool:
    words = f"{mutant.path} {mutant.promise}"
    return not only or any(one == mutant.area or one in words for one in only)


def _failing_without_mutant(mutants: Sequence[Mutant], jobs: int, *, wide: bool) -> list[str]:
    """Tests of these files that fail on the product as it is: they would notice every mutant."""
    lists = {tuple(tests_of(path, wide=False)) for path in {one.path for one in mutants}}
    if wide:
        lists |= {tuple(tests_of(path, wide=True)) for path in {one.path for one in mutants}}
    files = list(dict.fromkeys(file for one in sorted(lists) for file in one))
    work = [Work(None, files[each::jobs]) for each in range(jobs) if files[each::jobs]]
    return [
        f"{one.fate} {one.by}"
        for one in run_all(work, jobs=jobs, limit_s=3 * _LIMIT_S)
        if one.fate != "survives"
    ]


def _run(mutants: Sequence[Mutant], jobs: int, *, wide: bool) -> set[Mutant]:
    """Those of the mutants that die."""
    works = [Work(one, tests_of(one.path, wide=wide)) for one in mutants]
    dead: set[Mutant] = set()
    for verdict in run_all(works, jobs=jobs, limit_s=_LIMIT_S):
        mutant = verdict.mutant
        if mutant is not None and verdict.fate != "survives":
            dead.add(mutant)
        print(_line(verdict), flush=True)
    return dead


def _line(verdict: Verdict) -> str:
    mutant = verdict.mutant
    what = f"{mutant.path}: {mutant.promise}" if mutant is not None else ""
    return f"{verdict.fate:9} {verdict.seconds:6.1f} s  {what}  {verdict.by}".rstrip()


def _report(mutants: Sequence[Mutant], dead: set[Mutant]) -> int:
    """Print the table and the summary; returns the status to exit with."""
    surviving = [one for one in mutants if one not in dead and not one.equivalent]
    wrong = [one for one in mutants if one in dead and one.equivalent]
    for title, found in (("survives", surviving), ("listed as equivalent, and dies", wrong)):
        for one in found:
            print(f"\n{title}: {one.path}: {one.promise}\n- {one.anchor}\n+ {one.replacement}")
    equivalent = Counter(one.area for one in mutants if one.equivalent)
    counts = Counter(one.area for one in mutants)
    lives = Counter(one.area for one in surviving)
    print("\n| area | mutants | dead | surviving | equivalent |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for area in filter(counts.__contains__, AREAS):
        total, alive, same = counts[area], lives[area], equivalent[area]
        print(f"| {area} | {total} | {total - alive - same} | {alive} | {same} |")
    judged = len(mutants) - equivalent.total()
    killed = judged - len(surviving)
    share = 100 * killed / judged if judged else 100.0
    print(
        f"\n{killed} of {judged} mutants die ({share:.1f} %), {len(surviving)} survive, "
        f"{equivalent.total()} more are equivalent"
    )
    return 1 if surviving or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
