"""Which files a reader opens to follow one gang from `Planner.step` to its `GangDecision`.

A stop is a call that is given the gang: itself, what it asks for, its placement, or its members
with their nodes. Tables and rules that such a call consults (state, policies, filters, scores)
answer a question, and are not stops. A file is left when the function that was called in it
returns; several calls in a row from one file into another are one visit.
"""

import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

from bench.planner.world import World, make_gang, make_nodes, shape_of
from services.gang_planner import core
from services.gang_planner.core.allocation.batch import BatchRequest
from services.gang_planner.core.allocation.decision import FoundPlacement
from services.gang_planner.core.placement.gang_placement import GangPlacement
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.members import Assignments
from services.gang_planner.core.state.needs import Need
from shared.contracts.decisions import GangDecision

_CORE: Final = Path(core.__file__).parent
_THE_GANG: Final = (Gang, Bucket, Need, GangPlacement, FoundPlacement, Assignments, BatchRequest)
_CONSULTED: Final = (
    "state/",
    "lifecycle/transitions.py",
    "policies/",
    "framework/",
    "constraints/",
    "scoring/",
)
_FILES_MAX: Final = 12
_DECIDED: Final = "allocation/decision.py"

_TO_THE_ACTION: Final = [
    "planner.py",
    "cycle.py",
    "lifecycle/late_roles.py",
    "lifecycle/assessment.py",
    "queueing/need.py",
    "actions/allocate.py",
    "placement/refusals.py",
    "queueing/fair_share.py",
    "allocation/batch.py",
]


@pytest.mark.parametrize(
    ("quorum", "files"),
    [
        pytest.param(
            3,
            [
                *_TO_THE_ACTION,
                "allocation/gang_allocation.py",
                "placement/gang_placement.py",
                _DECIDED,
            ],
            id="placed by itself, because members above its quorum wait",
        ),
        pytest.param(4, [*_TO_THE_ACTION, _DECIDED], id="placed in a batch"),
    ],
)
def test_a_gang_passes_each_file_once_on_its_way_to_the_decision(
    quorum: int, files: list[str]
) -> None:
    world = World(make_nodes(8))
    world.decide()
    world.put_gangs([make_gang("train", 4, [shape_of(1_000)], quorum=quorum)])
    trace = _Trace()
    sys.setprofile(trace.called)
    try:
        step = world.planner.step(10_000)
    finally:
        sys.setprofile(None)
    assert [type(one) for one in step.decisions] == [GangDecision]
    visits = trace.visits[: trace.visits.index(_DECIDED) + 1]
    assert visits == files
    assert len(set(visits)) == len(visits) <= _FILES_MAX


class _Trace:
    """Files of the core by visit, in the order in which they were entered."""

    def __init__(self) -> None:
        self.visits: list[str] = []

    def called(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record a call that is given the gang and crosses into another file."""
        name = _file(frame)
        if event != "call" or name is None or name.startswith(_CONSULTED):
            return
        caller = _calling_file(frame)
        if caller == name or not (name in {"planner.py", "cycle.py"} or _is_given_the_gang(frame)):
            return
        # The action and the phases of a cycle are given the context that contains the gang.
        if caller is not None and caller not in self.visits and not caller.startswith(_CONSULTED):
            self.visits.append(caller)
        if self.visits[-1:] != [name]:
            self.visits.append(name)


def _file(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    return path.relative_to(_CORE).as_posix() if path.is_relative_to(_CORE) else None


def _calling_file(frame: FrameType) -> str | None:
    """The nearest caller in the core; sorting and comprehensions lie between."""
    caller = frame.f_back
    while caller is not None:
        name = _file(caller)
        if name is not None:
            return name
        caller = caller.f_back
    return None


def _is_given_the_gang(frame: FrameType) -> bool:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return any(_is_the_gang(frame.f_locals.get(name)) for name in names)


def _is_the_gang(value: object) -> bool:
    if isinstance(value, list | tuple) and value:
        return isinstance(value[0], _THE_GANG)
    return isinstance(value, _THE_GANG)
