"""How soon gangs are bound after something died, measured as `python -m bench.recovery` does."""

import pytest

from bench import recovery
from bench.load import Load


@pytest.mark.certify
@pytest.mark.slow
async def test_a_gang_made_when_the_planner_dies_is_bound_and_timed() -> None:
    said: list[str] = []
    found = await recovery.measure(
        10,
        1,
        said.append,
        background=Load(gangs=2, size=8),
        only=("nothing", "gang-planner killed"),
    )
    calm, killed = found
    assert (calm.fault, killed.fault) == ("nothing", "gang-planner killed")
    assert 0.0 < calm.bound_s[0] < killed.bound_s[0] < 10.0
    assert len(said) == 2
