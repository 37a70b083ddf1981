"""What tracing costs, measured as `python -m bench.tracing` does."""

import pytest

from bench import tracing
from bench.load import Load
from bench.testbed import open_testbed


@pytest.mark.certify
@pytest.mark.timeout(240)
async def test_every_gang_is_told_and_each_run_has_its_yardstick() -> None:
    said: list[str] = []
    what = Load(gangs=5, size=8)
    async with open_testbed(10) as bed:
        (pair,) = await tracing.alternate(bed, what, 1, said.append)
    assert pair.gangs_told == what.gangs
    assert pair.spans >= 6 * what.gangs
    runs = (pair.without, pair.traced, pair.dead)
    assert [run.name for run in runs] == ["without", "traced", "dead"]
    rate, cpu = tracing.ratios([pair], lambda one: one.traced)
    assert rate == pair.traced.rate / pair.without.rate
    assert cpu == pair.traced.cpu_s / pair.without.cpu_s
    assert len(said) == 1
