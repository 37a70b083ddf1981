"""What a pod gets from the resource group that it belongs to.

As in Volcano: the group's scheduler replaces the pod's; its tolerations are added to the pod's, its
labels to the node selector (the group's win); its affinity is for a pod without one.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_list, as_object
from services.admission_webhook.core.resource_groups import ResourceGroup
from services.admission_webhook.core.review import PatchOperation, added
from shared.dialects.protocol import JsonObject

#: What stands for a member that a pod's head lacks.
ABSENT: Final = msgspec.Raw(b"null")


def group_of(case: Case) -> ResourceGroup | None:
    """The first group that the pod belongs to."""
    metadata = as_object(case.candidate.get("metadata")) or {}
    notes = as_object(metadata.get("annotations")) or {}
    groups = case.known.resource_groups
    return next((one for one in groups if one.holds(case.namespace, notes)), None)


def mutate(case: Case) -> list[PatchOperation]:
    """What its group says of it."""
    group = group_of(case)
    spec = as_object(case.candidate.get("spec"))
    return [] if group is None or spec is None else list(_of_group(group, spec))


def _of_group(group: ResourceGroup, spec: JsonObject) -> Iterator[PatchOperation]:
    if group.scheduler_name:
        yield added(group.scheduler_name, "spec", "schedulerName")
    if group.tolerations:
        both = [*as_list(read_part(spec, "tolerations")), *group.tolerations]
        yield added(both, "spec", "tolerations")
    if group.labels:
        selector = {**(as_object(read_part(spec, "nodeSelector")) or {}), **group.labels}
        yield added(selector, "spec", "nodeSelector")
    affinity = group.node_affinity()
    if affinity and not read_part(spec, "affinity"):
        yield added(affinity, "spec", "affinity")


def read_part(spec: JsonObject, key: str) -> object:
    """A member of a pod, or of its head, which holds the member as it came."""
    found = spec.get(key)
    return msgspec.json.decode(found) if isinstance(found, msgspec.Raw) else found
