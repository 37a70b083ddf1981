"""``python -m bench.planner``: the table of issue 6; the last line has all figures.

python -m bench.planner [CASE ...] [--json FILE] [--plot FILE] [--strict]
"""

import argparse
import sys
from pathlib import Path

import msgspec

from bench.planner.cases import CASES, Figure
from bench.planner.plot import svg
from shared.runtime import collector

_MARKS = {True: "ok", False: "MISSED", None: ""}


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.planner")
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="all when none is named")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all figures")
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a bar is missed")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="growth as an SVG")
    options = parser.parse_args()
    # As the service does.
    collector.relax()
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
    grown = [
        (int(one.name.split()[0]), one.value)
        for one in found
        if one.group == "growth" and one.unit == "us/pod"
    ]
    if options.plot and grown:
        options.plot.write_text(svg(grown))
    summary = "; ".join(f"{one.name} {one.value:,.0f} {one.unit}" for one in found if one.bar)
    print(f"bench-planner: {len(missed)} missed: {summary}")
    if missed and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
