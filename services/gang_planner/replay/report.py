"""What a replay found, as lines on stdout; the exit status: 1 where anything differs."""

import sys
from collections.abc import Iterable

from services.gang_planner.recorder import Frame
from services.gang_planner.replay.comparison import compare
from services.gang_planner.replay.reproduction import reproduce


def reproduced(frames: Iterable[Frame]) -> int:
    """By the recorded configuration: every record must come out byte for byte."""
    report = reproduce(frames)
    for difference in report.differences:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(f"{report.equal} records equal, {len(report.differences)} differ\n")
    if report.cut_off:
        sys.stdout.write(f"{report.cut_off} at the end were made of records that are not in it\n")
    return 1 if report.differences else 0


def compared(frames: Iterable[Frame], policy: str) -> int:
    """By another configuration: what it decides otherwise, gang by gang."""
    found = compare(frames, policy)
    for difference in found.differences:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(
        f"{found.equal} gangs alike, {len(found.differences)} differences; "
        f"pods bound {found.bound[1]} instead of {found.bound[0]}, "
        f"evicted {found.evicted[1]} instead of {found.evicted[0]}\n"
    )
    return 1 if found.differences else 0
