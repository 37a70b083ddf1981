"""The API servers of other Kubernetes minors, for what Tutti relies on in all that it supports.

Each is a folder of ``apiservers/``: go.mod and go.sum of one version, built from the same main
function as the pinned one. Controllers, scheduler and etcd beside it are the pinned version's: what
is tried is the API.
"""

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import (
    COMPONENTS,
    MODULE_DIR,
    VERSION_PACKAGE,
    cache_root,
    ensure_binaries,
    find_go,
    kubernetes_version,
    run_tool,
)
from tests.controlplane.locks import exclusive

#: The oldest and the newest that are supported; the pinned one lies between.
MINORS: Final = ("1.34", "1.37")
_APISERVER: Final = "kube-apiserver"

logger = logging.getLogger(__name__)


def ensure_minor(minor: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return a folder of binaries, as ``KUBEBUILDER_ASSETS`` wants it, whose API server is of this
    minor; it is built first if no cache has it: many minutes, once.

    Raises:
        BinariesError: The build failed.
    """
    module = MODULE_DIR / "apiservers" / minor
    pinned = ensure_binaries(environ).folder
    root = cache_root(environ)
    digest = hashlib.sha256((module / "go.sum").read_bytes()).hexdigest()[:16]
    folder = root / f"{_APISERVER}-{minor}-{digest}"
    with exclusive(root / f"{folder.name}.lock"):
        if not folder.is_dir():
            _build(module, folder, environ)
        for component in COMPONENTS:
            if not (folder / component).exists():
                (folder / component).symlink_to(pinned / component)
    return folder


def _build(module: Path, folder: Path, environ: Mapping[str, str]) -> None:
    """Build the API server and move it to ``folder`` in one rename."""
    version = kubernetes_version(module)
    major, minor = version.removeprefix("v").split(".")[:2]
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    ldflags = " ".join(["-s -w", *(f"-X {VERSION_PACKAGE}.{k}={v}" for k, v in stamps.items())])
    go = find_go(environ)
    logger.warning("building %s %s (many minutes, once)", _APISERVER, version)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
        source, made = Path(scratch) / "module", Path(scratch) / "bin"
        shutil.copytree(module, source)
        shutil.copytree(MODULE_DIR / "cmd" / _APISERVER, source / "cmd" / _APISERVER)
        made.mkdir()
        command = [go, "build", "-mod=readonly", "-trimpath", f"-ldflags={ldflags}"]
        own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        run_tool(
            [*command, "-o", f"{made}{os.sep}", "./cmd/..."],
            cwd=source,
            environ={**environ, **own},
        )
        made.rename(folder)
