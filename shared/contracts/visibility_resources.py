"""The catalogue of the API `visibility.tutti.dev/v1alpha1`: its kinds, and the resources by which
they are read and asked.
"""

from typing import Final, Literal

import msgspec

from shared.contracts.visibility import (
    Decision,
    DecisionList,
    Explanation,
    Fit,
    Gang,
    GangList,
    Instance,
    InstanceList,
    Node,
    NodeList,
    PodShape,
    PodShapeList,
    Queue,
    QueueList,
)

#: Every kind that is served, by its name.
KINDS: Final[dict[str, type[msgspec.Struct]]] = {
    kind.__name__: kind
    for kind in (
        Gang,
        GangList,
        Queue,
        QueueList,
        Node,
        NodeList,
        PodShape,
        PodShapeList,
        Instance,
        InstanceList,
        Decision,
        DecisionList,
        Fit,
        Explanation,
    )
}


class ServedResource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource: the names in paths, RBAC and manifests, and the verbs that are served.

    `needs`: what its answers are made from, beside the request. Nothing; other services, which are
    asked over NATS; or the streams, which have to be read first.
    """

    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    needs: Literal["nothing", "services", "streams"] = "services"


GANGS: Final = ServedResource(
    plural="gangs",
    singular="gang",
    kind="Gang",
    namespaced=True,
    verbs=("get", "list", "watch"),
    needs="streams",
)

QUEUES: Final = ServedResource(
    plural="queues", singular="queue", kind="Queue", namespaced=False, verbs=("get", "list")
)
NODES: Final = ServedResource(
    plural="nodes",
    singular="node",
    kind="Node",
    namespaced=False,
    verbs=("get", "list"),
    needs="streams",
)
POD_SHAPES: Final = ServedResource(
    plural="podshapes",
    singular="podshape",
    kind="PodShape",
    namespaced=False,
    verbs=("get", "list"),
)
INSTANCES: Final = ServedResource(
    plural="instances",
    singular="instance",
    kind="Instance",
    namespaced=False,
    verbs=("get", "list"),
)
DECISIONS: Final = ServedResource(
    plural="decisions",
    singular="decision",
    kind="Decision",
    namespaced=True,
    verbs=("get", "list"),
    needs="streams",
)
FITS: Final = ServedResource(
    plural="fits", singular="fit", kind="Fit", namespaced=True, verbs=("create",)
)

EXPLANATIONS: Final = ServedResource(
    plural="explanations",
    singular="explanation",
    kind="Explanation",
    namespaced=True,
    verbs=("create",),
    needs="nothing",
)

#: All resources that are served.
RESOURCES: Final = (GANGS, QUEUES, NODES, POD_SHAPES, INSTANCES, DECISIONS, FITS, EXPLANATIONS)
