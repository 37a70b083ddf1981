"""The catalogue of the API `visibility.tutti.dev/v1alpha1`: its kinds, and the resources by which
they are read and asked.
"""

from typing import Final, Literal

import msgspec

from shared.contracts.visibility import (
    GROUP,
    VERSION,
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
from shared.contracts.visibility_suggestions import Suggestion

# The registration with the API server (ADR 0092). services/api writes it. `tutti up` deletes one
# that an API service of a `tutti up` left behind.
#: Name of the APIService.
API_SERVICE: Final = f"{VERSION}.{GROUP}"
#: Namespace and name of the Service that leads to the API service of `tutti up`.
UP_SERVICE: Final = ("kube-system", "tutti-up-api")
#: Label of the APIService and of this Service: what maintains it. `tutti up` and its API service
#: change and delete objects with the value `TUTTI_UP` only.
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
TUTTI_UP: Final = "tutti-up"
#: The value on an APIService that a replica of the chart has written.
TUTTI: Final = "tutti"


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
        Suggestion,
    )
}


class ServedResource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource: the names in paths, RBAC and manifests, and the verbs that are served.

    `needs`: what its answers are made from, beside the request. Nothing; other services, which are
    asked over NATS; or the streams, which have to be read first.
    """

    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    needs: Literal["nothing", "services", "streams"] = "services"

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def plural(self) -> str:
        return f"{self.singular}s"


GANGS: Final = ServedResource(
    kind="Gang", namespaced=True, verbs=("get", "list", "watch"), needs="streams"
)
QUEUES: Final = ServedResource(kind="Queue", namespaced=False, verbs=("get", "list"))
NODES: Final = ServedResource(kind="Node", namespaced=False, verbs=("get", "list"), needs="streams")
POD_SHAPES: Final = ServedResource(kind="PodShape", namespaced=False, verbs=("get", "list"))
INSTANCES: Final = ServedResource(kind="Instance", namespaced=False, verbs=("get", "list"))
DECISIONS: Final = ServedResource(
    kind="Decision", namespaced=True, verbs=("get", "list"), needs="streams"
)
FITS: Final = ServedResource(kind="Fit", namespaced=True, verbs=("create",))
EXPLANATIONS: Final = ServedResource(
    kind="Explanation", namespaced=True, verbs=("create",), needs="nothing"
)
SUGGESTIONS: Final = ServedResource(
    kind="Suggestion", namespaced=True, verbs=("create",), needs="streams"
)

#: All resources that are served.
RESOURCES: Final = (
    *(GANGS, QUEUES, NODES, POD_SHAPES, INSTANCES, DECISIONS),
    *(FITS, EXPLANATIONS, SUGGESTIONS),
)
