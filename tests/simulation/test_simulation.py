"""The proof: thousands of simulated gang life cycles, under every fault, and no promise broken.

`make test` plays the first 20 seeds, `make certify` all of them. Each part runs in processes of its
own (`python -m tests.simulation`): a simulation replaces the clock and the chance of its process,
and strings must hash alike in all of them.
"""

import sys
from pathlib import Path

import msgspec
import pytest

from tests.simulation.coverage import Coverage
from tests.simulation.known import (
    BROKEN,
    BROKEN_WITH_FEATURES,
    FEATURES,
    FIRST,
    FIRST_OF_FEATURES,
    SEEDS,
    SEEDS_EACH_TIME,
    SEEDS_OF_FEATURES,
    SEEDS_OF_FEATURES_EACH_TIME,
    UNMET,
)
from tests.simulation.many import Totals
from tests.simulation.processes import simulate

pytestmark = pytest.mark.slow


def played(seeds: int, kept_in: Path, limit_s: float) -> Totals:
    """The first seeds of the range, of which those break a promise that are known to."""
    done = simulate(
        *("--seeds", str(seeds), "--first", str(FIRST), "--totals", str(kept_in)), limit_s=limit_s
    )
    sys.stdout.write(done.stdout)
    totals = msgspec.json.decode(kept_in.read_bytes(), type=Totals)
    known = {seed for seed in BROKEN if seed < FIRST + seeds}
    assert {one.seed for one in totals.failures} == known, done.stdout
    assert totals.gangs_with_fault > 0.9 * totals.gangs
    return totals


@pytest.mark.timeout(900)
def test_no_promise_is_broken_in_thousands_of_gang_lives(tmp_path: Path) -> None:
    played(SEEDS_EACH_TIME, tmp_path / "totals.json", limit_s=840.0)


def played_with_device_features(seeds: int, kept_in: Path, limit_s: float) -> Totals:
    """Seeds with constraints, alternatives and partitions, of which those break a promise that are
    known to.
    """
    first = str(FIRST_OF_FEATURES)
    given = ("--seeds", str(seeds), "--first", first, "--totals", str(kept_in))
    done = simulate(*given, "--device-features", limit_s=limit_s)
    sys.stdout.write(done.stdout)
    totals = msgspec.json.decode(kept_in.read_bytes(), type=Totals)
    known = {seed for seed in BROKEN_WITH_FEATURES if seed < FIRST_OF_FEATURES + seeds}
    assert {one.seed for one in totals.failures} == known, done.stdout
    return totals


@pytest.mark.timeout(400)
def test_allocations_with_every_feature_of_devices_are_legal(tmp_path: Path) -> None:
    totals = played_with_device_features(
        SEEDS_OF_FEATURES_EACH_TIME, tmp_path / "totals.json", limit_s=380.0
    )
    assert totals.counts["allocated: matchAttribute"]


@pytest.mark.certify
@pytest.mark.timeout(1900)
def test_every_feature_of_devices_is_allocated_and_legal(tmp_path: Path) -> None:
    totals = played_with_device_features(
        SEEDS_OF_FEATURES, tmp_path / "totals.json", limit_s=1800.0
    )
    assert {one for one in FEATURES if not totals.counts.get(f"allocated: {one}")} == set()


@pytest.mark.certify
@pytest.mark.timeout(5100)
def test_no_promise_is_broken_and_every_fault_meets_every_state(tmp_path: Path) -> None:
    totals = played(SEEDS, tmp_path / "totals.json", limit_s=5000.0)
    assert set(Coverage(totals.coverage).missing()) <= UNMET
