"""A pod as the planner keeps it, and the state it is in as a member of its gang.

States follow from the pod, its node and what is in flight (`state_of`); nothing else sets them.
WAITING: can be placed. ASSUMED: decided, CLUSTER has not shown it bound yet. PLACED: bound to an
existing node. RUNNING, SUCCEEDED, FAILED: its phase; a kubelet's refusal is a FAILED pod. LOST:
bound to a node that does not exist. LEAVING: being deleted. GATED: has scheduling gates.
UNSUPPORTED: has constraints nobody here can judge. FOREIGN: another scheduler's, not bound.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from services.gang_planner.core.tables.shapes import ShapeEntry
from shared.model.objects import Pod

if TYPE_CHECKING:
    from services.gang_planner.core.tables.gangs import Gang
    from services.gang_planner.core.tables.room import Room

WAITING: Final = 0
ASSUMED: Final = 1
PLACED: Final = 2
RUNNING: Final = 3
SUCCEEDED: Final = 4
FAILED: Final = 5
LOST: Final = 6
LEAVING: Final = 7
GATED: Final = 8
UNSUPPORTED: Final = 9
FOREIGN: Final = 10
STATES: Final = 11

STATE_NAMES: Final = (
    "waiting",
    "assumed",
    "placed",
    "running",
    "succeeded",
    "failed",
    "lost",
    "leaving",
    "gated",
    "unsupported",
    "foreign",
)
TERMINAL: Final = frozenset({"Succeeded", "Failed"})


class Member:
    """One pod: its shape, where it is accounted, what is in flight for it."""

    __slots__ = ("charged", "gang", "pod", "room", "shape", "slot", "state")

    def __init__(self, pod: Pod, shape: ShapeEntry) -> None:
        self.pod = pod
        self.shape = shape
        self.gang: Gang | None = None
        self.state = FOREIGN
        #: Slot of the node on which the pod itself is accounted; -1: on none.
        self.slot = -1
        #: Room assumed for it by the newest decision; its end is an event.
        self.room: Room | None = None
        #: Its gang and queue are charged for it.
        self.charged = False


class Seats(msgspec.Struct, frozen=True, eq=False):
    """Members, and for each the slot of the node on which it is to be."""

    members: Sequence[Member]
    slots: Sequence[int]

    def pairs(self) -> Iterator[tuple[Member, int]]:
        """Each member with its slot."""
        return zip(self.members, self.slots, strict=True)


def state_of(member: Member, *, node_exists: bool) -> int:
    """The state that follows from the pod as it is; `node_exists` says so of the node it is bound
    to.
    """
    pod = member.pod
    if pod.phase in TERMINAL:
        return SUCCEEDED if pod.phase == "Succeeded" else FAILED
    if pod.deleting:
        return LEAVING
    if pod.node:
        if not node_exists:
            return LOST
        return RUNNING if pod.phase == "Running" else PLACED
    if member.room is not None:
        return ASSUMED
    return _unplaced_state(pod, member.shape)


def _unplaced_state(pod: Pod, shape: ShapeEntry) -> int:
    if not pod.ours:
        return FOREIGN
    # Said before its gates: the pod is not placed either when they are lifted.
    if shape.shape.unsupported:
        return UNSUPPORTED
    if pod.gates:
        return GATED
    return WAITING


def task_priority(pod: Pod) -> int:
    """Which of a gang's members count more when not all fit: higher first."""
    return pod.priority if pod.task_priority is None else pod.task_priority


def placing_order(member: Member) -> tuple[int, int, int, str]:
    """Which of a gang's equal members is placed first: priority, rank in its role, age, name."""
    pod = member.pod
    # Asked for every member that is placed: `task_priority` written out.
    priority = pod.priority if pod.task_priority is None else pod.task_priority
    return -priority, pod.index, pod.created_ms, pod.name
