"""The programs of a node, built once from the Go module beside this file, cached as the control
plane's are."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.binaries import ensure_module, module_digest

PROGRAMS: Final = Path(__file__).parent / "programs"


class NodePrograms(NamedTuple):
    """Where each executable is."""

    kubelet: Path
    kube_proxy: Path
    pause: Path


def ensure_node_programs(environ: Mapping[str, str] = os.environ) -> NodePrograms:
    """Return the executables, building them first if no cache has them: minutes, once.

    Raises:
        BinariesError: The build failed.
    """
    name = f"node-{module_digest(PROGRAMS)}"
    title = "kubelet, kube-proxy and pause"
    folder = ensure_module(name, title, environ, module_dir=PROGRAMS)
    return NodePrograms(folder / "kubelet", folder / "kube-proxy", folder / "pause")
