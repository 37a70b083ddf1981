"""Wheel and sdist of the exported commit, built by the project's own backend."""

import os
import subprocess
import sys
from pathlib import Path

from release.source import Source


class BuildError(RuntimeError):
    """A tool failed; the message has the end of its output."""


def build_packages(source: Source, output: Path) -> tuple[Path, Path]:
    """Build into the folder; return the paths of wheel and sdist.

    Raises:
        BuildError: The backend failed.
    """
    command = (sys.executable, "-m", "hatchling", "build", "--directory", str(output))
    run_tool(*command, cwd=source.folder, SOURCE_DATE_EPOCH=str(source.epoch))
    (wheel,) = output.glob(f"*-{source.version}-*.whl")
    (sdist,) = output.glob(f"*-{source.version}.tar.gz")
    return wheel, sdist


def run_tool(*command: str, cwd: Path, **variables: str) -> str:
    """Return what a command prints.

    Args:
        command: The program and its arguments.
        cwd: Where it runs.
        variables: Added to the environment.

    Raises:
        BuildError: It failed.
    """
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-20:])
        raise BuildError(f"{' '.join(command[:4])} exited with {done.returncode}:\n{tail}")
    return done.stdout
