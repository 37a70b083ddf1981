"""A short storm in `make test`, longer ones in `make certify` and with `make chaos`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def storm(minutes: float, seed: int) -> None:
    command = [sys.executable, "-m", "tests.chaos", f"--minutes={minutes}", f"--seed={seed}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "double bindings" in done.stdout


@pytest.mark.usefixtures("binaries")
@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_quarter_of_a_minute_of_chaos_breaks_no_promise() -> None:
    storm(0.25, 1)


@pytest.mark.certify
@pytest.mark.usefixtures("binaries")
@pytest.mark.integration
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [2, 3])
def test_minutes_of_chaos_break_no_promise(seed: int) -> None:
    storm(3.0, seed)
