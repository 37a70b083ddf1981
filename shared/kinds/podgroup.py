"""PodGroup of scheduling.volcano.sh/v1beta1: pods that are bound together or not at all.

It has no status subresource: spec and status are written together, and a group may be created with
a status.
"""

from datetime import datetime
from typing import Annotated, Final

import msgspec

from shared.kinds.fields import (
    SUBDOMAIN_PATTERN,
    Column,
    Count,
    Description,
    NetworkTopology,
    ResourceList,
    Selector,
    always,
    rules,
)
from shared.kinds.metadata import KindObject
from shared.kube.objects import Int32, KubeStruct
from shared.kube.resources import PODGROUPS_VOLCANO

PHASES: Final = ("Pending", "Running", "Unknown", "Inqueue", "Completed")


class SubGroupPolicy(KubeStruct, frozen=True, kw_only=True):
    """Divides a group into sub-groups, each of which is placed as a whole."""

    name: str = ""
    sub_group_size: Annotated[
        Int32 | None, rules("The number of pods of one part.", minimum=1, default=1)
    ] = None
    min_sub_groups: Annotated[
        Int32 | None,
        rules("The minimum number of parts that are placed together.", minimum=0, default=0),
    ] = None
    label_selector: Annotated[
        Selector | None, rules("Which pods of the group this policy divides.")
    ] = None
    match_label_keys: Annotated[
        tuple[str, ...],
        rules("The label keys; pods with equal values are one part.", list_type="set"),
    ] = ()
    network_topology: NetworkTopology | None = None


class PodGroupSpec(KubeStruct, frozen=True, kw_only=True):
    """The requirements of a group."""

    min_member: Annotated[
        Count,
        rules(
            "The minimum number of pods that are placed together; 0: pods are placed one by one."
        ),
    ] = 0
    min_task_member: Annotated[
        dict[str, Int32],
        rules(
            "The minimum of each task, which pods name by annotation or label volcano.sh/task-spec."
        ),
    ] = msgspec.field(default_factory=dict)
    queue: Annotated[
        str,
        rules(
            "The queue whose share the group uses.",
            pattern=SUBDOMAIN_PATTERN,
            max_length=253,
            default="default",
        ),
    ] = ""
    priority_class_name: Annotated[
        str, rules("The priority class that orders groups and decides which of them may preempt.")
    ] = ""
    min_resources: Annotated[
        ResourceList | None,
        rules("The resources that must be available for admission; without them, it is immediate."),
    ] = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupCondition(KubeStruct, frozen=True, kw_only=True):
    """A condition of a group; there is one of each type."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    # Go clients write null for an instant that was never set.
    last_transition_time: Annotated[datetime | None, rules(nullable=True)] = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(KubeStruct, frozen=True, kw_only=True):
    """The status that the scheduler reports."""

    phase: Annotated[str, rules(enum=list(PHASES))] = ""
    conditions: tuple[PodGroupCondition, ...] = ()
    #: Tutti's own field; Volcano's CRD drops it.
    members: Annotated[Int32, rules("The number of pods in the group.")] = 0
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0


class PodGroup(KindObject, frozen=True, kw_only=True):
    """PodGroup is a set of pods that are bound together or not at all."""

    api_version: str = always("scheduling.volcano.sh/v1beta1")
    kind: str = always("PodGroup")
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


POD_GROUP: Final = Description(
    struct=PodGroup,
    resource=PODGROUPS_VOLCANO,
    short_names=("pg", "podgroup-v1beta1"),
    columns=(
        Column("STATUS", "string", ".status.phase"),
        Column("minMember", "integer", ".spec.minMember"),
        Column("RUNNINGS", "integer", ".status.running"),
        Column("AGE", "date", ".metadata.creationTimestamp"),
        # After Volcano's columns, so that scripts find those in their places.
        Column("QUEUE", "string", ".spec.queue"),
        Column("MEMBERS", "integer", ".status.members"),
        Column("REASON", "string", '.status.conditions[?(@.type=="Unschedulable")].reason'),
    ),
    status_subresource=False,
)
