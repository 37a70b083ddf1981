"""Which files a reader opens to follow one gang from `Planner.step` to its `GangDecision`.

Every call of the core counts. A visit is a run of calls into one file; a return is a visit of a
file that was left before. The numbers only fall: what makes the way longer needs another design.
"""

from pathlib import Path
from typing import Final

import pytest

from bench.planner.world import World, make_gang, make_nodes, shape_of
from services.gang_planner import core
from shared.contracts.decisions import GangDecision
from tests.support.way import Length, files_called, length_of

_CORE: Final = Path(core.__file__).parent
_DECIDED: Final = "allocation/decision.py"
#: What holds facts and rules, which the way consults.
_TABLES: Final = ("state/", "policies/", "framework/", "constraints/", "scoring/")


@pytest.mark.parametrize(
    ("quorum", "steps", "everything"),
    [
        pytest.param(
            3,
            Length(files=15, returns=15),
            Length(files=57, returns=220),
            id="placed by itself, because members above its quorum wait",
        ),
        pytest.param(
            4, Length(files=12, returns=15), Length(files=55, returns=151), id="placed in a batch"
        ),
    ],
)
def test_the_way_of_a_gang_to_its_decision_does_not_become_longer(
    quorum: int, steps: Length, everything: Length
) -> None:
    _files_called(quorum)  # fills the caches of the process
    calls = _files_called(quorum)
    without_tables = [file for file in calls if not file.startswith(_TABLES)]
    assert (length_of(without_tables), length_of(calls)) == (steps, everything)


def _files_called(quorum: int) -> list[str]:
    """The file of each call of the core, in order, up to the decision on a gang of four."""
    world = World(make_nodes(8))
    world.decide()
    world.put_gangs([make_gang("train", 4, [shape_of(1_000)], quorum=quorum)])
    decided: list[type] = []

    def step() -> None:
        decided.extend(map(type, world.planner.step(10_000).decisions))

    files = files_called(step, _CORE)
    assert decided == [GangDecision]
    return files[: files.index(_DECIDED) + 1]
