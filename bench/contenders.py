"""The schedulers that are measured: `tutti up`, or another scheduler, started as its users start
it.
"""

import asyncio
import compileall
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import msgspec

from bench.meters import SuiteMeter, metered
from tests.controlplane.processes import Component

#: Longer than the suite's own grace, after which it kills what is left.
_STOP_S = 20.0
_POLL_S = 0.02
_IDLE_S = 10.0
READY_TIMEOUT_S = 60.0
_ROOT = Path(__file__).parents[1]
#: What an installation has of this repository.
PACKAGES = ("services", "shared", "tutti")


class ContenderFailed(RuntimeError):
    """It ended, or never became ready; with the end of its log."""


class Contender(Protocol):
    """A scheduler that can be started against the testbed."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        ...

    @property
    def scheduler_name(self) -> str:
        """What pods name to be scheduled by it."""
        ...

    def command(self, kubeconfig: Path, folder: Path) -> list[str]:
        """Return how it is started; it may write into the folder."""
        ...

    def ready_file(self, folder: Path) -> Path | None:
        """Return the file that it writes when it is ready; None when it never says."""
        ...

    def prepare(self) -> None:
        """Do what its installation does once, before its first start."""
        ...


class Tutti(msgspec.Struct, frozen=True, kw_only=True):
    """The whole suite, NATS included, by `tutti up`."""

    name: str = "tutti"
    scheduler_name: str = "volcano"
    extra_flags: tuple[str, ...] = ()

    def command(self, kubeconfig: Path, folder: Path) -> list[str]:
        """See Contender."""
        return [
            str(Path(sys.executable).with_name("tutti")),
            "up",
            f"--kubeconfig={kubeconfig}",
            f"--data-dir={folder / 'data'}",
            f"--ready-file={folder / 'ready.json'}",
            # The contenders have no such service either.
            "--no-api",
            *self.extra_flags,
        ]

    def ready_file(self, folder: Path) -> Path | None:
        """See Contender."""
        return folder / "ready.json"

    def prepare(self) -> None:
        """See Contender. The image and pip compile all modules. A checkout never has bytecode where
        PYTHONDONTWRITEBYTECODE is set, and each process would compile the modules that it imports.
        """
        compile_modules(_ROOT / package for package in PACKAGES)


class OtherScheduler(msgspec.Struct, frozen=True, kw_only=True):
    """A scheduler's binary that takes Volcano's flags.

    Attributes:
        name: In tables.
        binary: Its path.
        flags: Flags beyond the kubeconfig and the scheduler's name.
        scheduler_name: What its pods name.
    """

    name: str
    binary: Path
    flags: tuple[str, ...] = ()
    scheduler_name: str = "volcano"

    def command(self, kubeconfig: Path, folder: Path) -> list[str]:
        """See Contender."""
        conf = folder / "scheduler.conf"
        conf.write_text(VOLCANO_CONF)
        return [
            str(self.binary),
            f"--kubeconfig={kubeconfig}",
            f"--scheduler-name={self.scheduler_name}",
            f"--scheduler-conf={conf}",
            # It alone runs here, and an election would cost it seconds.
            "--leader-elect=false",
            *self.flags,
        ]

    def ready_file(self, folder: Path) -> Path | None:
        """See Contender."""
        del folder
        return None

    def prepare(self) -> None:
        """See Contender: a binary needs nothing."""


#: Volcano's own default, from its installer.
VOLCANO_CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


class Running:
    """A contender: since when it runs, what it costs, and whether it is ready."""

    meter: SuiteMeter

    def __init__(self, component: Component, ready_file: Path | None) -> None:
        self.started_s, self._started_wall_s = time.monotonic(), time.time()
        self._component = component
        self._ready_file = ready_file

    def check(self) -> None:
        """Raise ContenderFailed when it has ended."""
        if not self._component.is_running:
            raise ContenderFailed(f"it ended:\n{self._component.log_tail()}")

    async def wait_ready(self) -> float | None:
        """Wait until it says that it is ready; seconds since its start, None when it never says.

        Raises:
            ContenderFailed: See there.
        """
        if self._ready_file is None:
            return None
        while not self._ready_file.exists():
            self.check()
            if time.monotonic() - self.started_s > READY_TIMEOUT_S:
                raise ContenderFailed(
                    f"not ready after {READY_TIMEOUT_S:g} s:\n{self._component.log_tail()}"
                )
            await asyncio.sleep(_POLL_S)
        # A late reader gets the same answer.
        return self._ready_file.stat().st_mtime - self._started_wall_s

    async def idle_core_percent(self) -> float:
        """CPU in percent of a core over some seconds; call it when nothing happens."""
        before_s = self.meter.sample()
        await asyncio.sleep(_IDLE_S)
        return (self.meter.sample() - before_s) / _IDLE_S * 100


def compile_modules(folders: Iterable[Path]) -> None:
    """Write the bytecode of all modules below these folders that are newer than theirs."""
    for folder in folders:
        compileall.compile_dir(folder, quiet=1)


@asynccontextmanager
async def running(contender: Contender, kubeconfig: Path) -> AsyncIterator[Running]:
    """Start a contender with an empty folder of its own; stop it at the end.

    Raises:
        ContenderFailed: at the end, when it did not last until then.
    """
    with TemporaryDirectory(prefix="tutti-bench-") as name:
        folder = Path(name)
        command = contender.command(kubeconfig, folder)
        await asyncio.to_thread(contender.prepare)
        component = Component(contender.name, command, folder / "output.log")
        suite = Running(component, contender.ready_file(folder))
        component.start()
        try:
            async with metered(component.pid) as meter:
                suite.meter = meter
                yield suite
                suite.check()
        finally:
            await asyncio.to_thread(component.stop, _STOP_S)
