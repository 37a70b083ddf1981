"""The workflows run the targets that the Makefile has, and actionlint accepts them."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.programs import ensure_actionlint

_ROOT = Path(__file__).parents[2]
_FILES = sorted((_ROOT / ".github" / "workflows").glob("*.yaml"))


def _commands(path: Path) -> str:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return "\n".join(step.get("run", "") for step in steps)


def test_they_run_lint_test_and_release_by_the_makefile() -> None:
    makefile = (_ROOT / "Makefile").read_text("utf-8")
    called = {
        target for path in _FILES for target in re.findall(r"\bmake ([a-z-]+)", _commands(path))
    }
    assert called == {"setup", "lint", "test", "release"}
    assert called <= set(re.findall(r"(?m)^([a-z-]+):", makefile))


@pytest.mark.certify
@pytest.mark.timeout(1800)
def test_actionlint_accepts_them(tmp_path: Path) -> None:
    actionlint = ensure_actionlint()
    # shellcheck and pyflakes are used where they are installed: the result must not depend on it.
    command = [str(actionlint), "-shellcheck=", "-pyflakes=", "-no-color"]
    done = subprocess.run([*command, *_FILES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(_FILES[0].read_text("utf-8").replace("runs-on:", "run-on:"), "utf-8")
    refused = subprocess.run([*command, wrong], capture_output=True, text=True, check=False)
    assert "run-on" in refused.stdout
    assert refused.returncode == 1
