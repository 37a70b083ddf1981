"""``python -m tests.chaos``: minutes of chaos; exit status 1 if a promise broke."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec

from tests.chaos import running, two_schedulers
from tests.chaos.report import Report
from tests.chaos.running import suite_flags
from tests.chaos.two_schedulers import SharedReport
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import ControlPlaneOptions
from tests.integration.suite import running_suite


def main() -> None:
    """Run, print the table, write the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--nodes", type=int, help="50; 10 with two schedulers")
    parser.add_argument(
        "--two-schedulers",
        action="store_true",
        help="gangs of kube-scheduler and of Tutti that need more than all nodes offer",
    )
    parser.add_argument("--only", action="append", default=[], metavar="FAULT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report here, too")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the suite's logs here")
    arguments = parser.parse_args()
    started_s = time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - started_s:7.1f}  {line}\n")
        sys.stdout.flush()

    say(f"seed {arguments.seed}")
    report = play(arguments, arguments.keep, say)
    if arguments.json is not None:
        arguments.json.write_bytes(
            msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
        )
    sys.stdout.write(f"\n{report.table()}\n")
    broken = list(report.broken())
    for one in broken:
        sys.stdout.write(f"BROKEN: {one}\n")
    sys.exit(1 if broken else 0)


def play(
    arguments: argparse.Namespace, keep: Path | None, say: Callable[[str], None]
) -> Report | SharedReport:
    """Start the cluster and the suite, play, and stop both."""
    shared = arguments.two_schedulers
    options = two_schedulers.OPTIONS if shared else ControlPlaneOptions(scheduler=True)
    with tempfile.TemporaryDirectory() as scratch, ControlPlane(options) as control_plane:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        kubeconfig = control_plane.admin_kubeconfig
        with running_suite(kubeconfig, folder, *suite_flags()) as suite:
            say("the suite is ready")
            run = two_schedulers.run if shared else running.run
            played: Coroutine[None, None, Report | SharedReport] = run(
                control_plane,
                suite,
                seed=arguments.seed,
                minutes=arguments.minutes,
                nodes=arguments.nodes or (10 if shared else 50),
                only=arguments.only,
                say=say,
            )
            return asyncio.run(played)


if __name__ == "__main__":
    main()
