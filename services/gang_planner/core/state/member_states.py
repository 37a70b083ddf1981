"""The states of a pod as a member of its gang.

`members.state_of` derives the state from the pod, its node and its reservation. WAITING: can be
placed. ASSUMED: decided, not bound in CLUSTER yet. PLACED: bound to an existing node. RUNNING,
SUCCEEDED, FAILED: its phase; a pod that the kubelet refused is FAILED. LOST: bound to a node that
does not exist. LEAVING: being deleted. GATED: has scheduling gates. UNSUPPORTED: has constraints
that no filter evaluates. FOREIGN: another scheduler's, not bound.
"""

from typing import Final

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
TERMINAL: Final = frozenset({"Succeeded", "Failed"})


def task_priority(pod: Pod) -> int:
    """The priority of a member within its gang: if not all members fit, the highest are placed."""
    return pod.priority if pod.task_priority is None else pod.task_priority
