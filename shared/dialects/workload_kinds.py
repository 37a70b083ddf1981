"""Reads workloads at the top of their pods' owners: whether their controllers create pods again.

Owner references lead from a pod only to its next owner, and objects between it and the workload (a
StatefulSet, the leader's pod, a child Job) are created again with the pods. `Dialect.workload` has
the labels of a pod that name the workload itself.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from shared.dialects.pod_vocabulary import NAME_CHARACTERS_MAX, workload_name
from shared.dialects.protocol import Kind
from shared.dialects.reference_objects import kind
from shared.kube import reference_objects as kube
from shared.kube.resources import Resource
from shared.model.reference_objects import Workload

#: Conditions after which no pod is created again, or not before a user wants it.
_ENDED: Final = frozenset(
    {"Complete", "Completed", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"}
)
#: Phases of a Volcano Job in which its pods are created, and created again.
_LIVING_PHASES: Final = frozenset({"", "Pending", "Running", "Restarting"})


def read_workload(
    resource: Resource, found: kube.Workload, *, parts: int | None = None
) -> Workload | None:
    """The neutral workload; None when its controller creates no pods, or none again.

    Args:
        resource: The object's resource.
        found: The object.
        parts: The number of its parts; None: its pods' labels number no parts.
    """
    metadata, status = found.metadata, found.status
    ended = any(one.type in _ENDED and one.status == "True" for one in status.conditions)
    if metadata.deletion_timestamp is not None or found.spec.suspend or ended:
        return None
    if status.state.phase not in _LIVING_PHASES:
        return None
    owner = metadata.controller
    kind_name, name = (resource.kind, metadata.name) if owner is None else (owner.kind, owner.name)
    return Workload(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=workload_name(resource, metadata.name),
        resource_version=metadata.version,
        title=f"{kind_name.lower()}/{name}"[:NAME_CHARACTERS_MAX],
        owner_uid=owner.uid if owner is not None else "",
        parts=parts,
    )


def workload_kind(
    resource: Resource, read: Callable[[kube.Workload], Workload | None] | None = None
) -> Kind:
    """The kind of a workload's resource, read by `read_workload` unless `read` is given."""
    return kind(resource, "workload", kube.Workload, read or partial(read_workload, resource))
