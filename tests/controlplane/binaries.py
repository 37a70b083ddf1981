"""The control plane's executables, built from the Go modules beside this file.

``KUBEBUILDER_ASSETS`` names a folder of ready binaries instead; nothing is built then.
"""

import hashlib
import logging
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.go_builds import BinariesError, GoTool, ensure_built

MODULE_DIR = Path(__file__).parent
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
VERSION_PACKAGE = "k8s.io/component-base/version"


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
    folder = ensure_module(
        module_digest(),
        f"etcd, kubectl and the control plane of Kubernetes {kubernetes_version()}",
        environ,
        about="5 to 10 minutes on two cores, once",
    )
    return _binaries_in(folder, origin="the build")


def ensure_oracle(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the executable of ``oracle/``, building it first if no cache has it.

    It shares its packages with kube-scheduler: where that was built, this only links.

    Raises:
        BinariesError: The build failed.
    """
    name = f"oracle-{module_digest(sources='oracle/*.go')}"
    title = "the oracle, which has kube-scheduler's filters"
    return ensure_module(name, title, environ, packages="./oracle") / "oracle"


def ensure_module(
    name: str,
    title: str,
    environ: Mapping[str, str],
    *,
    module_dir: Path = MODULE_DIR,
    packages: str = "./cmd/...",
    about: str = "a minute or two on two cores, once",
) -> Path:
    """Return the cache's folder of this name with the executables of a Go module of ours.

    Raises:
        BinariesError: The build failed.
    """

    def build(go: GoTool, made: Path) -> None:
        go.build(module_dir, packages, made, stamps=version_stamps(kubernetes_version(module_dir)))

    return ensure_built(name, title, build, environ, about=about)


def version_stamps(version: str) -> dict[str, str]:
    """Return what a program of Kubernetes must be linked with to know its version.

    Without it the API server introduces itself as v0.0.0 and clients refuse to talk to it.
    """
    major, minor = version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return {
        f"{VERSION_PACKAGE}.{name}": value
        for name, value in {**values, "gitTreeState": "archive"}.items()
    }


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


def main() -> None:
    """Build what is missing and print the folder of the binaries."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    sys.stdout.write(f"{ensure_binaries().folder}\n")


if __name__ == "__main__":
    main()
