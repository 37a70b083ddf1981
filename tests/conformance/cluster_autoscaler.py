"""For which pods cluster-autoscaler adds nodes, which nodes it keeps, and how it answers
ProvisioningRequests: recorded facts.

Its program is not run here, because its modules are not served as Go modules. These are the rules
of its documentation and sources, as of November 2026, in our own words:

* FAQ: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md (on scale-up,
  pod priority, taints, and pods that prevent the removal of a node)
* Proposal: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/proposals/provisioning-request.md
* Sources: https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler (the names in
  brackets are files there)

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
6. It leaves out listed pods with the annotation that names the ProvisioningRequest which they
   consume, or with the older one (`processors/provreq/pods_filter.go`).
7. It takes up one ProvisioningRequest after the other, and sets no condition on one of a class that
   it does not know (`processors/provreq/injector.go`).
8. It sets Failed (reason FailedToCreatePods) on a request that it takes up while one of its
   PodTemplates does not exist (the same, and `provisioningrequest/provreqwrapper/wrapper.go`).
9. It takes up no request again that is Failed or Provisioned. While Provisioned is False it tries
   again (`processors/provreq/injector.go`).
10. It books the capacity of a Provisioned request for ten minutes: in each loop it adds the pods of
   its templates to the nodes, beside the pods that are bound, whether these consume it or not. A
   booking ends when the request is deleted or its ten minutes are over, which sets BookingExpired
   (`processors/provreq/processor.go`, and seen with release 1.36.1).
11. It treats nodes with a taint of these prefixes as not ready, and expects them to become ready:
   `startup-taint.cluster-autoscaler.kubernetes.io/`, and the older `ignore-taint.…`. Nodes with
   `status-taint.…` are for no pods for the time being (FAQ).
12. `check-capacity` requests are Provisioned if their pods fit beside pods and bookings, and are
   tried again otherwise. For a `best-effort-atomic-scale-up` request it adds the nodes for the pods
   that do not fit, if it can add all of them (`provisioningrequest/`).
13. With `--bypassed-scheduler-names`, it also lists pods of these schedulers that have no condition
   PodScheduled yet, or one that is False without a reason. It leaves out pods that are younger than
   `--new-pod-scale-up-delay` (`utils/kubernetes/listers.go`, `core/static_autoscaler.go`).
14. It removes a node without pods that no listed pod would use, after
   `--scale-down-unneeded-time`, ten minutes by default (FAQ).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from tests.controlplane.client import Object
from tests.controlplane.requests import Requests, pod_requests

PRIORITY_MIN: Final = -10
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_CONSUMES: Final = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
CLASSES: Final = ("best-effort-atomic-scale-up.autoscaling.x-k8s.io", CHECK_CAPACITY)
#: Rule 10.
BOOKED_MS: Final = 600_000
#: Rule 11: no pod may run on a node with a taint that begins so.
TAINT_PREFIXES: Final = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
)


def is_listed(pod: Object, bypassed: Collection[str] = ()) -> bool:
    """Rule 1, and with the flag `--bypassed-scheduler-names` rule 13."""
    status = pod.get("status", {})
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    if status.get("phase") in _ENDED:
        return False
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    scheduled = conditions.get("PodScheduled", {"status": "False"})
    if scheduled["status"] != "False":
        return False
    reason = scheduled.get("reason", "")
    return reason == "Unschedulable" or (not reason and pod["spec"]["schedulerName"] in bypassed)


def pods_to_help(pods: Iterable[Object], free: Mapping[str, Requests]) -> list[str]:
    """Names of the pods for which it adds nodes (rules 1 to 4, and 6).

    Args:
        pods: All pods that wait.
        free: What each node has free, by the node's name. Filters other than that for resources
            pass: the pods of these tests have no selectors or tolerations.
    """
    left = {name: dict(amounts) for name, amounts in free.items()}
    candidates = []
    for pod in filter(is_listed, pods):
        nominated = pod["status"].get("nominatedNodeName")
        if pod["spec"].get("priority", 0) < PRIORITY_MIN or consumed_by(pod):
            continue
        if nominated in left:
            _take(left[nominated], pod_requests(pod))
        else:
            candidates.append(pod)
    candidates.sort(key=lambda pod: -pod["spec"].get("priority", 0))
    return [pod["metadata"]["name"] for pod in candidates if not _placed(pod, left)]


def consumed_by(pod: Object) -> str:
    """Name of the ProvisioningRequest that a pod consumes; "": none (rule 6)."""
    notes = pod["metadata"].get("annotations", {})
    return next((notes[key] for key in _CONSUMES if key in notes), "")


def take_up(request: Object, templates: Collection[str]) -> tuple[str, str] | None:
    """Type and reason of the condition that it sets to True when it takes up a request without
    conditions (rules 7 and 8); None: it leaves it alone.

    Args:
        request: The request.
        templates: Names of the PodTemplates that exist in its namespace.
    """
    if request["spec"]["provisioningClassName"] not in CLASSES:
        return None
    wanted = [one["podTemplateRef"]["name"] for one in request["spec"]["podSets"]]
    if all(name in templates for name in wanted):
        return "Accepted", "Accepted"
    return "Failed", "FailedToCreatePods"


def keeps_node(pods: Sequence[Object]) -> bool:
    """Whether it keeps a node with these pods on it, however little they use (rule 5)."""
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    return any(pod["metadata"].get("annotations", {}).get(key) == "false" for pod in pods)


class Bookings:
    """The loops of an autoscaler whose nodes have one GPU each, for pods of one GPU (rules 9, 10
    and 12).
    """

    def __init__(self, nodes: int, nodes_max: int) -> None:
        self.nodes = nodes
        #: Nodes that it has added.
        self.bought = 0
        self._nodes_max = nodes_max
        #: When each request was Provisioned.
        self._booked_ms: dict[str, int] = {}

    def loop(self, requests: Mapping[str, Object], bound: int, now_ms: int) -> dict[str, str]:
        """The conditions that it sets to True, by the request's name.

        Args:
            requests: All requests that exist, with their spec, by name.
            bound: The number of pods that are bound.
            now_ms: The time.
        """
        found: dict[str, str] = {}
        free = self.nodes - bound
        for name, since_ms in self._booked_ms.items():
            if name in requests and now_ms < since_ms + BOOKED_MS:
                free -= _count(requests[name])
            elif name in requests:
                found[name] = "BookingExpired"
        for name, request in requests.items():
            if name in self._booked_ms:
                continue
            missing = max(_count(request) - free, 0)
            adds = request["spec"]["provisioningClassName"] != CHECK_CAPACITY
            if missing and not (adds and self.nodes + missing <= self._nodes_max):
                continue
            self.nodes += missing
            self.bought += missing
            free += missing - _count(request)
            self._booked_ms[name] = now_ms
            found[name] = "Provisioned"
        return found


def _count(request: Object) -> int:
    return sum(int(one["count"]) for one in request["spec"]["podSets"])


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
