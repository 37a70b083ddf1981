"""Volcano Jobs end as they should, whatever write their controllers die at."""

import pytest

from services.controller.core.jobs.step import SeenPod
from tests.simulation.jobs import JobRun

SEEDS = 10


@pytest.mark.parametrize(
    "seed",
    [
        *range(SEEDS),
        *(pytest.param(seed, marks=pytest.mark.certify) for seed in range(SEEDS, 200)),
    ],
)
def test_every_job_ends_restarted_no_more_often_than_something_befell_it(seed: int) -> None:
    run = JobRun(seed)
    run.run()
    assert run.problems == []
    assert run.kills > 0


def test_a_release_is_no_retry() -> None:
    releases = 0
    for seed in range(4):
        run = JobRun(seed, befalls=("release",))
        run.run()
        assert run.problems == []
        assert run.befallen == {}
        releases += run.released
    assert releases > 0


def test_the_same_seed_is_the_same_run() -> None:
    assert JobRun(3).run() == JobRun(3).run()


def test_a_controller_that_takes_a_release_for_an_eviction_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SeenPod, "released", False)
    found = []
    for seed in range(6):
        run = JobRun(seed, befalls=("release",))
        run.run()
        found += run.problems
    assert any("retries for 0" in problem for problem in found)
