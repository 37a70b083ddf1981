"""The states of a pod as a member of its gang, and what a gang counts of its pods beside these.

`members.state_of` derives the state from the pod, its node and its reservation. WAITING: can be
placed. ASSUMED: decided, not bound in CLUSTER yet. PLACED: bound to an existing node. RUNNING,
SUCCEEDED, FAILED: its phase; a pod that the kubelet refused is FAILED. LOST: bound to a node that
does not exist. LEAVING: being deleted. GATED: has scheduling gates. UNSUPPORTED: has constraints
that no filter evaluates. FOREIGN: another scheduler's, not bound.
"""

from typing import Final

import msgspec

from shared.dialects.discovery import preferred_dialects
from shared.model.objects import Pod

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
SCHEDULERS_WITH_PREFERENCE: Final = frozenset(preferred_dialects())
TERMINAL: Final = frozenset({"Succeeded", "Failed"})


def task_priority(pod: Pod) -> int:
    """The priority of a member within its gang: if not all members fit, the highest are placed."""
    return pod.priority if pod.task_priority is None else pod.task_priority


class PodTraits(msgspec.Struct, eq=False):
    """How many pods of a gang have a property, and whether their task priorities differ."""

    ours: int = 0
    #: By Volcano's rule for bare pods, which do not name the group themselves.
    implied: int = 0
    self_declared: int = 0
    #: Pods of schedulers that prefer their own dialects (`SCHEDULERS_WITH_PREFERENCE`).
    preferring: int = 0
    #: The kubelet reports why they do not run.
    stuck: int = 0
    #: They state a run limit.
    limited: int = 0
    #: The task priority of the first pod, and whether pods with other ones have joined.
    rank: int | None = None
    ranked: bool = False

    def add(self, pod: Pod) -> None:
        """Count a pod that has joined the gang."""
        self.ours += pod.ours
        # Each rare; an addition for every pod would take longer.
        if pod.group_implied:
            self.implied += 1
        if pod.group_self_declared:
            self.self_declared += 1
        self.preferring += pod.scheduler_name in SCHEDULERS_WITH_PREFERENCE
        if pod.waiting:
            self.stuck += 1
        if pod.run_limit_s:
            self.limited += 1
        self.rank_pod(pod)

    def remove(self, pod: Pod, *, is_last: bool) -> None:
        """Count a pod no longer, the last one of its gang or not."""
        self.ours -= pod.ours
        self.implied -= pod.group_implied
        self.self_declared -= pod.group_self_declared
        self.preferring -= pod.scheduler_name in SCHEDULERS_WITH_PREFERENCE
        self.stuck -= bool(pod.waiting)
        self.limited -= bool(pod.run_limit_s)
        if is_last:
            self.rank, self.ranked = None, False

    def rank_pod(self, pod: Pod) -> None:
        """Compare the task priority of a pod with those of the other pods."""
        rank = task_priority(pod)
        if self.rank is None:
            self.rank = rank
        elif self.rank != rank:
            self.ranked = True
