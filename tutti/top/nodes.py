"""The requests of pods on each node, and their gangs. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from shared.contracts.annotations import GROUP_NAME
from shared.kube.objects import Node, Pod
from shared.kube.quantities import QuantityError
from shared.kube.requests import PODS, amounts, effective_requests, resize_of

_ENDED: Final = frozenset({"Succeeded", "Failed"})


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of one node, in the model's units."""

    resource: str
    used: int
    allocatable: int

    @property
    def share(self) -> float:
        """The part in use; above 1 if the node has shrunk below the requests of its pods."""
        if self.allocatable <= 0:
            return 1.0 if self.used else 0.0
        return self.used / self.allocatable


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: "Ready", "NotReady", and ",cordoned" behind it.
    state: str
    #: cpu and memory, then devices by name, then pods.
    resources: tuple[ResourceUse, ...] = msgspec.field(name="rooms")
    #: "namespace/name" of the groups with pods on it, those with most pods first.
    gangs: tuple[str, ...] = ()

    def use(self, resource: str) -> ResourceUse | None:
        """The use of one resource; None: the node has none."""
        return next((one for one in self.resources if one.resource == resource), None)


def uses(nodes: Iterable[Node], pods: Iterable[Pod]) -> list[NodeUse]:
    """Every node, by name, without ended pods and pods whose requests cannot be read."""
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    gangs: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        name = pod.spec.node_name
        if not name or pod.status.phase in _ENDED:
            continue
        try:
            asked = effective_requests(pod.spec, resize_of(pod.status))
        except QuantityError:
            continue
        used[name].update(dict(asked))
        group = pod.metadata.annotations.get(GROUP_NAME, "")
        if group:
            gangs[name][f"{pod.metadata.namespace}/{group}"] += 1
    found = [_use(node, used[node.metadata.name], gangs[node.metadata.name]) for node in nodes]
    return sorted(found, key=lambda one: one.name)


def by_share(found: Iterable[NodeUse], resource: str) -> list[NodeUse]:
    """Nodes sorted by the part of a resource in use, largest first; nodes without it last."""

    def key(one: NodeUse) -> tuple[bool, float, str]:
        use = one.use(resource)
        return use is None, -(use.share if use is not None else 0.0), one.name

    return sorted(found, key=key)


def _use(node: Node, used: Counter[str], gangs: Counter[str]) -> NodeUse:
    try:
        has = amounts(node.status.allocatable, "status.allocatable")
    except QuantityError:
        has = {}
    names = sorted(has.keys() | used.keys(), key=_place)
    ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
    state = "Ready" if ready else "NotReady"
    return NodeUse(
        name=node.metadata.name,
        state=f"{state},cordoned" if node.spec.unschedulable else state,
        resources=tuple(
            ResourceUse(resource=name, used=used[name], allocatable=has.get(name, 0))
            for name in names
            if has.get(name, 0) or used[name]
        ),
        gangs=tuple(sorted(gangs, key=lambda gang: (-gangs[gang], gang))),
    )


def _place(resource: str) -> tuple[int, str]:
    order = {"cpu": 0, "memory": 1, PODS: 3}
    return order.get(resource, 2), resource
