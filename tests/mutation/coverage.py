"""Which tests run which functions of the product, so that a mutant meets those tests only."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from cProfile import Profile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from tests.mutation.table import ROOT

_CORE: Final = "tests/services/gang_planner/core"
#: The tests of each area, beside those that mirror a file's path. All are fast ones.
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "binder": ("tests/services/binder",),
    "api": ("tests/services/api",),
    "lifecycle": (_CORE,),
    "foresight": (
        f"{_CORE}/foresight",
        f"{_CORE}/lifecycle/test_run_limits.py",
        f"{_CORE}/preemption/test_replayed.py",
        f"{_CORE}/test_replayed_holds.py",
        f"{_CORE}/test_replayed_repairs.py",
    ),
    "ledgers": (_CORE,),
    "security": (
        "tests/services/binder/test_preconditions.py",
        "tests/services/api",
        "tests/services/admission_webhook",
        "tests/services/controller/core/statuses",
    ),
}


class Called(NamedTuple):
    """What one test calls."""

    test: str
    seconds: float
    #: Paths and qualified names of functions.
    functions: frozenset[tuple[str, str]]


def files_of(tests: Iterable[str], paths: Iterable[str]) -> list[str]:
    """These files and folders of tests, and the tests that mirror the files at `paths`."""
    found = dict.fromkeys(tests)
    for path in paths:
        file = Path(path)
        folder = ROOT / "tests" / file.parent
        mirrored = [*folder.glob(f"test_{file.stem}*.py"), *folder.glob("test_*.py")]
        found |= dict.fromkeys(str(one.relative_to(ROOT)) for one in sorted(mirrored))
    folders = [one for one in found if not one.endswith(".py")]
    return [one for one in found if not any(one.startswith(f"{each}/") for each in folders)]


class Recorder:
    """Records the functions of some files that are called."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = {str(ROOT / path): path for path in paths}
        self._codes: set[CodeType] = set()

    @contextmanager
    def recording(self, test: str, found: list[Called]) -> Iterator[None]:
        """Add what is called in the block to `found`."""
        self._codes = codes = set[CodeType]()
        paths = self._paths

        def called(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_filename in paths:
                codes.add(frame.f_code)

        # Written in C: a test of the planner's core takes three times as long with `called`.
        profile = Profile(subcalls=False, builtins=False)
        began_s = time.monotonic()
        threading.setprofile(called)
        profile.enable()
        try:
            yield
        finally:
            profile.disable()
            threading.setprofile(None)
        codes.update(
            one.code
            for one in profile.getstats()
            if isinstance(one.code, CodeType) and one.code.co_filename in paths
        )
        names = frozenset(
            (paths[one.co_filename], one.co_qualname.partition(".<locals>")[0]) for one in codes
        )
        found.append(Called(test, time.monotonic() - began_s, names))


def callers_of(
    calls: Sequence[Called], path: str, functions: Sequence[str], *, whole_file: bool
) -> list[str]:
    """The tests that call one of these functions, or any of the file; the shortest first."""
    wanted = {(path, name) for name in functions}
    chosen = [
        one
        for one in calls
        if not wanted.isdisjoint(one.functions)
        or (whole_file and any(of == path for of, _ in one.functions))
    ]
    return [one.test for one in sorted(chosen, key=lambda one: one.seconds)]
