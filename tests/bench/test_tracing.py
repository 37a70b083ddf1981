"""What tracing costs, measured as `python -m bench.tracing` does."""

import pytest

from bench import tracing
from bench.load import Load
from bench.testbed import open_testbed


@pytest.mark.certify
@pytest.mark.timeout(240)
async def test_every_gang_is_traced_and_each_run_has_its_yardstick() -> None:
    said: list[str] = []
    what = Load(gangs=5, size=8)
    async with open_testbed(10) as bed:
        (pair,) = await tracing.alternate(bed, what, 1, said.append)
    assert pair.traced_gangs == what.gangs
    assert pair.spans >= 6 * what.gangs
    runs = (pair.without, pair.traced, pair.dead)
    assert [run.name for run in runs] == ["without", "traced", "dead"]
    assert all(0 < run.start_cpu_s < run.cpu_s for run in runs)
    for figure in ("rate", "cpu_s", "lasting_cpu_s"):
        expected = getattr(pair.traced, figure) / getattr(pair.without, figure)
        assert tracing.ratio([pair], lambda one: one.traced, figure) == expected
    assert len(said) == 1
