"""A seed and a commit reproduce a run byte for byte: every record with its instant, every write."""

import os
import re
import subprocess
import sys

import pytest


def digest(seed: int, **environ: str) -> str:
    """Run a seed in a process of its own; the digest that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", str(seed)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=220,
    )
    found = re.search(r"digest ([0-9a-f]{32})", done.stdout)
    assert found is not None, done.stdout + done.stderr
    return found[1]


@pytest.mark.slow
@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(11, id="without claims", marks=pytest.mark.certify),
        pytest.param(17, id="with claims"),
        pytest.param(1003, id="with all features of devices", marks=pytest.mark.certify),
    ],
)
def test_a_seed_is_the_same_run_in_every_process(seed: int) -> None:
    """Whatever strings hash to there, and wherever objects lie in memory."""
    first = digest(seed, PYTHONHASHSEED="1")
    assert digest(seed, PYTHONHASHSEED="2", PYTHONMALLOC="malloc") == first
