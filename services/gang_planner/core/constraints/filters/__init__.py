"""One file per rule that keeps a pod off a node, each with its reason in kube-scheduler's words.

Two kinds. A `NodeFilter` reads only the node (its answers are cached per shape and repaired when a
node changes). A `CapacityFilter` reads the free capacity and returns how many more pods of a shape
a node holds. A filter that also reads something else is `Versioned`.

A file has one object, `FILTER`, and registers it as `RULE` for the policy `predicates`. Files
without a `RULE` apply whatever is configured (`framework.policy_set`).
"""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple, Protocol, runtime_checkable

from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry

#: Pods of one shape that a node holds when nothing limits them: more than any decision binds.
UNLIMITED: Final = 2**31

#: Filters that have nothing to say about shapes without claims.
CLAIM_FILTERS: Final = frozenset(
    {
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "DynamicResources",
    }
)


class NodeFilter(Protocol):
    """A rule about the node itself."""

    @property
    def name(self) -> str:
        """Its name in kube-scheduler."""
        ...

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        """Which of these nodes the rule lets the shape use."""
        ...

    def reasons(self, shape: ShapeEntry, nodes: NodeTable, slots: Ints) -> Counter[str]:
        """Why these nodes, which did not pass, refuse: text -> number of nodes."""
        ...


class CapacityFilter(Protocol):
    """A rule about what is free on the node."""

    @property
    def name(self) -> str:
        """Its name in kube-scheduler."""
        ...

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        """How many more pods of the shape each of these nodes holds, at most `UNLIMITED`."""
        ...

    def reasons(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> Counter[str]:
        """Why these nodes hold none: text -> number of nodes; a node may have several reasons."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """A filter of either kind whose answers also depend on what is neither a node nor room on it,
    such as claims or namespaces.
    """

    def version(self, shape: ShapeEntry) -> int:
        """A number that changes whenever the answers for this shape may have changed for another
        reason than a changed node or changed room; asked at every look, so it must be cheap.
        """
        ...


def versioned(filters: Iterable[NodeFilter] | Iterable[CapacityFilter]) -> tuple[Versioned, ...]:
    """Those of the filters that have a version."""
    return tuple(one for one in filters if isinstance(one, Versioned))


def versions(filters: tuple[Versioned, ...], shape: ShapeEntry) -> tuple[int, ...]:
    """What the answers for this shape depend on beside nodes and room, to be compared."""
    return tuple(one.version(shape) for one in filters)


class NodeRule(NamedTuple):
    """A `NodeFilter` as its file registers it: the module constant `RULE`."""

    filter: NodeFilter
    #: The argument of the policy `predicates` that switches it off; None: it is always applied.
    switch: str | None = None
    #: A node that several filters refuse is counted for the one with the lowest position.
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
    found = [importlib.import_module(f"{__name__}.{name}") for name in modules]
    rules: list[NodeRule | CapacityRule] = [m.RULE for m in found if hasattr(m, "RULE")]
    return tuple(sorted(rules, key=lambda rule: rule.position))
