"""Karpenter with its kwok provider, which makes Node objects instead of machines.

The kubelets of these nodes are `tests/controlplane/kubelet.py`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Edit, Recipe
from tests.controlplane.operators.started import started
from tests.controlplane.processes import Component, ReservedPort

RECIPE: Final = Recipe(
    name="karpenter",
    module="sigs.k8s.io/karpenter",
    version="v1.8.0",
    main="kwok",
    crds="",
    crd_files=(
        "pkg/apis/crds/karpenter.sh_nodeclaims.yaml",
        "pkg/apis/crds/karpenter.sh_nodeoverlays.yaml",
        "pkg/apis/crds/karpenter.sh_nodepools.yaml",
        "kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml",
    ),
    # Its flags have ports only: it would listen on every address of the machine.
    edits=tuple(
        Edit(
            "pkg/operator/operator.go",
            f'":%d", options.FromContext(ctx).{port}',
            f'"127.0.0.1:%d", options.FromContext(ctx).{port}',
        )
        for port in ("MetricsPort", "HealthProbePort")
    ),
)

NODE_CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
NODE_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
NODE_CLASSES: Final = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
POOL_LABEL: Final = "karpenter.sh/nodepool"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"

SMALL: Final = "small-4"
LARGE: Final = "large-16"
#: CPUs and price by name; the provider keeps 0.1 CPU of each node for its system.
_INSTANCE_TYPES: Final[Mapping[str, tuple[int, float]]] = {SMALL: (4, 1.0), LARGE: (16, 3.0)}
_ZONE: Final = "test-zone-a"
_CAPACITY_LABEL: Final = "karpenter.sh/capacity-type"
_ON_DEMAND: Final = "on-demand"


@asynccontextmanager
async def running_karpenter(
    operator: BuiltOperator, control_plane: ControlPlane, folder: Path
) -> AsyncIterator[Component]:
    """Run it with its default settings until the block is left; its log has a JSON object a line.

    Args:
        operator: Where it was built.
        control_plane: The cluster that it works on.
        folder: An empty folder for its instance types and log.
    """
    await asyncio.to_thread(control_plane.install_crds, operator.crds)
    instance_types = folder / "instance-types.json"
    instance_types.write_text(json.dumps(_instance_types()))
    metrics, health = ReservedPort(), ReservedPort()
    component = Component(
        RECIPE.name,
        [
            "/usr/bin/env",
            f"KUBECONFIG={control_plane.admin_kubeconfig}",
            str(operator.program),
            f"--metrics-port={metrics.number}",
            f"--health-probe-port={health.number}",
            f"--instance-types-file-path={instance_types}",
            "--disable-leader-election=true",
            "--log-level=debug",
        ],
        folder / "karpenter.log",
    )
    metrics.release()
    health.release()
    async with started(component, '"message":"Starting workers","controller":"provisioner"'):
        yield component


def node_class(name: str, *, registration_delay: str = "0s") -> Object:
    """The provider's part of a pool: how long a node takes from its purchase to its Node object."""
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": name},
        "spec": {"nodeRegistrationDelay": registration_delay},
    }


def node_pool(
    name: str,
    types: Sequence[str],
    *,
    policy: str = "WhenEmpty",
    after: str = "Never",
    cpus_max: int = 1000,
    weight: int = 1,
) -> Object:
    """A pool that may buy nodes of these types, from the class of its name.

    Args:
        types: `SMALL`, `LARGE`.
        policy: Which nodes it gives back: "WhenEmpty" or "WhenEmptyOrUnderutilized".
        after: How long they have to be like that: "0s"; "Never" gives none back.
        cpus_max: How many CPUs its nodes have at most, all together.
        weight: Of several pools, that of the largest weight is used first.
    """
    kind = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": kind,
                    "expireAfter": "Never",
                    "requirements": requirements(types),
                }
            },
            "weight": weight,
            "limits": {"cpu": str(cpus_max)},
            "disruption": {
                "consolidationPolicy": policy,
                "consolidateAfter": after,
                # By default a tenth of the nodes, rounded up.
                "budgets": [{"nodes": "100%"}],
            },
        },
    }


def requirements(types: Sequence[str]) -> list[Object]:
    """What a pool requires of the nodes that it buys: one of these types, at the usual price.

    Without the latter Karpenter replaces nodes by spot instances, which the types do not have.
    """
    return [_requirement(INSTANCE_TYPE_LABEL, *types), _requirement(_CAPACITY_LABEL, _ON_DEMAND)]


def _instance_types() -> list[Object]:
    return [
        {
            "name": name,
            "architecture": "amd64",
            "operatingSystems": ["linux"],
            "resources": {
                "cpu": str(cpus),
                "memory": f"{4 * cpus}Gi",
                "ephemeral-storage": "100Gi",
                "pods": "110",
            },
            "offerings": [
                {
                    "Price": price,
                    "Available": True,
                    "Requirements": [
                        _requirement(_CAPACITY_LABEL, _ON_DEMAND),
                        _requirement("topology.kubernetes.io/zone", _ZONE),
                    ],
                }
            ],
        }
        for name, (cpus, price) in _INSTANCE_TYPES.items()
    ]


def _requirement(key: str, *values: str) -> Object:
    return {"key": key, "operator": "In", "values": list(values)}
