"""The Helm client, built from its Go module and cached beside the control plane's binaries."""

import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import cache_root, find_go, kubernetes_version, run_tool
from tests.controlplane.locks import exclusive

MODULE: Final = "helm.sh/helm/v3"
VERSION: Final = "v3.22.0"

#: Where Helm looks for the Kubernetes that it was made with; 1.20 without.
_KUBERNETES: Final = (f"{MODULE}/pkg/chartutil", f"{MODULE}/pkg/lint/rules")

logger = logging.getLogger(__name__)


def ensure_helm(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the executable, building it first if no cache has it: minutes, once.

    Raises:
        BinariesError: The build failed.
    """
    root = cache_root(environ)
    folder = root / f"helm-{VERSION}"
    with exclusive(root / f"{folder.name}.lock"):
        if not folder.is_dir():
            _build(folder, environ)
    return folder / "helm"


def _build(folder: Path, environ: Mapping[str, str]) -> None:
    go = find_go(environ)
    logger.warning("building %s@%s (minutes, once)", MODULE, VERSION)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
        made = Path(scratch) / "bin"
        made.mkdir()
        own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOBIN": str(made)}
        major, minor = kubernetes_version().removeprefix("v").split(".")[:2]
        stamps = {f"{MODULE}/internal/version.version": VERSION}
        for package in _KUBERNETES:
            stamps |= {f"{package}.k8sVersionMajor": major, f"{package}.k8sVersionMinor": minor}
        ldflags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])
        command = [go, "install", "-trimpath", f"-ldflags={ldflags}"]
        run_tool(
            [*command, f"{MODULE}/cmd/helm@{VERSION}"],
            cwd=folder.parent,
            environ={**environ, **own},
        )
        made.rename(folder)
