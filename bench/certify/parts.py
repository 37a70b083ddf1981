"""The parts of a certificate: programs that measure or last, and the tests marked `certify`."""

import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
#: A file of tests marked `certify` may build an API server of another minor before it starts.
_TESTS_MINUTES: Final = 120.0
_COLLECTION_S: Final = 300.0
#: Some hundred mutants, a few seconds each.
_MUTATION_MINUTES: Final = 180.0
#: The part whose session has the figures of the page.
DRAINS: Final = "drains"
#: Tests that hold a figure to a target: other parts beside them would be measured, too.
_MEASURING_TESTS: Final = frozenset(
    {"tests/console/test_console.py", "tests/services/gang_planner/test_busy_machine.py"}
)
#: What `tests.rights` runs to have each service do all that it may do.
_RUN_FOR_RIGHTS: Final = (
    "tests/conformance/",
    "tests/integration/test_",
    "tests/rights/",
    "tests/services/binder/",
    "tests/services/controller/",
    "tests/tutti/provision/",
)


class Part(NamedTuple):
    """Something to run: what follows `python -m`, and for how many minutes at most."""

    name: str
    module: str
    arguments: tuple[str, ...]
    limit_minutes: float
    #: Whether it measures: nothing else runs beside it.
    alone: bool = False

    @property
    def typed(self) -> str:
        """The command as a user would type it."""
        return " ".join(("python -m", self.module, *self.arguments))

    @property
    def also_runs(self) -> tuple[str, ...]:
        """Beginnings of the paths of other test files that it runs."""
        return _RUN_FOR_RIGHTS if self.name.startswith("tests/rights/") else ()


class Extent(NamedTuple):
    """How much is asked for."""

    #: Runs of each benchmark whose figures are medians.
    runs: int = 3
    #: Minutes of the soak; chaos, simulation and fuzzer take a sixth of them each.
    minutes: float = 60.0
    nodes: int = 1000
    #: Schedulers to run on the same cluster, as NAME=PATH.
    other_schedulers: tuple[str, ...] = ()


def programs(extent: Extent, session_file: Path) -> list[Part]:
    """Benchmarks and long runs; the drains leave their session, of which the page shows the
    figures, in a file.
    """
    sixth = f"{extent.minutes / 6:g}"
    other_schedulers = tuple(
        word for scheduler in extent.other_schedulers for word in ("--rival", scheduler)
    )
    runs = ("--runs", str(extent.runs))
    session = ("--nodes", str(extent.nodes), "--json", str(session_file), *other_schedulers)
    return [
        Part("simulation", "tests.simulation", ("--minutes", sixth), extent.minutes / 6 + 15),
        Part("chaos", "tests.chaos", ("--minutes", sixth), extent.minutes / 6 + 20),
        Part("fuzz", "tests.fuzz", ("--minutes", sixth), extent.minutes / 6 + 15),
        # Its last line is the share of mutants that the fast tests notice.
        Part("mutation", "tests.mutation", (), _MUTATION_MINUTES),
        _measuring(DRAINS, "bench", ("all", "--each-run", *runs, *session), 60 * extent.runs),
        _measuring("dialects", "bench.dialects", ("--rounds", str(max(3, extent.runs))), 60),
        _measuring("claims", "bench.claims", ("--rounds", str(max(2, extent.runs))), 40),
        _measuring("planner", "bench.planner", ("--strict",), 30),
        _measuring("queues", "bench.queues", ("--strict",), 20),
        _measuring("churn", "bench.churn", ("--strict",), 20),
        _measuring("reservations", "bench.reservations", ("--strict",), 60),
        _measuring("estimates", "bench.estimates", ("--strict",), 60),
        _measuring("suggestions", "bench.suggestions", ("--strict",), 60),
        *(
            _measuring(
                f"controller {jobs}x{pods}", "bench.controller", (*_of(jobs, pods), *runs), 40
            )
            for jobs, pods in ((20, 100), (3, 1000), (500, 20))
        ),
        _measuring("tracing", "bench.tracing", ("--rounds", str(extent.runs)), 60),
        _measuring("API service", "bench.api", ("--strict",), 20),
        _measuring("API service and planner", "bench.api_planner", ("--rounds", "3"), 30),
        _measuring("the same, on cores of their own", "bench.api_planner", ("--pin",), 30),
        _measuring("recovery", "bench.recovery", (), 60),
        _measuring("log sync", "bench.log_sync", (), 20),
        _measuring("upgrade", "bench.upgrade", (), 30),
        _measuring("overload", "bench.overload", (), 30),
        _measuring("overload, rejecting", "bench.overload", ("--reject",), 30),
        _measuring("soak", "bench.soak", ("--minutes", f"{extent.minutes:g}"), extent.minutes + 20),
    ]


def _measuring(name: str, module: str, arguments: tuple[str, ...], limit_minutes: float) -> Part:
    return Part(name, module, arguments, limit_minutes, alone=True)


def _of(jobs: int, pods: int) -> tuple[str, ...]:
    return "--jobs", str(jobs), "--pods", str(pods)


def long_tests() -> list[Part]:
    """The tests marked `certify`, a part for each file.

    Raises:
        subprocess.CalledProcessError: The tests cannot be collected.
    """
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "certify", "tests")
    found = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=_COLLECTION_S
    )
    return parts_of(found.stdout)


def parts_of(collected: str) -> list[Part]:
    """A part for each file that pytest's list of tests names, in its order."""
    files = dict.fromkeys(
        line.partition("::")[0] for line in collected.splitlines() if "::" in line
    )
    flags = ("-q", "-rs", "-m", "certify", "-p", "no:cacheprovider")
    return [
        Part(file, "pytest", (*flags, file), _TESTS_MINUTES, alone=file in _MEASURING_TESTS)
        for file in files
    ]
