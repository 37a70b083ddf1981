"""The proof: thousands of simulated gang life cycles, under every fault, and no promise broken.

Each part runs in processes of its own (`python -m tests.simulation`): a simulation replaces the
clock and the chance of its process, and strings must hash alike in all of them.
"""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.simulation.canaries import CANARIES
from tests.simulation.coverage import Coverage
from tests.simulation.known import BROKEN, FIRST, SEEDS, UNMET
from tests.simulation.many import Totals
from tests.simulation.regressions import SEEDS as MENDED

ROOT = Path(__file__).parents[2]


def simulate(*arguments: str, limit_s: float = 120.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_promise_is_broken_in_thousands_of_gang_lives(tmp_path: Path) -> None:
    kept_in = tmp_path / "totals.json"
    done = simulate(
        "--seeds", str(SEEDS), "--first", str(FIRST), "--totals", str(kept_in), limit_s=1700.0
    )
    sys.stdout.write(done.stdout)
    totals = msgspec.json.decode(kept_in.read_bytes(), type=Totals)
    assert {one.seed for one in totals.failures} == set(BROKEN), done.stdout
    assert totals.gangs_with_fault > 0.9 * totals.gangs
    assert set(Coverage(totals.coverage).missing()) <= UNMET, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", MENDED)
def test_what_was_found_once_stays_mended(name: str) -> None:
    done = simulate("--seed", str(MENDED[name]))
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", CANARIES)
def test_a_planted_bug_is_caught(name: str) -> None:
    done = simulate("--canary", name, "--first", "100", limit_s=350.0)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_seed_and_a_commit_make_one_run() -> None:
    first, second = simulate("--seed", "7"), simulate("--seed", "7")
    assert first.stdout.partition("digest")[2] == second.stdout.partition("digest")[2] != ""
