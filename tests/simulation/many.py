"""Many seeds in worker processes, and their totals in a file that the next time continues."""

import gc
import multiprocessing
import time
from collections import Counter
from pathlib import Path
from queue import Empty
from typing import Any, Final

import msgspec

from tests.simulation.claims import DEVICE_FEATURES
from tests.simulation.coverage import Coverage
from tests.simulation.running import Options, Result, run

#: A worker that says nothing for so long is stuck.
_SILENCE_S: Final = 300.0


class Failure(msgspec.Struct):
    """A seed that broke a promise."""

    seed: int
    gang: str
    what: str


class Totals(msgspec.Struct):
    """What all runs together did."""

    seeds: int = 0
    gangs: int = 0
    gangs_with_fault: int = 0
    kills: int = 0
    virtual_ms: int = 0
    cpu_ms: int = 0
    partial_s: float = 0.0
    worst_partly_s: float = 0.0
    faults: dict[str, int] = {}
    counts: dict[str, int] = {}
    coverage: list[tuple[str, str, int]] = []
    failures: list[Failure] = []

    def add(self, result: Result) -> None:
        """Count one run."""
        self.seeds += 1
        self.gangs += result.gangs
        self.gangs_with_fault += result.gangs_with_fault
        self.kills += result.kills
        self.virtual_ms += result.virtual_ms
        self.cpu_ms += result.cpu_ms
        self.partial_s += result.partial_s
        self.worst_partly_s = max(self.worst_partly_s, result.worst_partly_s)
        self.faults = dict(Counter(self.faults) + Counter(result.faults))
        self.counts = dict(Counter(self.counts) + Counter(result.counts))
        coverage = Coverage(self.coverage)
        coverage.add(Coverage(result.coverage))
        self.coverage = coverage.rows()
        self.failures += [Failure(result.seed, one.gang, one.what) for one in result.violations[:1]]

    def text(self) -> str:
        """Return the totals as text."""
        lines = [
            f"{self.seeds} seeds, {self.gangs} gang life cycles "
            f"({self.gangs_with_fault} with a fault in them), {self.kills} kills, "
            f"{sum(self.faults.values())} faults, {self.virtual_ms / 3_600_000:.1f} virtual hours, "
            f"{self.cpu_ms / 1000:.0f} s of CPU "
            f"({self.cpu_ms / max(1, self.gangs):.1f} ms for each life cycle)",
            f"partly bound: {self.partial_s:.0f} undisturbed gang seconds, at worst "
            f"{self.worst_partly_s:.1f} s in a row",
            f"records: {dict(sorted(self.counts.items()))}",
            f"faults: {dict(sorted(self.faults.items()))}",
            Coverage(self.coverage).table(),
        ]
        lines += [
            f"BROKEN by seed {one.seed}: {one.gang}: {one.what[-600:]}" for one in self.failures
        ]
        return "\n".join(lines) + "\n"


def run_for(
    ends_s: float,
    *,
    first_seed: int,
    workers: int,
    kept_in: Path | None = None,
    device_features: bool = False,
) -> Totals:
    """Run seeds from `first_seed` on until `ends_s` of the monotonic clock. With `device_features`,
    claims request everything of devices in every one.
    """
    return _run(first_seed, None, workers, ends_s, kept_in, device_features=device_features)


def run_seeds(
    seeds: int,
    *,
    first_seed: int,
    workers: int,
    kept_in: Path | None = None,
    device_features: bool = False,
) -> Totals:
    """Likewise, so many seeds."""
    return _run(first_seed, seeds, workers, None, kept_in, device_features=device_features)


def _run(
    first_seed: int,
    seeds: int | None,
    workers: int,
    ends_s: float | None,
    kept_in: Path | None,
    *,
    device_features: bool,
) -> Totals:
    totals = Totals()
    if kept_in is not None and kept_in.exists():
        totals = msgspec.json.decode(kept_in.read_bytes(), type=Totals)
    # Spawned, so that no worker inherits what this process has imported and patched.
    context = multiprocessing.get_context("spawn")
    last = None if seeds is None else first_seed + seeds - 1
    results: Any = context.Queue()
    # Runs differ in length: an idle worker takes the next seed, so that all end together.
    following: Any = context.Value("q", first_seed)
    processes = [
        context.Process(
            target=_work, args=(results, following, last, ends_s, device_features), daemon=True
        )
        for _ in range(workers)
    ]
    for process in processes:
        process.start()
    working = len(processes)
    try:
        while working:
            body = results.get(timeout=_SILENCE_S)
            if body is None:
                working -= 1
                continue
            totals.add(msgspec.json.decode(body, type=Result))
            if kept_in is not None:
                kept_in.write_bytes(msgspec.json.encode(totals))
    except Empty:
        totals.failures.append(Failure(first_seed, "", "a worker said nothing for five minutes"))
    finally:
        for process in processes:
            process.terminate()
            process.join()
    return totals


def _work(
    results: Any, following: Any, last: int | None, ends_s: float | None, device_features: bool
) -> None:
    """One worker: the next free seed, until the last one is done, the time is up
    or the parent process has died.
    """
    claims = DEVICE_FEATURES if device_features else None
    # What is imported stays: forgetting a run then looks at that run only.
    gc.collect()
    gc.freeze()
    parent = multiprocessing.parent_process()
    while (ends_s is None or time.monotonic() < ends_s) and (parent is None or parent.is_alive()):
        with following.get_lock():
            seed, following.value = following.value, following.value + 1
        if last is not None and seed > last:
            break
        results.put(msgspec.json.encode(run(Options(seed=seed, claims=claims))))
    results.put(None)
