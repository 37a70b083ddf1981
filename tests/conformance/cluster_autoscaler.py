"""For which pods cluster-autoscaler adds nodes, and which nodes it keeps: recorded facts.

Its program is not run here, because its modules are not served as Go modules. These are the rules
of its sources, as of November 2026, in our own words; the names in brackets are files of
`cluster-autoscaler/` in `kubernetes/autoscaler`:

1. It lists a pod without a node that is not being deleted, and has the condition PodScheduled with
   the status False and the reason Unschedulable (`utils/kubernetes/listers.go`). It does not read
   `schedulerName`, groups or queues.
2. It leaves out pods with a priority below a limit, -10 by default, and takes a listed pod with a
   `nominatedNodeName` to be on that node, if the node exists
   (`core/podlistprocessor/filter_out_expendable.go`, `core/utils/expendable.go`).
3. It leaves out listed pods for which the nodes have free capacity: it packs them one by one, those
   of higher priority first, by kube-scheduler's filters (`filter_out_schedulable.go`). So it counts
   capacity that Tutti keeps for another gang, or that is outside a gang's topology domain.
4. It adds nodes for the pods that are left, if a new node of some group would hold them.
5. It removes no node with a pod that is annotated `safe-to-evict: "false"`
   (`simulator/drainability/rules/notsafetoevict/rule.go`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.controlplane.client import Object
from tests.controlplane.requests import Requests, pod_requests

PRIORITY_MIN: Final = -10
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def is_listed(pod: Object) -> bool:
    """Rule 1."""
    status = pod["status"]
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    if status.get("phase") in _ENDED:
        return False
    return any(
        (one["type"], one["status"], one["reason"]) == ("PodScheduled", "False", "Unschedulable")
        for one in status.get("conditions", ())
    )


def pods_to_help(pods: Iterable[Object], free: Mapping[str, Requests]) -> list[str]:
    """Names of the pods for which it adds nodes (rules 1 to 4).

    Args:
        pods: All pods that wait.
        free: What each node has free, by the node's name. Filters other than that for resources
            pass: the pods of these tests have no selectors or tolerations.
    """
    left = {name: dict(amounts) for name, amounts in free.items()}
    candidates = []
    for pod in filter(is_listed, pods):
        nominated = pod["status"].get("nominatedNodeName")
        if pod["spec"].get("priority", 0) < PRIORITY_MIN:
            continue
        if nominated in left:
            _take(left[nominated], pod_requests(pod))
        else:
            candidates.append(pod)
    candidates.sort(key=lambda pod: -pod["spec"].get("priority", 0))
    return [pod["metadata"]["name"] for pod in candidates if not _placed(pod, left)]


def keeps_node(pods: Sequence[Object]) -> bool:
    """Whether it keeps a node with these pods on it, however little they use (rule 5)."""
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    return any(pod["metadata"].get("annotations", {}).get(key) == "false" for pod in pods)


def _placed(pod: Object, left: dict[str, Requests]) -> bool:
    """Put a pod on the first node that has room for it, if there is one."""
    requests = pod_requests(pod)
    for amounts in left.values():
        if all(amounts.get(name, 0) >= count for name, count in requests.items()):
            _take(amounts, requests)
            return True
    return False


def _take(amounts: Requests, requests: Requests) -> None:
    for name, count in requests.items():
        amounts[name] = amounts.get(name, 0) - count
