"""`python -m services.gang_planner.replay SEGMENT [--scheduler-conf FILE]`: replays a segment.

Exit status: 0 when every decision is equal, 1 when one differs, 2 when a file cannot be used.
"""

import argparse
import pathlib
import sys
from collections.abc import Iterable

from services.gang_planner.core.framework.arguments import ConfigurationError
from services.gang_planner.recorder import Frame, NoSegment, read_segment
from services.gang_planner.replay.comparison import compare
from services.gang_planner.replay.reproduction import reproduce


def start(argv: list[str]) -> int:
    """Replay the segment named on the command line."""
    parser = argparse.ArgumentParser(prog="tutti replay")
    parser.add_argument("segment", type=pathlib.Path, help="a file of the standby's recording")
    parser.add_argument(
        "--scheduler-conf", type=pathlib.Path, help="decide by this one instead of the recorded"
    )
    options = parser.parse_args(argv)
    try:
        frames = _read(options.segment)
        if options.scheduler_conf is None:
            return _reproduce(frames)
        return _compare(frames, options.scheduler_conf.read_text(encoding="utf-8"))
    except (OSError, NoSegment, ConfigurationError) as error:
        sys.stderr.write(f"tutti: {error}\n")
        return 2


def _read(path: pathlib.Path) -> list[Frame]:
    frames = read_segment(path)
    if not any(frame.kind == "snapshot" for frame in frames):
        raise NoSegment(f"{path}: no segment of a recording: it has no snapshot")
    return frames


def _reproduce(frames: Iterable[Frame]) -> int:
    """Replay under the recorded configuration: every record must be equal byte for byte."""
    report = reproduce(frames)
    for difference in report.differences:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(f"{report.equal} records equal, {len(report.differences)} differ\n")
    if report.cut_off:
        sys.stdout.write(f"{report.cut_off} at the end were made of records that are not in it\n")
    return 1 if report.differences else 0


def _compare(frames: Iterable[Frame], policy: str) -> int:
    """Replay under another configuration, and write what it decides otherwise, gang by gang."""
    comparison = compare(frames, policy)
    for difference in comparison.differences:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(
        f"{comparison.equal} gangs alike, {len(comparison.differences)} differences; "
        f"pods bound {comparison.bound[1]} instead of {comparison.bound[0]}, "
        f"evicted {comparison.evicted[1]} instead of {comparison.evicted[0]}\n"
    )
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
