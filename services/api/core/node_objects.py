"""Builds Nodes from the cluster state."""

from services.api.core.cluster_state import NodeLoad
from services.api.core.tables import Column, columns
from shared.contracts.visibility import API_VERSION, Node, NodeAmounts, NodeStatus, ObjectMeta
from shared.kube.quantities import format_quantity
from shared.model import objects as model

NODE_COLUMNS: tuple[Column, ...] = columns(
    ("Name", "string", "Name of the node.", 0),
    ("Ready", "boolean", "Whether it is ready.", 0),
    ("Schedulable", "boolean", "Whether new pods may be bound to it.", 0),
    ("Members", "integer", "Members of gangs on it.", 0),
    ("Pods", "integer", "Pods on it.", 0),
    ("Free", "string", "What pods may still request.", 0),
    ("Taints", "string", "Its taints.", 1),
)
_NO_LOAD = NodeLoad()


def build_node(node: model.Node, load: NodeLoad | None, version: str) -> Node:
    """The object of a node; without a load, no pod is on it."""
    on_it = load or _NO_LOAD
    return Node(
        api_version=API_VERSION,
        kind="Node",
        metadata=ObjectMeta(name=node.name, uid=node.uid, resource_version=version),
        status=NodeStatus(
            ready=node.ready,
            schedulable=not node.unschedulable,
            taints=tuple(
                f"{one.key}{'=' * bool(one.value)}{one.value}:{one.effect}" for one in node.taints
            ),
            topology={key: value for key, value in node.labels if "topology" in key},
            pods=on_it.pods,
            members=on_it.members,
            resources=tuple(
                _amounts(resource, amount, on_it.requested.get(resource, 0))
                for resource, amount in node.allocatable
            ),
        ),
    )


def _amounts(resource: str, allocatable: int, requested: int) -> NodeAmounts:
    free = allocatable - requested
    sign = "-" if free < 0 else ""
    return NodeAmounts(
        resource=resource,
        allocatable=format_quantity(resource, allocatable),
        requested=format_quantity(resource, requested),
        free=f"{sign}{format_quantity(resource, abs(free))}",
    )


def node_cells(node: Node, _now_ms: int) -> tuple[str | int, ...]:
    """The cells of a node's row."""
    status = node.status
    free = [f"{one.free} {one.resource}" for one in status.resources if one.resource != "pods"]
    return (
        node.metadata.name,
        status.ready,
        status.schedulable,
        status.members,
        status.pods,
        ", ".join(free),
        ",".join(status.taints) or "<none>",
    )
