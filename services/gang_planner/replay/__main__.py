"""`python -m services.gang_planner.replay SEGMENT [--scheduler-conf FILE]`: 1 where it differs."""

import argparse
import pathlib
import sys

from services.gang_planner.core.configuration.configuration import ConfigurationError
from services.gang_planner.recorder import read_segment
from services.gang_planner.replay.report import compared, reproduced


def start(argv: list[str]) -> int:
    """Replay the segment named on the command line."""
    parser = argparse.ArgumentParser(prog="tutti replay")
    parser.add_argument("segment", type=pathlib.Path, help="a file of the standby's recording")
    parser.add_argument(
        "--scheduler-conf", type=pathlib.Path, help="decide by this one instead of the recorded"
    )
    options = parser.parse_args(argv)
    try:
        frames = list(read_segment(options.segment))
        if options.scheduler_conf is None:
            return reproduced(frames)
        return compared(frames, options.scheduler_conf.read_text(encoding="utf-8"))
    except (OSError, ConfigurationError) as error:
        sys.stderr.write(f"tutti: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
