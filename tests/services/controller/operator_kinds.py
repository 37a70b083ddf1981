"""The kinds of operators on a real API server, without the operators: their objects are stored as
they are given.
"""

import json
from pathlib import Path
from typing import Any

from shared.dialects.owner_kinds import LIMITED_KINDS, OWNER_KINDS
from shared.kube.resources import JOBS_BATCH, PODS
from tests.controlplane.cluster import ControlPlane
from tests.support.open_crd import open_crd

Object = dict[str, Any]


def install(control_plane: ControlPlane, folder: Path) -> None:
    """Have the API server serve every kind of owner that is not its own; MPIJobs in the version of
    the MPI operator.
    """
    kinds = {kind.resource.title: kind.resource for kind in (*LIMITED_KINDS, *OWNER_KINDS)}
    for title, resource in kinds.items():
        if resource not in (JOBS_BATCH, PODS):
            (folder / f"{title}.json").write_text(json.dumps(open_crd(resource)))
    control_plane.install_crds(folder)


def reference(owner: Object) -> Object:
    """An owner reference to a stored object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


def template(gpus: int = 1) -> Object:
    resources = {"limits": {"nvidia.com/gpu": gpus}, "requests": {"nvidia.com/gpu": gpus}}
    main = {"name": "main", "image": "registry.example/none", "resources": resources}
    return {"spec": {"restartPolicy": "Never", "containers": [main]}}


def job_spec(parallelism: int) -> Object:
    return {"parallelism": parallelism, "completions": parallelism, "template": template()}
