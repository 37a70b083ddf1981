"""Words for `minResources`: what a gang that waits for them lacks, and what is reserved for one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.needs import RESERVED, Need

if TYPE_CHECKING:
    from services.gang_planner.core.placement.session import Session
    from services.gang_planner.core.state.columns import Bools
    from services.gang_planner.core.state.holds import Hold
    from services.gang_planner.core.state.pod_shapes import ShapeTable
    from services.gang_planner.core.state.queues import QueueEntry

_NODES_MAX: Final = 5


def never(session: "Session", queue: "QueueEntry", need: Need) -> str:
    """Why the gang's `minResources` can never be met as nodes and queues are; "": they can."""
    asked, names = _asked(session.shapes, need), session.shapes.resources.names
    for entry in queue.chain:
        over = {row: entry.capability[row] for row in asked if row in entry.capability}
        for row, most in sorted(over.items()):
            if asked[row] > most:
                needed = in_words(names[row], asked[row])
                return (
                    f"its minResources can never be met: {needed} needed, and queue {entry.name} "
                    f"may hold at most {in_words(names[row], most)}"
                )
    nodes = session.node_capacity.nodes
    usable = _usable(session, need)
    nodes.allocatable.ensure(*session.node_capacity.free.cells.shape)
    for row, amount in sorted(asked.items()):
        has = int(nodes.allocatable.cells[row, : nodes.size][usable].sum())
        if amount > has:
            return (
                f"its minResources can never be met: {in_words(names[row], amount)} needed, and "
                f"the nodes that its pods may use have {in_words(names[row], has)} in all"
            )
    return ""


def missing(session: "Session", need: Need) -> tuple[str, dict[str, int]]:
    """What `minResources` lack on the nodes as they are, in words and by resource name."""
    asked, names = _asked(session.shapes, need), session.shapes.resources.names
    usable = _usable(session, need)
    session.node_capacity.fit_cells()
    short: dict[str, int] = {}
    parts: list[str] = []
    for row, amount in sorted(asked.items()):
        free = int(session.node_capacity.free.cells[row, : len(usable)][usable].clip(min=0).sum())
        if free < amount:
            short[names[row]] = amount - free
            parts.append(f"{in_words(names[row], amount)} needed, {_amount(names[row], free)} free")
    if parts:
        return f"not enough free capacity for its minResources: {'; '.join(parts)}", short
    needed = listed([in_words(names[row], amount) for row, amount in sorted(asked.items())])
    return (
        f"not enough free capacity for its minResources: {needed} needed; as much "
        "is free, but not in parts that are large enough",
        short,
    )


def reserved_in_words(session_names: Sequence[str], units: "Sequence[Hold]", until: str) -> str:
    """What is reserved for a gang, where, and until when."""
    amounts: dict[str, int] = {}
    for hold in units:
        for row, amount in hold.shape.pairs:
            amounts[session_names[row]] = amounts.get(session_names[row], 0) + amount
    amounts.pop("pods", None)
    what = listed([in_words(name, amount) for name, amount in sorted(amounts.items())])
    nodes = sorted({hold.node for hold in units if hold.node})
    more = f" and {len(nodes) - _NODES_MAX} more nodes" if len(nodes) > _NODES_MAX else ""
    where = f" on {', '.join(nodes[:_NODES_MAX])}{more}" if nodes else ""
    return f"{what} of its minResources reserved for its later pods{where} {until}"


def _asked(shapes: "ShapeTable", need: Need) -> dict[int, int]:
    """What quorum and units ask for, of the resources that the units name."""
    rows = {
        row
        for role, shape_id, _ in need.wanted
        if role == RESERVED
        for row, _ in shapes.entries[shape_id].pairs
    }
    return {
        row: amount
        for row, amount in need.amounts(shapes).items()
        if row in rows and shapes.resources.names[row] != "pods"
    }


def _usable(session: "Session", need: Need) -> "Bools":
    """Nodes that pods or units of the gang may use, whatever is free on them."""
    mask: Bools = np.zeros(session.node_capacity.nodes.size, dtype=np.bool_)
    for _, shape_id, _ in need.wanted:
        mask = mask | session.fits.masks.mask(session.shapes.entries[shape_id])
    return mask


def _amount(name: str, amount: int) -> str:
    """The amount without the resource's name, where that has been said."""
    return in_words(name, amount).removesuffix(f" {name}")
