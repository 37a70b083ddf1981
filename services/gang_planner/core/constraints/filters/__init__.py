"""One file per filter that excludes nodes for a pod, with kube-scheduler's reason texts.

A `NodeFilter` reads only the node; its results are cached per shape and updated when a node
changes. A `CapacityFilter` reads the free capacity and returns how many more pods of a shape a node
holds.

Each file registers its filter as `RULE` for the policy `predicates`. A few filters without a `RULE`
are named in `framework.policy_set` and apply in every configuration.
"""

import importlib
import pkgutil
from collections import Counter
from functools import cache
from typing import Final, NamedTuple, Protocol

from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry

#: The count of pods on a node without a limit: more than any decision binds.
UNLIMITED: Final = 2**31

#: Filters that apply only to shapes with claims.
CLAIM_FILTERS: Final = frozenset(
    {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "DynamicResources"}
)


class NodeFilter(Protocol):
    """A filter that depends only on the node."""

    #: Its name in kube-scheduler.
    name: str

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        """One flag per slot: whether pods of the shape may use the node."""
        ...

    def reasons(self, shape: ShapeEntry, nodes: NodeTable, slots: Ints, /) -> Counter[str]:
        """Reason text -> number of nodes, for nodes that do not pass."""
        ...


class CapacityFilter(Protocol):
    """A filter that depends on the node's free capacity."""

    #: Its name in kube-scheduler.
    name: str

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        """How many more pods of the shape each of these nodes holds, at most `UNLIMITED`."""
        ...

    def reasons(
        self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints, /
    ) -> Counter[str]:
        """Reason text -> number of nodes, for nodes that hold no such pod; a node may have several
        reasons.
        """
        ...


class OneReason:
    """A part of filters: all nodes that do not pass have the same reason."""

    reason: str

    def reasons(self, _shape: ShapeEntry, _table: object, slots: Ints, /) -> Counter[str]:
        """As in `NodeFilter` and `CapacityFilter`."""
        return Counter({self.reason: len(slots)})


class NodeRule(NamedTuple):
    """A `NodeFilter` as its file registers it: the module constant `RULE`."""

    filter: NodeFilter
    #: The argument of the policy `predicates` that switches it off; None: there is none.
    switch: str | None = None
    #: A node that several filters exclude is counted for the one with the lowest position.
    position: int = 100


class CapacityRule(NamedTuple):
    """A `CapacityFilter` as its file registers it: the module constant `RULE`."""

    filter: CapacityFilter
    #: As in `NodeRule`.
    switch: str | None = None
    position: int = 100


@cache
def filter_rules() -> tuple[NodeRule | CapacityRule, ...]:
    """The rules of all files in this package, by position and then by the files' names."""
    modules = sorted(entry.name for entry in pkgutil.iter_modules(__path__))
    loaded = [importlib.import_module(f"{__name__}.{name}") for name in modules]
    rules: list[NodeRule | CapacityRule] = [m.RULE for m in loaded if hasattr(m, "RULE")]
    return tuple(sorted(rules, key=lambda rule: rule.position))
