"""Runs the tests of an area against its mutants.

One session of pytest imports the product and collects the tests. A fork of it runs each test once,
and records which functions it calls. Then a fork for each mutant patches the loaded module and runs
the tests that call what was changed, the shortest first, until one fails. A fork takes
milliseconds, so most mutants take as long as the one test that notices them.
"""

import gc
import os
import pickle
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, Final, Literal, NamedTuple

import pytest

from tests.mutation.coverage import Called, Recorder, callers_of
from tests.mutation.patching import NotPatchable, changes_of, patch
from tests.mutation.table import Mutant

_FLAGS: Final = ("-q", "-n0", "-p", "no:cacheprovider", "--tb=short", "--no-header", "--no-summary")
_POLL_S: Final = 0.01
#: For all tests of an area without a mutant, while it is recorded what they call.
_RECORDING_S: Final = 3_600
#: How much longer than in the recording tests may take before a mutant counts as too slow. One that
#: survives runs all its tests, and must not count as dead because these are many.
_SLOWER_MAX: Final = 4.0

Fate = Literal["dead", "too slow", "survives", "broken"]
"""dead: a test failed. too slow: the tests did not end in time, so a mutant that loops is noticed.
broken: it was not tried."""


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    fate: Fate
    #: The test that noticed it, or what went wrong.
    by: str
    seconds: float
    #: How many tests call what it changes.
    tests: int


class TestsFail(Exception):
    """Tests fail without a mutant: they would notice every one."""

    #: For pytest: it holds no tests.
    __test__ = False


class _Fork(NamedTuple):
    output: IO[bytes]
    began_s: float
    limit_s: float
    tests: int


def run_mutants(
    mutants: Sequence[Mutant],
    tests: Sequence[str],
    report: Callable[[Verdict], None],
    *,
    jobs: int,
    limit_s: float,
    marks: str,
) -> None:
    """Run files of tests against mutants, `jobs` at a time, and report each verdict.

    Raises:
        TestsFail: They fail without a mutant, or cannot be collected.
    """
    session = _Session(mutants, report, jobs=jobs, limit_s=limit_s)
    status = pytest.main([*_FLAGS, "-m", marks, *tests], plugins=[session])
    if session.failing or status:
        raise TestsFail("\n".join(session.failing) or f"pytest ended with {status}")


class _Session:
    """The plugin of pytest that runs mutants in place of its tests."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        report: Callable[[Verdict], None],
        *,
        jobs: int,
        limit_s: float,
    ) -> None:
        self._mutants = mutants
        self._report = report
        self._jobs = jobs
        self._limit_s = limit_s
        self.failing: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants. In place of pytest's own loop."""
        if session.testsfailed:
            raise session.Interrupted("tests cannot be collected")
        items = {item.nodeid: item for item in session.items}
        gc.freeze()
        calls = self._calls(session.items)
        if not self.failing:
            for verdict in self._verdicts(items, calls):
                self._report(verdict)
        return True

    def _calls(self, items: Sequence[pytest.Item]) -> list[Called]:
        """What each test calls, from a fork that runs all."""
        recorder = Recorder(dict.fromkeys(one.path for one in self._mutants))

        def work() -> object:
            found: list[Called] = []
            failed: list[str] = []
            for item, following in _with_next(items):
                with recorder.recording(item.nodeid, found):
                    passed = _passes(item, following)
                if not passed:
                    failed.append(item.nodeid)
            return found, failed

        pid, output = _fork(work, _RECORDING_S)
        os.waitpid(pid, 0)
        answered = _answer(output)
        if not isinstance(answered, tuple):
            self.failing = [str(answered)]
            return []
        calls: list[Called]
        calls, self.failing = answered
        return calls

    def _verdicts(
        self, items: dict[str, pytest.Item], calls: Sequence[Called]
    ) -> Iterator[Verdict]:
        waiting, forks = iter(self._mutants), dict[int, tuple[Mutant, _Fork]]()
        try:
            while True:
                while len(forks) < self._jobs and (mutant := next(waiting, None)) is not None:
                    try:
                        forks |= self._started(mutant, items, calls)
                    except NotPatchable as error:
                        yield Verdict(mutant, "broken", str(error), 0.0, 0)
                if not forks:
                    return
                for pid in list(forks):
                    verdict = self._ended(pid, *forks[pid])
                    if verdict is not None:
                        del forks[pid]
                        yield verdict
                time.sleep(_POLL_S)
        finally:
            for pid in forks:
                _kill(pid)
                os.waitpid(pid, 0)

    def _started(
        self, mutant: Mutant, items: dict[str, pytest.Item], calls: Sequence[Called]
    ) -> dict[int, tuple[Mutant, _Fork]]:
        changes = changes_of(mutant)
        tests = callers_of(calls, mutant.path, changes.functions, whole_file=bool(changes.values))

        def work() -> object:
            patch(mutant)
            for item, following in _with_next([items[one] for one in tests]):
                if not _passes(item, following):
                    return "dead", item.nodeid
            return "survives", ""

        recorded_s = {one.test: one.seconds for one in calls}
        limit_s = self._limit_s + _SLOWER_MAX * sum(recorded_s[one] for one in tests)
        began_s = time.monotonic()
        pid, output = _fork(work, 2 * limit_s)
        return {pid: (mutant, _Fork(output, began_s, limit_s, len(tests)))}

    def _ended(self, pid: int, mutant: Mutant, fork: _Fork) -> Verdict | None:
        """The verdict of a fork; None: it runs."""
        seconds = time.monotonic() - fork.began_s
        late = seconds > fork.limit_s
        if late:
            _kill(pid)
        ended, _ = os.waitpid(pid, 0 if late else os.WNOHANG)
        if not ended:
            return None
        if late:
            fork.output.close()
            return Verdict(mutant, "too slow", "", seconds, fork.tests)
        answered = _answer(fork.output)
        fate, by = answered if isinstance(answered, tuple) else ("broken", str(answered))
        return Verdict(mutant, fate, by, seconds, fork.tests)


def _with_next(
    items: Iterable[pytest.Item],
) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Each test with the one that follows it: pytest keeps the fixtures that both need."""
    listed = [*items]
    following: list[pytest.Item | None] = [*listed[1:], None]
    yield from zip(listed, following, strict=False)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run a test, and return whether it passes or is skipped."""
    from _pytest.runner import runtestprotocol
    from _pytest.warnings import catch_warnings_for_item

    # pytest's own loop applies a test's marks of warnings around its protocol.
    with catch_warnings_for_item(item.config, item.ihook, when="runtest", item=item, record=False):
        return not any(one.failed for one in runtestprotocol(item, log=False, nextitem=following))


def _fork(work: Callable[[], object], limit_s: float) -> tuple[int, IO[bytes]]:
    """Do some work in a fork of this process; what it returns is the answer in the file. The fork
    ends by itself after `limit_s`, also if this process was killed.
    """
    # The fork writes to it, and `_answer` closes it.
    output = tempfile.TemporaryFile()  # noqa: SIM115 - it outlives this function
    pid = os.fork()
    if pid:
        return pid, output
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(int(limit_s))
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silence, descriptor)
        try:
            answer: object = work()
        except BaseException:  # noqa: BLE001 - whatever it is, the parent reads it
            answer = traceback.format_exc()
        output.write(pickle.dumps(answer))
        output.flush()
    finally:
        # Nothing that the parent's session does at its end may be done here.
        os._exit(0)


def _answer(output: IO[bytes]) -> Any:
    """The answer of a fork that has ended; a text: it failed."""
    with output:
        output.seek(0)
        found = output.read()
    return pickle.loads(found) if found else "the fork ended without an answer"


def _kill(pid: int) -> None:
    """End a fork and all that it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)
