"""The programs of a node, built once and cached as the control plane's are: its own from the Go
module beside this file, and those of other products, which run in containers."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.binaries import ensure_module, module_digest
from tests.controlplane.jaeger import ensure_jaeger
from tests.controlplane.operators import training
from tests.controlplane.operators.building import Recipe, ensure_operator

PROGRAMS: Final = Path(__file__).parent / "programs"
CERT_MANAGER: Final = Recipe(
    name="cert-manager",
    module="github.com/cert-manager/cert-manager",
    version="v1.21.2",
    # Its chart has them.
    crds="deploy/crds",
    crd_files=(),
    own_main=Path(__file__).parent / "cert_manager",
)
TRAINING_OPERATOR: Final = training.RECIPE


class NodePrograms(NamedTuple):
    """Where each executable is."""

    kubelet: Path
    kube_proxy: Path
    #: Those that run in containers: the name of the image, and the only program in it.
    contained: tuple[tuple[str, Path], ...]


def ensure_node_programs(environ: Mapping[str, str] = os.environ) -> NodePrograms:
    """Return the executables, building them first if no cache has them: minutes, once.

    Raises:
        BinariesError: The build failed.
    """
    name = f"node-{module_digest(PROGRAMS)}"
    title = "kubelet, kube-proxy and pause"
    folder = ensure_module(name, title, environ, module_dir=PROGRAMS)
    others = [
        (recipe.name, ensure_operator(recipe, environ).program)
        for recipe in (CERT_MANAGER, TRAINING_OPERATOR)
    ]
    contained = (("pause", folder / "pause"), ("jaeger", ensure_jaeger(environ)), *others)
    return NodePrograms(folder / "kubelet", folder / "kube-proxy", contained)
