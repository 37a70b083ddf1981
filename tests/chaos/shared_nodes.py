"""The judge of a cluster in which two schedulers bind pods to the same nodes.

Nothing in Kubernetes prevents that both bind to the same free capacity: neither sees the other's
decision before the binding, and the API server does not check capacity. Such a *conflict* ends when
the node's kubelet refuses the later pod. What must never be: a node that the pods of one scheduler
over-fill alone, a node on which more runs than it offers, a conflict that lasts, a gang of Tutti
that stays below its minimum for longer than its deadline and its release take.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from typing_extensions import override

from tests.chaos.audit import Judge, Span
from tests.chaos.forms import GANG, KUBE_SCHEDULER, KUBERNETES_GROUPS, TUTTI, owner_uid
from tests.controlplane.client import Object, RawClient
from tests.controlplane.requests import Requests, pod_requests
from tests.integration.auditor import ENDED, GROUPS, GangKey, gang_of

SCHEDULERS: Final = (TUTTI, KUBE_SCHEDULER)
#: For a kubelet's refusal to be seen on a busy machine; it takes milliseconds on an idle one.
CONFLICT_ALLOWED_S: Final = 10.0
_GROUPS_PATH: Final = f"/apis/{KUBERNETES_GROUPS}/podgroups"
#: The condition of that version.
_SCHEDULED: Final = "PodGroupScheduled"
#: What the auditor's key of a pod without a named group adds to its owner's UID.
_KEY_PREFIXES: Final = ("", "podgroup-")


class SharedNodesJudge(Judge):
    """A judge that counts by scheduler."""

    def __init__(self, client: RawClient, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__(client, clock_s, groups=(*GROUPS, _GROUPS_PATH))
        #: By scheduler: what its own pods alone over-filled.
        self.overcommitted_alone: dict[str, list[str]] = {one: [] for one in SCHEDULERS}
        #: What ran on a node that did not offer as much.
        self.overcommitted_running: list[str] = []
        #: By node: when pods that it could not hold together were bound to it.
        self.conflicts: dict[str, Span] = {}
        #: By scheduler: the gang of each pod that a kubelet refused.
        self.refused_gangs: dict[str, list[str]] = {one: [] for one in SCHEDULERS}
        #: Of PodGroups of Kubernetes, by name: the clients that ever wrote the status.
        self.status_writers: dict[str, set[str]] = {}
        #: Names of those that were reported as scheduled.
        self.reported_scheduled: set[str] = set()
        #: Of these, the ones whose condition left True afterwards, which the API forbids.
        self.success_lost: list[str] = []
        self._scheduler_of: dict[GangKey, str] = {}

    @override
    def see_node(self, kind: str, node: Object) -> None:
        super().see_node(kind, node)
        self._weigh_shared(node["metadata"]["name"])

    @override
    def see_pod(self, kind: str, pod: Object) -> None:
        refused = len(self.refused)
        super().see_pod(kind, pod)
        scheduler = pod["spec"]["schedulerName"]
        if len(self.refused) > refused:
            self.refused_gangs[scheduler].append(pod["metadata"]["labels"].get(GANG, ""))
        self._weigh_shared(pod["spec"].get("nodeName", ""))

    @override
    def see_group(self, kind: str, group: Object) -> None:
        """An event of any API's group; those of Kubernetes stand for the owner of their pods."""
        policy = group["spec"].get("schedulingPolicy")
        if policy is None:
            super().see_group(kind, group)
            return
        metadata = group["metadata"]
        self._note_writers(metadata["name"], group)
        for prefix in _KEY_PREFIXES:
            named = {
                "uid": f"{prefix}{metadata['uid']}",
                "namespace": metadata["namespace"],
                "name": f"{prefix}{owner_uid(metadata['name'])}",
            }
            spec = {"minMember": policy["gang"]["minCount"]}
            super().see_group(kind, {"metadata": named, "spec": spec})

    def conflict_count(self) -> int:
        """How often pods of both schedulers over-filled a node together."""
        return sum(span.times for span in self.conflicts.values())

    def longest_conflict_s(self) -> float:
        """The longest time that one lasted."""
        return _longest_s(self.conflicts.values(), self._clock())

    def below_minimum_s(self, scheduler: str) -> tuple[float, float]:
        """Of the scheduler's gangs that were bound in part, before or after they first had their
        minimum: the longest time of one at a stretch, and all seconds beyond what is allowed.
        """
        now_s = self._clock()
        spans = [
            span
            for table in (self.partial_spans, self.degraded_spans)
            for key, span in table.items()
            if self._scheduler_of.get(key) == scheduler
        ]
        return _longest_s(spans, now_s), sum(span.beyond_s(now_s) for span in spans)

    @override
    def judge_pod(self, kind: str, pod: Object) -> None:
        super().judge_pod(kind, pod)
        key = gang_of(pod)
        if key is not None:
            self._scheduler_of[key] = pod["spec"]["schedulerName"]

    def _note_writers(self, name: str, group: Object) -> None:
        writers = self.status_writers.setdefault(name, set())
        for field in group["metadata"].get("managedFields", ()):
            if field.get("subresource") == "status":
                writers.add(field["manager"])
        conditions = group.get("status", {}).get("conditions", ())
        if any((one["type"], one["status"]) == (_SCHEDULED, "True") for one in conditions):
            self.reported_scheduled.add(name)
        elif name in self.reported_scheduled and name not in self.success_lost:
            self.success_lost.append(name)

    def _weigh_shared(self, node: str) -> None:
        offered = self._nodes.get(node)
        if offered is None:
            return
        bound = [self._pods[uid] for uid in self._loads.get(node, ()) if uid in self._pods]
        living = [pod for pod in bound if pod["status"].get("phase") not in ENDED]
        for scheduler, found in self.overcommitted_alone.items():
            own = [pod for pod in living if pod["spec"]["schedulerName"] == scheduler]
            found += [f"{node}: {excess}" for excess in _excess(own, offered)]
        running = [pod for pod in living if pod["status"].get("phase") == "Running"]
        self.overcommitted_running += [f"{node}: {one}" for one in _excess(running, offered)]
        conflict = bool(_excess(living, offered))
        if conflict or node in self.conflicts:
            self.conflicts.setdefault(node, Span()).mark(self._clock(), on=conflict)


def _excess(pods: Iterable[Object], offered: Requests) -> list[str]:
    """Resources of which these pods request more than a node offers."""
    used: Requests = {}
    for pod in pods:
        for resource, amount in pod_requests(pod).items():
            used[resource] = used.get(resource, 0) + amount
    return [
        f"{amount} {resource} of {offered.get(resource, 0)}"
        for resource, amount in used.items()
        if amount > offered.get(resource, 0)
    ]


def _longest_s(spans: Iterable[Span], now_s: float) -> float:
    return max((span.longest_s(now_s) for span in spans), default=0.0)
