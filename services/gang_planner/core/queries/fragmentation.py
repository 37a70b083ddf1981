"""Fragmentation: how many more pods of each common shape fit on all nodes, in one domain and on one
node, and how many would fit if all free capacity were in one place.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from services.gang_planner.core.placement.domains import counts_by_domain
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.topology.levels import Level
from shared.contracts.questions import FragmentationAnswer, ShapeCapacity, TierCapacity

#: Shapes in one answer: each takes some array operations over all nodes.
SHAPES_MAX: Final = 20
#: Resources and labels of each: a pod may have thousands.
_ENTRIES_MAX: Final = 32
_encode: Final = msgspec.msgpack.Encoder().encode
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def fragmentation(gangs: GangTable, session: Session) -> FragmentationAnswer:
    """The capacity for the shapes that most members of gangs have, most members first.

    Shapes that differ only in images and preferences are one. Pods with claims to volumes or
    devices are left out: their shapes have the names of their claims. For shapes with rules between
    pods, the counts are upper bounds.
    """
    session.begin()
    by_shape: dict[bytes, _Common] = {}
    for shape, (members, waiting) in _counted(gangs).items():
        bare = _encode(msgspec.structs.replace(shape.shape, images=(), preferred_node_affinity=()))
        common = by_shape.setdefault(bare, _Common(shape, hashlib.sha256(bare).hexdigest()[:12]))
        common.members += members
        common.waiting += waiting
    first = sorted(by_shape.values(), key=lambda common: (-common.members, common.shape.order))[
        :SHAPES_MAX
    ]
    levels = session.node_capacity.topology.hypernode_levels()
    return FragmentationAnswer(shapes=tuple(_capacity(session, levels, common) for common in first))


class _Common(msgspec.Struct, eq=False):
    """Equal pods, as one of their shapes has them, and their numbers."""

    shape: ShapeEntry
    id: str
    members: int = 0
    waiting: int = 0


def _counted(gangs: GangTable) -> dict[ShapeEntry, tuple[int, int]]:
    """The members of gangs by shape, and how many of them have no node."""
    members: Counter[ShapeEntry] = Counter()
    waiting: Counter[ShapeEntry] = Counter()
    for member in _members(gangs):
        members[member.shape] += 1
        waiting[member.shape] += not member.pod.node
    return {shape: (count, waiting[shape]) for shape, count in members.items()}


def _members(gangs: GangTable) -> Iterator[Member]:
    for gang in gangs.gangs.values():
        for member in () if gang.silent else gang.members.values():
            shape = member.shape
            if member.pod.phase not in _ENDED and not (shape.attached or shape.best_effort):
                yield member


def _capacity(session: Session, levels: tuple[Level, ...], common: _Common) -> ShapeCapacity:
    nodes, shape = session.node_capacity.nodes, common.shape
    counts = session.fits.counts(shape)[: nodes.size]
    best = int(counts.argmax()) if len(counts) else 0
    fits = bool(len(counts)) and bool(counts[best])
    return ShapeCapacity(
        id=common.id,
        requests=shape.shape.requests[:_ENTRIES_MAX],
        node_selector=shape.shape.node_selector[:_ENTRIES_MAX],
        members=common.members,
        waiting=common.waiting,
        total=session.fits.total(shape),
        unfragmented=_unfragmented(session, shape),
        node=nodes.names[best] if fits else "",
        on_node=int(counts[best]) if fits else 0,
        tiers=tuple(_tier(level, counts) for level in levels if level.names),
    )


def _tier(level: Level, counts: Ints) -> TierCapacity:
    sums = counts_by_domain(level, counts[: len(level.domain_of)], None)
    best = int(sums.argmax())
    fits = bool(sums[best])
    return TierCapacity(
        tier=level.title, domain=level.names[best] if fits else "", pods=int(sums[best])
    )


def _unfragmented(session: Session, shape: ShapeEntry) -> int:
    """How many pods the free amounts of all nodes that the shape may use would hold if they were on
    one node.
    """
    capacity = session.node_capacity
    slots = np.flatnonzero(session.fits.masks.mask(shape))
    free = capacity.free.cells[np.ix_(shape.rows, slots)].clip(min=0).sum(axis=1)
    return int((free // shape.amounts).min())
