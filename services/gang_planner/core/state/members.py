"""The state of a member, the placing order of members, and assignments of members to nodes."""

from collections.abc import Iterator, Sequence

import msgspec

from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.member_states import (
    ASSUMED,
    FAILED,
    FOREIGN,
    GATED,
    LEAVING,
    LOST,
    PLACED,
    RUNNING,
    SUCCEEDED,
    TERMINAL,
    UNSUPPORTED,
    WAITING,
)
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.objects import Pod


class Assignments(msgspec.Struct, frozen=True, eq=False):
    """Members, and for each the slot of its assigned node, at the same index."""

    members: Sequence[Member]
    slots: Sequence[int]

    def pairs(self) -> Iterator[tuple[Member, int]]:
        return zip(self.members, self.slots, strict=True)


def state_of(member: Member, nodes: NodeTable) -> int:
    """The state that follows from the member's pod, its node and its reservation."""
    pod = member.pod
    if pod.phase in TERMINAL:
        return SUCCEEDED if pod.phase == "Succeeded" else FAILED
    if pod.deleting:
        return LEAVING
    if pod.node:
        if member.slot is None or not nodes.exists[member.slot]:
            return LOST
        return RUNNING if pod.phase == "Running" else PLACED
    if member.reservation is not None:
        return ASSUMED
    return _unplaced_state(pod, member.shape)


def _unplaced_state(pod: Pod, shape: ShapeEntry) -> int:
    if not pod.ours:
        return FOREIGN
    # Checked before the gates: without gates, the pod still could not be placed.
    if shape.shape.unsupported:
        return UNSUPPORTED
    if pod.gates:
        return GATED
    return WAITING


def placing_order(member: Member) -> tuple[int, int, int, str]:
    """The sort key of a gang's members for placement: priority, index in the role, age, name."""
    pod = member.pod
    # Called for every placed member, so `task_priority` is written out.
    priority = pod.priority if pod.task_priority is None else pod.task_priority
    return -priority, pod.index, pod.created_ms, pod.name
