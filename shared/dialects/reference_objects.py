"""Reads reference objects, which the planner only looks up: namespaces, quotas, budgets,
HyperNodes, topologies, and workloads at the top of their pods' owners.

They have no dialect of their own: `native` brings these kinds, like those of `storage` and
`devices`. An object that cannot be read is left out and logged; gangs that need it wait, as if it
did not exist.

Owner references lead from a pod only to its next owner, and objects between it and the workload (a
StatefulSet, the leader's pod, a child Job) are created again with the pods. `Dialect.workload` has
the labels of a pod that name the workload itself.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from shared.contracts import annotations
from shared.dialects import selectors
from shared.dialects.pod_vocabulary import workload_name
from shared.dialects.protocol import NAME_CHARACTERS_MAX, Kind, cluster_identity, identity
from shared.kinds.hypernode import HyperNode, HyperNodeMember, MemberSelector
from shared.kube import objects as kube
from shared.kube import reference_objects as looked_up
from shared.kube.quantities import QuantityError, amount
from shared.kube.resources import (
    DISRUPTION_BUDGETS,
    HYPERNODES,
    NAMESPACES,
    RESOURCE_QUOTAS,
    TOPOLOGIES_KAI,
    Resource,
)
from shared.model import objects as model
from shared.model import reference_objects

#: Limits of free texts and collections, far above real uses.
TEXT_CHARACTERS_MAX: Final = 1024
#: Conditions after which no pod is created again, or not before a user wants it.
_ENDED: Final = frozenset(
    {"Complete", "Completed", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"}
)
#: Phases of a Volcano Job in which its pods are created, and created again.
_LIVING_PHASES: Final = frozenset({"", "Pending", "Running", "Restarting"})
#: Levels of a Topology; its API allows no more.
_LEVELS_MAX: Final = 16


def read_namespace(namespace: kube.KubeObject) -> reference_objects.Namespace:
    metadata = namespace.metadata
    return reference_objects.Namespace(
        **cluster_identity(metadata),
        labels=labels(metadata),
        queue=metadata.annotations.get(annotations.QUEUE_NAME, "")[:NAME_CHARACTERS_MAX],
    )


def read_quota(quota: looked_up.ResourceQuota) -> reference_objects.ResourceQuota:
    """A quota: the limits that its controller enforces now, or will once it has seen the object."""
    metadata, spec, status = quota.metadata, quota.spec, quota.status
    scopes = [*spec.scopes]
    if spec.scope_selector is not None:
        scopes += [
            f"{scope.scope_name} {scope.operator} {','.join(scope.values)}".rstrip()
            for scope in spec.scope_selector.match_expressions
        ]
    return reference_objects.ResourceQuota(
        **identity(metadata),
        hard=readable_amounts(status.hard or spec.hard),
        used=readable_amounts(status.used),
        scopes=tuple(scope[:TEXT_CHARACTERS_MAX] for scope in sorted(scopes)),
    )


def read_budget(budget: kube.DisruptionBudget) -> reference_objects.Budget:
    """A PodDisruptionBudget as evictions see it, with or without an owner."""
    metadata = budget.metadata
    return reference_objects.Budget(
        **identity(metadata),
        selector=selectors.selector(budget.spec.selector),
        disruptions_allowed=budget.status.disruptions_allowed,
    )


def read_hypernode(hypernode: HyperNode) -> reference_objects.HyperNode:
    """A HyperNode. A member without a selector is left out."""
    metadata, spec = hypernode.metadata, hypernode.spec
    return reference_objects.HyperNode(
        **cluster_identity(metadata),
        tier=spec.tier,
        tier_name=spec.tier_name[:TEXT_CHARACTERS_MAX],
        members=tuple(
            _member(member, member.selector)
            for member in spec.members
            if member.selector is not None and member.selector != MemberSelector()
        ),
    )


def read_topology(topology: looked_up.Topology) -> reference_objects.Topology:
    return reference_objects.Topology(
        **cluster_identity(topology.metadata),
        levels=tuple(
            level.node_label[:TEXT_CHARACTERS_MAX] for level in topology.spec.levels[:_LEVELS_MAX]
        ),
    )


def labels(metadata: kube.ObjectMeta) -> model.Labels:
    """Labels, sorted."""
    return tuple(sorted(metadata.labels.items()))


def pod_owner_uid(metadata: kube.ObjectMeta) -> str:
    """UID of the pod that controls an object; "": no pod does."""
    owner = metadata.controller
    return owner.uid if owner is not None and owner.kind == "Pod" else ""


def kind(
    resource: Resource,
    neutral: str,
    decoded: type[msgspec.Struct],
    read: Callable[[Any], model.ClusterObject | None],
) -> Kind:
    """A kind that is looked up: no service writes to it, and unreadable objects are left out."""
    return Kind(
        resource=resource,
        neutral=neutral,
        decoded=decoded,
        read=read,
        lookup=True,
    )


def read_workload(
    resource: Resource, workload: looked_up.Workload, *, parts: int | None = None
) -> reference_objects.Workload | None:
    """The neutral workload; None when its controller creates no pods, or none again.

    Args:
        resource: The object's resource.
        workload: The object.
        parts: The number of its parts; None: its pods' labels number no parts.
    """
    metadata, status = workload.metadata, workload.status
    ended = any(
        condition.type in _ENDED and condition.status == "True" for condition in status.conditions
    )
    if metadata.deletion_timestamp is not None or workload.spec.suspend or ended:
        return None
    if status.state.phase not in _LIVING_PHASES:
        return None
    owner = metadata.controller
    kind_name, name = (resource.kind, metadata.name) if owner is None else (owner.kind, owner.name)
    return reference_objects.Workload(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=workload_name(resource, metadata.name),
        resource_version=metadata.version,
        title=f"{kind_name.lower()}/{name}"[:NAME_CHARACTERS_MAX],
        owner_uid=owner.uid if owner is not None else "",
        parts=parts,
    )


def workload_kind(
    resource: Resource,
    read: Callable[[looked_up.Workload], reference_objects.Workload | None] | None = None,
) -> Kind:
    """The kind of a workload's resource, read by `read_workload` unless `read` is given."""
    return kind(resource, "workload", looked_up.Workload, read or partial(read_workload, resource))


def readable_amounts(resources: kube.ResourceList) -> model.Resources:
    """The amounts that can be read: nothing is placed on capacity that cannot be counted. The API
    server has checked the quantities of all resources but custom ones.
    """
    good: list[tuple[str, int]] = []
    for name, text in sorted(resources.items()):
        try:
            good.append((name, amount(name, text)))
        except QuantityError:
            continue
    return tuple(good)


def _member(member: HyperNodeMember, selector: MemberSelector) -> reference_objects.HyperNodeMember:
    return reference_objects.HyperNodeMember(
        kind="HyperNode" if member.type == "HyperNode" else "Node",
        exact=selector.exact_match.name if selector.exact_match is not None else "",
        regex=selector.regex_match.pattern if selector.regex_match is not None else "",
        labels=selectors.selector(selector.label_match),
    )


KINDS: Final = (
    kind(NAMESPACES, "namespace", kube.KubeObject, read_namespace),
    kind(RESOURCE_QUOTAS, "resourcequota", looked_up.ResourceQuota, read_quota),
    kind(DISRUPTION_BUDGETS, "budget", kube.DisruptionBudget, read_budget),
    kind(TOPOLOGIES_KAI, "topology", looked_up.Topology, read_topology),
    kind(HYPERNODES, "hypernode", HyperNode, read_hypernode),
)
