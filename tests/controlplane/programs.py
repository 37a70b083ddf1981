"""Programs that tests run beside the control plane, built from their Go modules and cached there.

Each is a folder of its own, by its version: a new version here builds a new one.
"""

import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import cache_root, find_go, kubernetes_version, run_tool
from tests.controlplane.locks import exclusive

HELM: Final = "helm.sh/helm/v3"
HELM_VERSION: Final = "v3.22.0"
#: Where Helm looks for the Kubernetes that it was made with; 1.20 without.
_HELM_KUBERNETES: Final = (f"{HELM}/pkg/chartutil", f"{HELM}/pkg/lint/rules")

COMPOSE: Final = "github.com/compose-spec/compose-go/v2"
COMPOSE_VERSION: Final = "v2.16.2"

logger = logging.getLogger(__name__)


def ensure_helm(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the Helm client, building it first if no cache has it: minutes, once.

    Raises:
        BinariesError: The build failed.
    """
    major, minor = kubernetes_version().removeprefix("v").split(".")[:2]
    stamps = {f"{HELM}/internal/version.version": HELM_VERSION}
    for package in _HELM_KUBERNETES:
        stamps |= {f"{package}.k8sVersionMajor": major, f"{package}.k8sVersionMinor": minor}
    return _ensure(f"{HELM}/cmd/helm", HELM_VERSION, "helm", environ, stamps)


def ensure_compose_loader(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the program of the Compose specification's own library that loads a file by its schema
    and prints what it means; built as above.

    Raises:
        BinariesError: The build failed.
    """
    return _ensure(f"{COMPOSE}/cmd", COMPOSE_VERSION, "compose-spec", environ, {})


def _ensure(
    package: str, version: str, name: str, environ: Mapping[str, str], stamps: Mapping[str, str]
) -> Path:
    root = cache_root(environ)
    folder = root / f"{name}-{version}"
    with exclusive(root / f"{folder.name}.lock"):
        if not folder.is_dir():
            _build(folder, package, environ, stamps)
    return folder / package.rpartition("/")[2]


def _build(
    folder: Path, package: str, environ: Mapping[str, str], stamps: Mapping[str, str]
) -> None:
    """Build ``package`` by its own module's go.sum and move it to ``folder`` in one rename."""
    go = find_go(environ)
    version = folder.name.rpartition("-")[2]
    logger.warning("building %s@%s (minutes, once)", package, version)
    ldflags = " ".join(["-s -w", *(f"-X {key}={value}" for key, value in stamps.items())])
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
        made = Path(scratch) / "bin"
        made.mkdir()
        own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOBIN": str(made)}
        run_tool(
            [go, "install", "-trimpath", f"-ldflags={ldflags}", f"{package}@{version}"],
            cwd=folder.parent,
            environ={**environ, **own},
        )
        made.rename(folder)
