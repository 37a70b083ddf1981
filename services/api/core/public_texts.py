"""What users may read of answers about all namespaces.

Names of queues and nodes, labels of nodes and resources of nodes are of objects that belong to no
namespace, or that an operator lets users read. A queue that does not exist is only a text on pods
and groups of some namespace, and so are resources and labels that no node has.
"""

from collections.abc import Iterable

import msgspec

from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue, ShapeCapacity
from shared.model.objects import Node


def public_queues(ledger: LedgerAnswer) -> tuple[LedgerQueue, ...]:
    """The queues that exist, with the resources that nodes have, or that a queue names itself."""
    on_nodes = frozenset(one.resource for one in ledger.totals if one.total)

    def is_public(amount: LedgerAmount) -> bool:
        declared = amount.guarantee or amount.ceiling is not None or amount.deserved is not None
        return bool(amount.resource in on_nodes or declared)

    return tuple(
        msgspec.structs.replace(queue, amounts=tuple(filter(is_public, queue.amounts)))
        for queue in ledger.queues
        if queue.exists
    )


def public_shapes(
    shapes: Iterable[ShapeCapacity], nodes: Iterable[Node]
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
            requests=tuple(one for one in shape.requests if one[0] in resources),
            node_selector=tuple(one for one in shape.node_selector if one in labels),
        )
        for shape in shapes
    )
