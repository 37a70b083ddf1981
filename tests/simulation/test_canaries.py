"""Checkers bite: every planted bug is caught, and what was found once stays mended."""

import pytest

from tests.simulation.canaries import CANARIES
from tests.simulation.processes import simulate
from tests.simulation.regressions import SEEDS as MENDED

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", MENDED)
def test_what_was_found_once_stays_mended(name: str) -> None:
    done = simulate("--seed", str(MENDED[name]))
    assert done.returncode == 0, done.stdout


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", CANARIES)
def test_a_planted_bug_is_caught(name: str) -> None:
    done = simulate("--canary", name, "--first", "100", limit_s=350.0)
    assert done.returncode == 0, done.stdout
