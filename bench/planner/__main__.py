"""``python -m bench.planner``: the table of issue 6; the last line has all figures.

python -m bench.planner [CASE ...] [--json FILE] [--strict]
"""

import argparse
import sys
from pathlib import Path

import msgspec

from bench.planner.cases import CASES, Figure

_MARKS = {True: "ok", False: "MISSED", None: ""}


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.planner")
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="all when none is named")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all figures")
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a bar is missed")
    options = parser.parse_args()
    found: list[Figure] = []
    for name in options.cases or CASES:
        for figure in CASES[name]():
            found.append(figure)
            bar = "" if figure.bar is None else f"{figure.bar:,.0f}"
            print(
                f"{figure.group:<27} {figure.name:<56} {figure.value:>12,.1f} {figure.unit:<7} "
                f"{bar:>8} {_MARKS[figure.passed]}",
                flush=True,
            )
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    missed = [one for one in found if one.passed is False]
    summary = "; ".join(f"{one.name} {one.value:,.0f} {one.unit}" for one in found if one.bar)
    print(f"bench-planner: {len(missed)} missed: {summary}")
    if missed and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
