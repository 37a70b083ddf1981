"""The API servers of other Kubernetes minors, for what Tutti relies on in all that it supports.

Each is a folder of ``apiservers/``: go.mod and go.sum of one version, built from the same main
function as the pinned one. Controllers, scheduler and etcd beside it are the pinned version's: what
is tried is the API.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import (
    COMPONENTS,
    MODULE_DIR,
    ensure_binaries,
    kubernetes_version,
    version_stamps,
)
from tests.controlplane.go_builds import GoTool, cache_root, ensure_built
from tests.controlplane.locks import exclusive

#: The oldest and the newest that are supported; the pinned one lies between.
MINORS: Final = ("1.34", "1.37")
_APISERVER: Final = "kube-apiserver"


def ensure_minor(minor: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return a folder of binaries, as ``KUBEBUILDER_ASSETS`` wants it, whose API server is of this
    minor; it is built first if no cache has it: many minutes, once.

    Raises:
        BinariesError: The build failed.
    """
    module = MODULE_DIR / "apiservers" / minor
    pinned = ensure_binaries(environ).folder
    digest = hashlib.sha256((module / "go.sum").read_bytes()).hexdigest()[:16]
    version = kubernetes_version(module)

    def build(go: GoTool, made: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch) / "module"
            shutil.copytree(module, source)
            shutil.copytree(MODULE_DIR / "cmd" / _APISERVER, source / "cmd" / _APISERVER)
            go.build(source, "./cmd/...", made, stamps=version_stamps(version))

    name = f"{_APISERVER}-{minor}-{digest}"
    about = "5 to 10 minutes on two cores, once"
    folder = ensure_built(name, f"{_APISERVER} {version}", build, environ, about=about)
    with exclusive(cache_root(environ) / f"{name}.lock"):
        for component in COMPONENTS:
            if not (folder / component).exists():
                (folder / component).symlink_to(pinned / component)
    return folder
