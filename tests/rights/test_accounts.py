"""The whole proof, as `make certify` has it."""

import subprocess
import sys

import pytest


@pytest.mark.certify
@pytest.mark.integration
@pytest.mark.timeout(5400)
def test_the_suite_is_denied_nothing_and_no_right_is_unused() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.rights"], check=False)
    assert done.returncode == 0, "see what it printed"
