"""PodGroup and Queue of kube-batch, the same in both of its API groups.

Their CRDs are installed only on request (`Description.opt_in`): kubectl resolves a plural of
several groups to the first group in alphabetical order, which would be one of these.

As in the old CRDs, unknown fields (minResources among them) are kept.
"""

from typing import Annotated, Final

from shared.kinds.fields import Description, ResourceList, always, rules
from shared.kinds.metadata import KindObject
from shared.kinds.podgroup import PodGroupCondition
from shared.kube.objects import Int32, KubeStruct
from shared.kube.resources import (
    PODGROUPS_INCUBATOR,
    PODGROUPS_SIGS,
    QUEUES_INCUBATOR,
    QUEUES_SIGS,
)


class OldPodGroupSpec(KubeStruct, frozen=True, kw_only=True):
    """The requirements of a group."""

    min_member: Annotated[
        Int32,
        rules(
            "The minimum number of pods that are placed together; 0: pods are placed one by one."
        ),
    ] = 0
    queue: Annotated[str, rules("The queue whose share the group uses.")] = ""
    priority_class_name: Annotated[
        str, rules("The priority class that orders groups and decides which of them may preempt.")
    ] = ""


class OldPodGroupStatus(KubeStruct, frozen=True, kw_only=True):
    """The status that the scheduler reports."""

    phase: Annotated[str, rules("Pending, Running or Unknown.")] = ""
    conditions: tuple[Annotated[PodGroupCondition, rules(preserve=True)], ...] = ()
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0


class OldPodGroup(KindObject, frozen=True, kw_only=True):
    """PodGroup is a set of pods that are bound together or not at all."""

    kind: str = always("PodGroup")
    spec: Annotated[OldPodGroupSpec, rules(preserve=True)] = OldPodGroupSpec()
    status: Annotated[OldPodGroupStatus, rules(preserve=True)] = OldPodGroupStatus()


class OldQueueSpec(KubeStruct, frozen=True, kw_only=True):
    """The share of a queue and its limits."""

    weight: Annotated[Int32, rules("The weight of the queue's share relative to other queues.")] = 0
    capability: Annotated[ResourceList | None, rules("The maximum amount of each resource.")] = None


class OldQueueStatus(KubeStruct, frozen=True, kw_only=True):
    """A queue's groups by phase."""

    unknown: Int32 = 0
    pending: Int32 = 0
    running: Int32 = 0


class OldQueue(KindObject, frozen=True, kw_only=True):
    """Queue has a share of the cluster, which the groups that are submitted to it use."""

    kind: str = always("Queue")
    spec: Annotated[OldQueueSpec, rules(preserve=True)] = OldQueueSpec()
    status: Annotated[OldQueueStatus, rules(preserve=True)] = OldQueueStatus()


#: The API server requires this annotation on a CRD of a *.k8s.io group without an API review.
_UNAPPROVED: Final = {"api-approved.kubernetes.io": "unapproved, the API of the retired kube-batch"}

KUBE_BATCH: Final = tuple(
    Description(struct=struct, resource=resource, opt_in=True, annotations=annotations)
    for struct, resource, annotations in (
        (OldPodGroup, PODGROUPS_INCUBATOR, _UNAPPROVED),
        (OldQueue, QUEUES_INCUBATOR, _UNAPPROVED),
        (OldPodGroup, PODGROUPS_SIGS, {}),
        (OldQueue, QUEUES_SIGS, {}),
    )
)
