"""Nodes outside the zone or region in the labels of the pod's volumes. Some provisioners still set
these labels instead of a node affinity.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityRule, OneReason
from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.terms import Requirement

_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
#: Label of a volume -> labels of nodes; the first one that a node has is compared.
_KEYS: Final = {
    "failure-domain.beta.kubernetes.io/zone": ("failure-domain.beta.kubernetes.io/zone", _ZONE),
    "failure-domain.beta.kubernetes.io/region": (
        "failure-domain.beta.kubernetes.io/region",
        _REGION,
    ),
    _ZONE: (_ZONE,),
    _REGION: (_REGION,),
}
#: Separates the zones of a volume in several zones.
_SEPARATOR: Final = "__"


class VolumeZone(OneReason):
    """A node without any of these labels accepts every volume."""

    name = "VolumeZone"
    reason = "node(s) had no available volume zone"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        nodes = node_capacity.nodes
        mask: Bools = np.ones(nodes.size, dtype=np.bool_)
        bound = node_capacity.storage.demand(shape).bound
        if not bound:
            return np.full(len(mask[slots]), UNLIMITED, dtype=np.int64)
        for volume in bound:
            for key, value in volume.labels:
                if key in _KEYS:
                    mask &= _inside(key, tuple(value.split(_SEPARATOR)), nodes)
        if not mask.all():
            mask |= ~_labelled(nodes)
        return np.where(mask, UNLIMITED, 0).astype(np.int64)[slots]


def _inside(key: str, values: tuple[str, ...], nodes: NodeTable) -> Bools:
    unlabelled: Bools = np.ones(nodes.size, dtype=np.bool_)
    inside: Bools = np.zeros(nodes.size, dtype=np.bool_)
    for label in _KEYS[key]:
        inside |= unlabelled & nodes.holding(Requirement(key=label, operator="In", values=values))
        unlabelled &= nodes.holding(Requirement(key=label, operator="DoesNotExist"))
    return inside


def _labelled(nodes: NodeTable) -> Bools:
    labelled: Bools = np.zeros(nodes.size, dtype=np.bool_)
    for label in _KEYS:
        labelled |= nodes.holding(Requirement(key=label, operator="Exists"))
    return labelled


RULE: Final = CapacityRule(VolumeZone(), switch="predicate.VolumeZoneEnable", position=70)
