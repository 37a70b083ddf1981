"""Runs tests against one mutant: in a fork of this process, which imports the mutant in place of
the file.

This process has imported the libraries, but nothing of the product, so a fork begins within
milliseconds and imports the product as its mutant leaves it.
"""

import importlib
import importlib.util
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import IO, Final, Literal, NamedTuple

from typing_extensions import override

from tests.mutation.table import ROOT, Mutant, source_of

#: Libraries whose import takes long.
_LIBRARIES: Final = (
    "aiohttp.web",
    "blockbuster",
    "hypothesis",
    "msgspec",
    "numpy",
    "psutil",
    "pytest",
    "yaml",
)
_FLAGS: Final = (
    *("-x", "-q", "-n0", "--tb=no", "-p", "no:cacheprovider"),
    *("-m", "not certify and not integration"),
    # The libraries were imported before pytest could rewrite their own assertions.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
_POLL_S: Final = 0.02
#: Exit statuses of pytest.
_PASSED: Final = 0
_FAILED: Final = 1

Fate = Literal["dead", "too slow", "survives", "broken"]
"""dead: a test failed. too slow: the tests did not end in time, so a mutant that loops is noticed.
broken: the tests could not run at all."""


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant | None
    fate: Fate
    #: The test that noticed it, or the end of what pytest printed.
    by: str
    seconds: float


class Work(NamedTuple):
    """Tests to run against a mutant; None: against the product as it is."""

    mutant: Mutant | None
    tests: Sequence[str]


class _Child(NamedTuple):
    work: Work
    output: IO[bytes]
    began_s: float


def preload() -> None:
    """Import the libraries; call before the first fork."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    loaded = [name for name in sys.modules if name.split(".")[0] in {"services", "shared", "tutti"}]
    assert not loaded, f"the product is imported already: {loaded}"


def run_all(works: Iterable[Work], *, jobs: int, limit_s: float) -> Iterator[Verdict]:
    """Run all works, `jobs` at a time, and yield what became of each as it ends."""
    queue, children = iter(works), dict[int, _Child]()
    try:
        while True:
            while len(children) < jobs and (work := next(queue, None)) is not None:
                children |= _start(work)
            if not children:
                return
            yield from _ended(children, limit_s)
            time.sleep(_POLL_S)
    finally:
        for pid in children:
            _kill(pid)
            os.waitpid(pid, 0)


def _ended(children: dict[int, _Child], limit_s: float) -> Iterator[Verdict]:
    for pid, child in list(children.items()):
        seconds = time.monotonic() - child.began_s
        late = seconds > limit_s
        if late:
            _kill(pid)
        ended, status = os.waitpid(pid, 0 if late else os.WNOHANG)
        if ended:
            del children[pid]
            child.output.seek(0)
            printed = child.output.read().decode(errors="replace")
            child.output.close()
            fate, by = _fate(os.waitstatus_to_exitcode(status), printed, late=late)
            yield Verdict(child.work.mutant, fate, by, seconds)


def _fate(status: int, printed: str, *, late: bool) -> tuple[Fate, str]:
    if late:
        return "too slow", ""
    if status == _PASSED:
        return "survives", ""
    noticed = re.findall(r"^(?:FAILED|ERROR) (\S+)", printed, flags=re.MULTILINE)
    # A mutant that cannot even be imported fails the collection of tests.
    if noticed and (status == _FAILED or "error" in printed.lower()):
        return "dead", noticed[0]
    return "broken", "\n".join(printed.strip().splitlines()[-15:])


def _start(work: Work) -> dict[int, _Child]:
    # It must outlive this function: the fork writes to it.
    output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the fork has ended
    pid = os.fork()
    if not pid:
        _be_the_fork(work, output.fileno())
    return {pid: _Child(work, output, time.monotonic())}


def _be_the_fork(work: Work, output: int) -> None:
    """Run the tests, and end."""
    status = 70
    try:
        os.setpgid(0, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(ROOT)
        if work.mutant is not None:
            sys.meta_path.insert(0, _MutantFinder(work.mutant))
        main: Callable[[list[str]], int] = importlib.import_module("pytest").main
        status = int(main([*_FLAGS, *work.tests]))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent reads it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Nothing of the parent's own may run here.
        os._exit(status)


def _kill(pid: int) -> None:
    """End a fork and all that it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)


class _MutantFinder(MetaPathFinder):
    """Finds the mutant in place of its file."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = mutant.module
        self._file = str(ROOT / mutant.path)
        self._code = compile(source_of(mutant), self._file, "exec", dont_inherit=True)

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _CodeLoader(fullname, self._file, self._code)
        return importlib.util.spec_from_file_location(fullname, self._file, loader=loader)


class _CodeLoader(SourceFileLoader):
    """Loads code that is compiled already."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    @override
    def get_code(self, fullname: str) -> CodeType:
        return self._code


