"""Builds PodShapes from the planner's answer about fragmentation."""

from services.api.core.tables import Column, columns
from shared.contracts.questions import ShapeCapacity
from shared.contracts.visibility import API_VERSION, ObjectMeta, PodShape, PodShapeStatus, TierFit
from shared.kube.quantities import format_quantity

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
    """The object of a shape."""
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
                TierFit(tier=one.tier, domain=one.domain, pods=one.pods) for one in shape.tiers
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
