"""``python -m bench``: drains and live gangs on a real API server, against the bars of issue 4.

Prints tables, writes JSON. The exit status is 0 when everything ran; with --strict also a missed
bar is a failure.
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import uvloop
from rich.console import Console

from bench import report, session
from bench.bars import LARGE_NODES
from bench.contenders import Contender, OtherScheduler, Tutti
from bench.load import Load, parsed
from bench.session import DRAINS, LARGE, Plan

#: Git ignores it.
OUT_DIR = Path(__file__).parent / "out"
_NODES = 1_000


def main() -> None:
    """Run what was asked for."""
    arguments = _parser().parse_args()
    plan = _plan(arguments)
    console = Console(stderr=False)

    def say(line: str) -> None:
        console.print(f"{datetime.now(UTC):%H:%M:%S} {line}", highlight=False, markup=False)
        # A user who follows a session of an hour through a pipe wants each line at once.
        console.file.flush()

    found = uvloop.run(session.run(plan, say))
    report.print_tables(found, console)
    path = arguments.json or OUT_DIR / f"{found.started_at.replace(':', '')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    say(f"{found.took_s:.0f} s; all runs are in {path}")
    if found.failures or (arguments.strict and report.missed(found)):
        sys.exit(1)


def _plan(arguments: argparse.Namespace) -> Plan:
    drains: tuple[Load, ...] = tuple(arguments.load) or DRAINS
    contenders: list[Contender] = [Tutti()]
    contenders += [
        OtherScheduler(name=name, binary=path, flags=tuple(arguments.rival_flag))
        for name, path in arguments.rival
    ]
    if arguments.what == "large":
        return Plan(
            nodes=arguments.nodes or LARGE_NODES,
            runs=arguments.runs,
            drains=tuple(arguments.load) or (LARGE,),
            with_live=True,
            with_webhook=False,
            crowd=LARGE,
            contenders=contenders,
        )
    return Plan(
        nodes=arguments.nodes or _NODES,
        runs=arguments.runs,
        drains=drains if arguments.what in {"drain", "all"} else (),
        with_live=arguments.what in {"live", "all"},
        with_webhook=arguments.what in {"webhook", "all"},
        each_run=arguments.each_run,
        contenders=contenders,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "what", nargs="?", default="all", choices=("drain", "live", "webhook", "all", "large")
    )
    parser.add_argument("--runs", type=_positive, default=3, help="runs of each (medians)")
    parser.add_argument(
        "--nodes",
        type=_positive,
        help=f"nodes of the cluster ({_NODES}; {LARGE_NODES} in the case of a large cluster)",
    )
    parser.add_argument(
        "--load",
        type=parsed,
        action="append",
        default=[],
        metavar="GxN[bare]",
        help="drain G gangs of N pods instead of the bars' loads; repeatable",
    )
    parser.add_argument(
        "--rival",
        type=_named_binary,
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="also run this scheduler's binary (with Volcano's flags) on the same cluster",
    )
    parser.add_argument(
        "--rival-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="a flag for that scheduler",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all runs")
    parser.add_argument(
        "--each-run",
        action="store_true",
        help="run five drains of 20x500 and eight times live gangs, whose bars hold for each run",
    )
    parser.add_argument("--strict", action="store_true", help="fail when a bar is missed")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


def _named_binary(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and Path(path).is_file()):
        raise argparse.ArgumentTypeError(f"{text}: must be NAME=PATH of a scheduler's binary")
    return name, Path(path).absolute()


if __name__ == "__main__":
    main()
