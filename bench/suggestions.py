"""What share of gangs that wait gets a suggestion, and how long that takes: the jobs of Theta,
simulated with one reservation, and suggestions for a sample of those that wait, when they arrive.

That a suggestion holds is proved while it is made, by planning it. Everything but the time is
deterministic, as long as no search is cut off. Bars are those of issue 40.

    python -m bench.suggestions [--traces FOLDER] [--load 0.85] [--every 40] [--jobs 3000]
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.bars import Figure
from bench.estimates import plan_of, show
from services.gang_planner.core.planner import Planner
from services.gang_planner.estimator import suggestions_now
from services.gang_planner.simulation.engine import Engine
from shared.contracts.questions import Suggestion

_TRACE: Final = "theta"
_LOAD: Final = 0.85
_WITH_ONE_BAR: Final = 0.95
_TOOK_BAR: Final = 2.0


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waited."""

    suggestions: tuple[Suggestion, ...]
    took_s: float


def measure(traces: Path, load: float, jobs: int | None, every: int) -> list[Sample]:
    """Simulate the trace, with suggestions for every so many jobs that wait."""
    plan = plan_of(traces / f"{_TRACE}.csv", _TRACE, load, jobs)
    samples: list[Sample] = []
    waited = 0

    def on_wait(job: int, planner: Planner, now_ms: int) -> None:
        nonlocal waited
        waited += 1
        if waited % every:
            return
        begun_s = time.monotonic()
        answer = suggestions_now(planner, now_ms, f"group-{job}.1")
        took_s = time.monotonic() - begun_s
        samples.append(Sample(suggestions=answer.suggestions, took_s=took_s))

    Engine(plan, on_wait=on_wait).run()
    return samples


def figures(samples: list[Sample], load: float) -> Iterator[Figure]:
    """The figures, held to the bars."""
    group = f"{_TRACE}, load {load:g}"
    yield Figure(group=group, name="gangs", value=len(samples), unit="")
    if not samples:
        return
    some = sum(bool(sample.suggestions) for sample in samples) / len(samples)
    yield Figure(
        group=group,
        name="with a suggestion",
        value=some,
        unit="",
        bar=_WITH_ONE_BAR,
        at_least=True,
    )
    took = sorted(sample.took_s for sample in samples)
    yield Figure(group=group, name="median time", value=median(took), unit="s", bar=_TOOK_BAR)
    yield Figure(group=group, name="longest time", value=took[-1], unit="s")
    kinds = Counter(each.kind for sample in samples for each in sample.suggestions)
    for kind, count in kinds.most_common():
        yield Figure(group=group, name=f"with {kind}", value=count / len(samples), unit="")


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.suggestions", description=__doc__)
    root = Path(__file__).parents[1]
    parser.add_argument("--traces", type=Path, default=root.parent / "shared" / "traces")
    parser.add_argument("--load", type=float, default=_LOAD)
    parser.add_argument("--jobs", type=int, help="only the first jobs of the trace")
    parser.add_argument("--every", type=int, default=40, help="of the jobs that wait")
    parser.add_argument("--strict", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    if not (options.traces / f"{_TRACE}.csv").is_file():
        sys.exit(f"{options.traces / f'{_TRACE}.csv'} is absent: --traces names its folder")
    samples = measure(options.traces, options.load, options.jobs, options.every)
    if show("suggestions", list(figures(samples, options.load))) and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
