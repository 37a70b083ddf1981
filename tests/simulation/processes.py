"""A simulation in processes of its own: it replaces the clock and the chance of its process."""

import subprocess
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]


def simulate(*arguments: str, limit_s: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Type ``python -m tests.simulation`` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
