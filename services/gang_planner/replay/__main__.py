"""`python -m services.gang_planner.replay SEGMENT`: exits with 1 where a record differs."""

import pathlib
import sys

from services.gang_planner.recording import read_segment
from services.gang_planner.replay.reproducing import reproduce


def start(argv: list[str]) -> int:
    """Replay the segment named on the command line."""
    if len(argv) != 1:
        sys.stderr.write("usage: python -m services.gang_planner.replay SEGMENT\n")
        return 2
    report = reproduce(read_segment(pathlib.Path(argv[0])))
    for difference in report.differences:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(f"{report.equal} records equal, {len(report.differences)} differ\n")
    if report.cut_off:
        sys.stdout.write(f"{report.cut_off} at the end were made of records that are not in it\n")
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
