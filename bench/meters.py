"""What processes cost: CPU and memory of a suite and all its children, and of single processes.

CPU is user plus system time as the kernel counts it, from each process's own start: nothing that
happened before the first look is lost.
"""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import psutil

SAMPLE_S = 0.5
#: Below this share of a core for QUIET_SAMPLES in a row, a suite has nothing left to do.
QUIET_CORE_SHARE = 0.08
QUIET_SAMPLES = 3
_TITLE = re.compile(r"^([a-z][a-z-]*?)-?\d*$")
_MODULE = re.compile(r"^(?:services|tutti\.up)\.(\w+)$")


class ProcessCost(msgspec.Struct, frozen=True, kw_only=True):
    """One process: its role, the CPU it used so far, and the most memory it ever held."""

    role: str
    pid: int
    cpu_s: float
    peak_bytes: int


class SuiteMeter:
    """Follows the process tree below one process; ``metered`` makes one that runs.

    A process that has ended keeps its last sample.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._costs: dict[tuple[int, float], ProcessCost] = {}
        self._totals: list[tuple[float, float]] = []

    def sample(self) -> float:
        """Look at every process now and return the CPU seconds of all so far."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in [self._root, *self._root.children(recursive=True)]:
                self._look_at(process)
        total_s = sum(cost.cpu_s for cost in self._costs.values())
        self._totals.append((time.monotonic(), total_s))
        return total_s

    def costs(self) -> tuple[ProcessCost, ...]:
        """Every process seen, as of the last sample, in the order of starting."""
        ordered = sorted(self._costs.items(), key=lambda item: (item[0][1], item[0][0]))
        return tuple(cost for _, cost in ordered)

    async def keep_sampling(self) -> None:
        """Sample until cancelled: peaks and ends of processes are seen on the way."""
        while True:
            self.sample()
            await asyncio.sleep(SAMPLE_S)

    async def wait_quiet(self, *, timeout_s: float) -> bool:
        """Wait until the suite has nothing left to do; False: it never had within the timeout."""
        ends_s = time.monotonic() + timeout_s
        since = len(self._totals)
        while time.monotonic() < ends_s:
            await asyncio.sleep(SAMPLE_S)
            if is_quiet(self._totals[since:]):
                return True
        return False

    def _look_at(self, process: psutil.Process) -> None:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
            with process.oneshot():
                key = (process.pid, process.create_time())
                times = process.cpu_times()
                known = self._costs.get(key)
                # Asked each time: a process becomes another program, or takes its name, later.
                name = (Path("/proc") / str(process.pid) / "comm").read_text().strip()
                role = role_of(name, process.cmdline())
            peak_bytes = peak_memory_bytes(process.pid)
            self._costs[key] = ProcessCost(
                role=role,
                pid=process.pid,
                cpu_s=times.user + times.system,
                peak_bytes=max(peak_bytes, known.peak_bytes if known else 0),
            )


@contextlib.asynccontextmanager
async def metered(pid: int) -> AsyncIterator[SuiteMeter]:
    """Meter the process and everything below it until the block is left."""
    meter = SuiteMeter(pid)
    task = asyncio.create_task(meter.keep_sampling(), name="suite-meter")
    try:
        yield meter
    finally:
        task.cancel()
        await asyncio.wait([task])


def is_quiet(totals: Sequence[tuple[float, float]]) -> bool:
    """Whether the last samples (instant, CPU seconds so far) show next to no work."""
    recent = totals[-QUIET_SAMPLES - 1 :]
    if len(recent) <= QUIET_SAMPLES:
        return False
    return all(
        (used - used_before) / max(at - before, 1e-9) < QUIET_CORE_SHARE
        for (before, used_before), (at, used) in pairwise(recent)
    )


def role_of(name: str, command: Sequence[str]) -> str:
    """Return what a process of a suite is for.

    Args:
        name: what it calls itself (at most 15 characters); forked services say "binder-0".
        command: its command line; a forked service's is that of the process it was forked from.
    """
    if any(part.endswith("deathsig.py") for part in command):
        return "starting"
    own = _TITLE.match(name)
    if own is not None and not name.startswith("python"):
        return own.group(1)
    for flag, value in pairwise(command):
        module = _MODULE.match(value) if flag == "-m" else None
        if module is not None:
            return module.group(1).replace("_", "-")
    return name


def cpu_s(pid: int) -> float:
    """CPU seconds of one process so far."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def peak_memory_bytes(pid: int) -> int:
    """The most memory a process ever held (VmHWM); 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def machine() -> dict[str, str | int | float]:
    """What the figures were taken on."""
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return {
        "cpu": found.group(1) if found else "unknown",
        "cores": os.cpu_count() or 0,
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": round(os.getloadavg()[0], 2),
    }
