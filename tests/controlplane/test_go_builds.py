"""Programs are built once, into a cache, and the terminal shows what is being built."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.controlplane import go_builds
from tests.controlplane.go_builds import (
    BinariesError,
    GoTool,
    cache_root,
    ensure_built,
    find_go,
    run_tool,
)

ROOT = Path(__file__).parents[2]
HELLO = """
package main

import "os"

var greeting string

func main() { os.Stdout.WriteString(greeting) }
"""
#: A test file whose fixture builds a small program, while pytest captures all output.
BUILDING_TEST = """
import os
import subprocess
from pathlib import Path

import pytest

from tests.controlplane.go_builds import ensure_built

MODULE = Path(__file__).parent / "module"


def build(go, made):
    print("swallowed by pytest")
    go.build(MODULE, "./hello", made, stamps={"main.greeting": "hello"})


@pytest.fixture
def hello():
    return ensure_built("hello-1", "hello 1", build, os.environ, about="a few seconds") / "hello"


@pytest.mark.parametrize("time", range(4))
def test_the_program_runs(hello, time):
    assert subprocess.run([hello], capture_output=True, check=True).stdout == b"hello"
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A Go module without dependencies."""
    module = tmp_path / "module"
    (module / "hello").mkdir(parents=True)
    (module / "go.mod").write_text("module example.org/greeting\n\ngo 1.24\n")
    (module / "hello" / "main.go").write_text(HELLO)
    return module


def test_the_cache_is_outside_the_checkout_and_follows_xdg() -> None:
    assert cache_root({"XDG_CACHE_HOME": "/elsewhere"}) == Path("/elsewhere/tutti/controlplane")
    assert not cache_root({}).is_relative_to(Path(__file__).parents[2])


def test_a_failed_build_leaves_nothing_behind_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(go_builds, "reported", lambda *_: nullcontext())
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def fail(go: GoTool, made: Path) -> None:
        (made / "half").touch()
        raise BinariesError("no compiler")

    with pytest.raises(BinariesError, match="no compiler"):
        ensure_built("program-1", "a program", fail, environ)
    assert [path.name for path in cache_root(environ).iterdir()] == ["program-1.lock"]

    built = ensure_built("program-1", "a program", lambda _, made: (made / "p").touch(), environ)
    assert [path.name for path in built.iterdir()] == ["p"]
    assert ensure_built("program-1", "a program", fail, environ) == built


def test_a_failed_tool_is_quoted_by_its_last_lines(tmp_path: Path) -> None:
    script = "import sys; sys.exit('\\n'.join(f'line {n}' for n in range(40)))"
    with pytest.raises(BinariesError) as refused:
        run_tool([sys.executable, "-c", script], cwd=tmp_path, environ=os.environ)
    assert str(refused.value).splitlines()[1:] == [f"line {number}" for number in range(10, 40)]


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_build_for_a_captured_test_is_reported_on_the_terminal(
    workers: int, module: Path, tmp_path: Path
) -> None:
    (tmp_path / "test_hello.py").write_text(BUILDING_TEST)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.support.progress"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    # Go's own cache stays: what is shown is the report, not the standard library's compilation.
    go_cache = run_tool(
        [find_go(os.environ).command, "env", "GOCACHE"], cwd=ROOT, environ=os.environ
    )
    environ = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GOCACHE": go_cache,
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"-n{workers}"]

    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
    reports = [line for line in done.stderr.splitlines() if "building" in line]
    assert reports[0] == "tests: building hello 1 (a few seconds)"
    assert reports[-1].startswith("tests: building hello 1: done after ")
    assert "swallowed" not in done.stdout + done.stderr
