"""A failing run is made smaller until only what it takes is left."""

import msgspec
import pytest

from tests.simulation import shrinking
from tests.simulation.checkers import Violation
from tests.simulation.running import Options, Result

_NOTHING = Result(
    seed=1,
    digest="",
    violations=[],
    gangs=40,
    gangs_with_fault=0,
    faults={},
    kills=0,
    virtual_ms=0,
    cpu_ms=0,
    steps=0,
    counts={},
    coverage=[],
    partial_s=0.0,
    worst_partly_s=0.0,
    drawn=list(range(60)),
)


def needing(
    monkeypatch: pytest.MonkeyPatch, gangs: set[str], faults: set[int], *, otherwise: str = ""
) -> list[Options]:
    """What was tried, of runs that break a promise when all of these take part."""
    tried: list[Options] = []

    def run(options: Options) -> Result:
        tried.append(options)
        has_gangs = options.gangs is None or gangs <= options.gangs
        has_faults = options.faults is None or faults <= options.faults
        what = f"decision {len(tried)} binds again" if has_gangs and has_faults else otherwise
        found = [Violation(0, "gang-7", what)] if what else []
        return msgspec.structs.replace(_NOTHING, violations=found)

    monkeypatch.setattr(shrinking, "run", run)
    return tried


def test_only_the_gangs_and_faults_that_it_takes_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needing(monkeypatch, {"gang-7", "gang-31"}, {4, 41})
    small = shrinking.shrink(Options(seed=1))
    assert small.gangs == frozenset({"gang-7", "gang-31"})
    assert small.faults == frozenset({4, 41})
    assert not small.small


def test_another_broken_promise_is_not_taken_for_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needing(monkeypatch, {"gang-7"}, {4}, otherwise="has not ended")
    small = shrinking.shrink(Options(seed=1))
    assert (small.gangs, small.faults) == (frozenset({"gang-7"}), frozenset({4}))


def test_what_breaks_nothing_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = needing(monkeypatch, {"no such gang"}, {1000})
    options = Options(seed=1, gangs=frozenset({"gang-1"}))
    assert shrinking.shrink(options) == options
    assert len(tried) == 1
