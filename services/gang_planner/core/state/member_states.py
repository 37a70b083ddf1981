"""The states of a pod as a member of its gang.

States follow from the pod, its node and what is in flight (`members.state_of`); nothing else sets
them. WAITING: can be placed. ASSUMED: decided, CLUSTER has not shown it bound yet. PLACED: bound to
an existing node. RUNNING, SUCCEEDED, FAILED: its phase; a kubelet's refusal is a FAILED pod. LOST:
bound to a node that does not exist. LEAVING: being deleted. GATED: has scheduling gates.
UNSUPPORTED: has constraints that no filter judges. FOREIGN: another scheduler's, not bound.
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


def task_priority(pod: Pod) -> int:
    """Which of a gang's members count more when not all fit: higher first."""
    return pod.priority if pod.task_priority is None else pod.task_priority
