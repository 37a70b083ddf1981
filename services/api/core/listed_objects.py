"""Objects and tables of what is listed beside gangs, and what users may read of it.

Names of queues and nodes, labels of nodes and resources of nodes are of objects that belong to no
namespace, or that an operator lets users read. A queue that does not exist is only a text on pods
and groups of some namespace, and so are resources and labels that no node has.
"""

from collections.abc import Iterable

import msgspec

from services.api.core.cluster_state import NodeLoad
from services.api.core.gang_objects import instant
from services.api.core.tables import Column, age, columns
from shared.contracts.questions import (
    LedgerAmount,
    LedgerAnswer,
    LedgerQueue,
    ServiceStatus,
    ShapeCapacity,
)
from shared.contracts.visibility import (
    API_VERSION,
    Instance,
    InstanceStatus,
    Node,
    NodeAmounts,
    NodeStatus,
    ObjectMeta,
    PodShape,
    PodShapeStatus,
    Queue,
    TierFit,
)
from shared.kube.quantities import format_quantity
from shared.model import objects as model


def public_queues(ledger: LedgerAnswer) -> tuple[LedgerQueue, ...]:
    """The queues that exist, with the resources that nodes have, or that a queue names itself."""
    on_nodes = frozenset(total.resource for total in ledger.totals if total.total)

    def is_public(amount: LedgerAmount) -> bool:
        declared = amount.guarantee or amount.ceiling is not None or amount.deserved is not None
        return bool(amount.resource in on_nodes or declared)

    return tuple(
        msgspec.structs.replace(queue, amounts=tuple(filter(is_public, queue.amounts)))
        for queue in ledger.queues
        if queue.exists
    )


def public_shapes(
    shapes: Iterable[ShapeCapacity], nodes: Iterable[model.Node]
) -> tuple[ShapeCapacity, ...]:
    """The shapes, with the resources and the labels of selectors that some node has."""
    resources: set[str] = set()
    labels: set[tuple[str, str]] = set()
    for node in nodes:
        resources.update(name for name, _ in node.allocatable)
        labels.update(node.labels)
    return tuple(
        msgspec.structs.replace(
            shape,
            requests=tuple(request for request in shape.requests if request[0] in resources),
            node_selector=tuple(label for label in shape.node_selector if label in labels),
        )
        for shape in shapes
    )


QUEUE_COLUMNS: tuple[Column, ...] = columns(
    ("Name", "string", "Name of the queue.", 0),
    ("Parent", "string", "Queue that it is in.", 0),
    ("Running", "integer", "Gangs that have started.", 0),
    ("Waiting", "integer", "Gangs that wait for free capacity.", 0),
    ("Used", "string", "What its gangs use.", 0),
    ("Wanted", "string", "What waiting gangs request.", 0),
    ("State", "string", "Open, Closed or Closing.", 1),
    ("Deserved", "string", "Its fair share.", 1),
    ("Limit", "string", "The most that it may use.", 1),
    ("Message", "string", "What limits it.", 1),
)


def queue_cells(queue: Queue, _now_ms: int) -> tuple[str | int, ...]:
    """The cells of a queue's row."""
    status = queue.status

    def each(field: str, blank: str = "0") -> str:
        shown = [
            f"{amount} {amounts.resource}"
            for amounts in status.resources
            if (amount := getattr(amounts, field)) not in {"", blank}
        ]
        return ", ".join(shown) or "<none>"

    return (
        queue.metadata.name,
        status.parent or "<none>",
        status.gangs.running,
        status.gangs.waiting,
        each("used"),
        each("wanted"),
        status.state or "<none>",
        # Nothing of a resource is something else than no share or limit.
        each("deserved", ""),
        each("limit", ""),
        status.message,
    )


INSTANCE_COLUMNS: tuple[Column, ...] = columns(
    ("Name", "string", "Name of the process.", 0),
    ("Service", "string", "Service that it is a process of.", 0),
    ("Ready", "boolean", "Whether it is ready.", 0),
    ("Active", "boolean", "False for the standby of a service with one writer.", 0),
    ("Version", "string", "Version of Tutti.", 0),
    ("Age", "string", "Time since its start.", 0),
    ("Not ready", "string", "Why it is not ready.", 0),
)


def build_instance(answer: ServiceStatus) -> Instance:
    """The object of a process, without its figures, notes and settings, which are for operators."""
    started = instant(answer.started_ms // 1000 * 1000)
    return Instance(
        api_version=API_VERSION,
        kind="Instance",
        metadata=ObjectMeta(name=answer.instance, creation_timestamp=started),
        status=InstanceStatus(
            service=answer.service,
            ready=answer.ready,
            not_ready=answer.not_ready,
            active=answer.active,
            version=answer.version,
            started=started,
        ),
    )


def instance_cells(instance: Instance, now_ms: int) -> tuple[str | int, ...]:
    """The cells of a process's row."""
    status = instance.status
    return (
        instance.metadata.name,
        status.service,
        status.ready,
        status.active,
        status.version,
        age(status.started, now_ms),
        "; ".join(status.not_ready),
    )


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
                f"{taint.key}{'=' * bool(taint.value)}{taint.value}:{taint.effect}"
                for taint in node.taints
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
    free = [f"{use.free} {use.resource}" for use in status.resources if use.resource != "pods"]
    return (
        node.metadata.name,
        status.ready,
        status.schedulable,
        status.members,
        status.pods,
        ", ".join(free),
        ",".join(status.taints) or "<none>",
    )


POD_SHAPE_COLUMNS: tuple[Column, ...] = columns(
    ("Name", "string", "A hash of the shape.", 0),
    ("Requests", "string", "What one pod requests.", 0),
    ("Members", "integer", "Members of gangs that are such pods.", 0),
    ("Waiting", "integer", "Those of them without a node.", 0),
    ("Fits", "integer", "Further such pods that fit on all nodes.", 0),
    ("On a node", "string", "The most that fit on one node.", 0),
    ("In a domain", "string", "The most that fit into one domain of the lowest tier.", 0),
    ("Unfragmented", "integer", "Such pods that the free amounts of all nodes add up to.", 1),
    ("Node selector", "string", "Labels that their nodes must have.", 1),
)


def build_pod_shape(shape: ShapeCapacity) -> PodShape:
    return PodShape(
        api_version=API_VERSION,
        kind="PodShape",
        metadata=ObjectMeta(name=shape.id),
        status=PodShapeStatus(
            requests={
                resource: format_quantity(resource, amount)
                for resource, amount in shape.requests
                if resource != "pods"
            },
            node_selector=dict(shape.node_selector),
            members=shape.members,
            waiting=shape.waiting,
            fits=shape.total,
            node=shape.node,
            fits_on_node=shape.on_node,
            tiers=tuple(
                TierFit(tier=tier.tier, domain=tier.domain, pods=tier.pods) for tier in shape.tiers
            ),
            unfragmented=shape.unfragmented,
        ),
    )


def pod_shape_cells(shape: PodShape, _now_ms: int) -> tuple[str | int, ...]:
    """The cells of a shape's row."""
    status = shape.status
    lowest = next(iter(status.tiers), None)
    return (
        shape.metadata.name,
        ", ".join(f"{amount} {resource}" for resource, amount in status.requests.items()),
        status.members,
        status.waiting,
        status.fits,
        _at(status.fits_on_node, status.node),
        "<none>" if lowest is None else _at(lowest.pods, lowest.domain),
        status.unfragmented,
        ",".join(f"{key}={value}" for key, value in status.node_selector.items()) or "<none>",
    )


def _at(pods: int, place: str) -> str:
    return f"{pods} ({place})" if place else "0"
