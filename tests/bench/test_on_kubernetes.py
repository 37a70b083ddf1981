"""The benchmarks themselves, small and on a real control plane: everything they report is there and
plausible. How good the figures are is not judged here.
"""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench import contenders, drain, live, session, testbed, yardstick
from bench.bars import DrainCase
from bench.contenders import ContenderFailed, OtherScheduler, Tutti, running
from bench.load import Load
from bench.pod_watch import Stalled
from bench.report import figures_of
from bench.session import Plan
from bench.testbed import Bed, open_testbed

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

SMALL = Load(gangs=3, size=8)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settling and idling are for figures that are to be believed."""
    for module, name in (
        (testbed, "SETTLE_S"),
        (testbed, "TRAILING_S"),
        (yardstick, "TRAILING_S"),
        (drain, "TRAILING_S"),
        (contenders, "_IDLE_S"),
        (live, "_REST_S"),
    ):
        monkeypatch.setattr(module, name, 0.2)
    monkeypatch.setattr(live, "TRIES", 2)


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with open_testbed(10) as opened:
        yield opened


async def test_a_yardstick_binds_every_pod_at_every_concurrency_and_leaves_nothing(
    bed: Bed,
) -> None:
    found = await yardstick.measure(bed, SMALL, watches=5)
    assert found.watches == 5
    assert set(found.rates) == set(yardstick.CONCURRENCIES)
    assert all(each > 0 for each in found.rates.values())
    assert bed.watch.pods == {}
    assert not (await bed.client.get("/api/v1/pods"))["items"]


@pytest.mark.certify
async def test_a_session_measures_drains_and_live_gangs_of_the_suite() -> None:
    said: list[str] = []
    bare = Load(gangs=2, size=4, owned=False)
    plan = Plan(
        nodes=10,
        runs=1,
        drains=(SMALL, bare),
        with_live=True,
        crowd=Load(gangs=5, size=4),
        with_webhook=False,
        contenders=(Tutti(),),
        warm_up_pods=100,
    )
    found = await session.run(plan, said.append)
    assert found.failures == []
    (owned_case, bare_case) = found.drains
    run = owned_case.run
    assert run.writes["POST pods/binding"] == SMALL.pods
    assert "POST pods/binding (dry run)" not in run.writes
    assert bare_case.run.writes["POST pods/binding (dry run)"] == bare.pods
    assert 0 < run.first_binding_s <= run.last_binding_s
    assert run.ready_s is not None
    assert 0 < run.ready_s < 60
    roles = set(run.cpu_by_role())
    assert {"tutti", "nats-server", "watcher", "gang-planner", "binder", "controller"} <= roles
    assert run.cpu_s == pytest.approx(sum(run.cpu_by_role().values()))
    assert sum(run.bound_by_second) == SMALL.pods
    (alive,) = found.lives
    assert 0 < alive.crowd_p50_ms <= alive.crowd_p99_ms
    assert len(alive.one_all_ms) == 2
    assert {figure.group for figure in figures_of(found)} == {
        "live",
        "drain 3 x 8",
        "drain 2 x 4 bare",
    }
    assert DrainCase(before=owned_case.before, run=run, after=owned_case.after).ratio > 0


async def test_a_contender_that_ends_is_reported_with_its_last_words(bed: Bed) -> None:
    other = OtherScheduler(name="broken", binary=Path(sys.executable), flags=())
    with pytest.raises(ContenderFailed, match="it ended"):
        async with running(other, bed.kubeconfig) as suite:
            # Python knows none of a scheduler's flags.
            await suite.meter.wait_quiet(timeout_s=2.0)


async def test_gangs_that_cannot_be_placed_are_a_failure_and_not_a_figure(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "STALL_S", 3.0)
    # 10 nodes of 16 CPUs.
    with pytest.raises(Stalled, match=r"^0 of 161 pods are bound"):
        await drain.measure(bed, Tutti(), Load(gangs=1, size=161))
    assert bed.watch.pods == {}
