"""Soak, rolling upgrade and overload as `make certify` runs them, each as it is typed."""

import subprocess
import sys

import pytest

from tests.documents.links import ROOT

pytestmark = [pytest.mark.certify, pytest.mark.integration, pytest.mark.timeout(1200)]


@pytest.mark.parametrize(
    "command",
    [
        ("bench.soak", "--minutes", "6"),
        ("bench.upgrade",),
        ("bench.overload",),
        ("bench.overload", "--reject"),
        ("tests.fuzz", "--minutes", "10"),
    ],
    ids=" ".join,
)
def test_it_holds(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
