"""The judge: what the API server's watches show of gangs, in seconds of what must not be.

A *starting* gang that is bound below its quorum is partial. That is allowed for as long as its
repair may last and its release takes, and not a second longer; the seconds beyond are what a run
is judged by. A gang that had its quorum once and is below it again is degraded, which
no scheduler can prevent: counted apart. Gangs whose pods no controller would recreate are counted
apart, too: Tutti proves them before it binds them, and may not delete those bound nevertheless.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from typing_extensions import override

from tests.controlplane.client import Object, RawClient
from tests.controlplane.requests import Requests, pod_requests
from tests.integration.auditor import ENDED, GROUPS, Auditor, GangKey, GangRecord, gang_of

#: Set on every gang of a run: from the first binding until what is bound is released.
REPAIR_DEADLINE_S: Final = 10.0
#: For the release itself: a planner and a binder that were just killed, an API server that is just
#: starting, and the deletions.
RELEASE_S: Final = 20.0
PARTIAL_ALLOWED_S: Final = REPAIR_DEADLINE_S + RELEASE_S


class Span:
    """Seconds during which something was so."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._past_s = 0.0
        self._beyond_s = 0.0
        self._longest_s = 0.0
        self.times = 0

    def mark(self, now_s: float, *, on: bool) -> None:
        """It is so from now on, or no longer."""
        if on and self._since_s is None:
            self._since_s = now_s
            self.times += 1
        elif not on and self._since_s is not None:
            length_s = now_s - self._since_s
            self._past_s += length_s
            self._longest_s = max(self._longest_s, length_s)
            self._beyond_s += max(0.0, length_s - PARTIAL_ALLOWED_S)
            self._since_s = None

    def total_s(self, now_s: float) -> float:
        """All seconds until now."""
        return self._past_s + (0.0 if self._since_s is None else now_s - self._since_s)

    def longest_s(self, now_s: float) -> float:
        """The longest time at a stretch."""
        return max(self._longest_s, 0.0 if self._since_s is None else now_s - self._since_s)

    def beyond_s(self, now_s: float) -> float:
        """The seconds beyond what is allowed at a time."""
        open_s = 0.0 if self._since_s is None else now_s - self._since_s - PARTIAL_ALLOWED_S
        return self._beyond_s + max(0.0, open_s)


class Judge(Auditor):
    """An auditor for a cluster whose nodes go and which a second scheduler uses."""

    def __init__(
        self,
        client: RawClient,
        clock_s: Callable[[], float] = time.monotonic,
        *,
        groups: Sequence[str] = GROUPS,
    ) -> None:
        super().__init__(client, clock_s, groups=groups)
        self._clock = clock_s
        self.partial_spans: dict[GangKey, Span] = {}
        self.degraded_spans: dict[GangKey, Span] = {}
        #: Gangs of which a member has no controller.
        self.bare: set[GangKey] = set()
        #: Schedulers whose pods are ours to answer for.
        self.ours: frozenset[str] = frozenset({"tutti"})
        #: What our own pods alone over-fill.
        self.overcommitted_by_us: list[str] = []
        self._last_nodes: dict[str, Requests] = {}

    @override
    def see_node(self, kind: str, node: Object) -> None:
        super().see_node(kind, node)
        name = node["metadata"]["name"]
        if kind == "DELETED":
            for pod in [one for one in self._pods.values() if one["spec"].get("nodeName") == name]:
                self.judge_pod("MODIFIED", pod)

    @override
    def see_pod(self, kind: str, pod: Object) -> None:
        super().see_pod(kind, pod)
        self.judge_pod(kind, pod)
        self._weigh_ours(pod["spec"].get("nodeName", ""))

    @override
    def see_group(self, kind: str, group: Object) -> None:
        super().see_group(kind, group)
        metadata = group["metadata"]
        gang = self.gangs.get((metadata["namespace"], metadata["name"]))
        if gang is not None:
            self._span(gang)

    def judge_pod(self, kind: str, pod: Object) -> None:
        key = gang_of(pod)
        if key is None:
            return
        gang = self.gangs[key]
        if not pod["metadata"].get("ownerReferences"):
            self.bare.add(key)
        if kind != "DELETED" and pod["spec"].get("nodeName", "") not in self._nodes:
            gang.placed.discard(pod["metadata"]["uid"])  # a node that is gone runs nothing
        self._span(gang)

    def _span(self, gang: GangRecord) -> None:
        now_s = self._clock()
        quorum = self.quorum(gang.key)
        partly = 0 < len(gang.placed) < quorum
        started = gang.quorum_s is not None
        spans = (self.partial_spans, not started), (self.degraded_spans, started)
        for table, applies in spans:
            if partly or gang.key in table:
                table.setdefault(gang.key, Span()).mark(now_s, on=partly and applies)

    def _weigh_ours(self, node: str) -> None:
        offered = self._nodes.get(node)
        if offered is None:
            return
        used: Requests = {}
        for uid in self._loads.get(node, ()):
            pod = self._pods[uid]
            if (
                pod["spec"]["schedulerName"] in self.ours
                and pod["status"].get("phase") not in ENDED
            ):
                for resource, amount in pod_requests(pod).items():
                    used[resource] = used.get(resource, 0) + amount
        for resource, amount in used.items():
            if amount > offered.get(resource, 0):
                self.overcommitted_by_us.append(
                    f"{node}: {amount} {resource} of {offered.get(resource, 0)}"
                )

    def partial_s(self, *, bare: bool) -> tuple[float, float]:
        """Partial-gang seconds: all, and those beyond what is allowed."""
        now_s = self._clock()
        spans = [span for key, span in self.partial_spans.items() if (key in self.bare) is bare]
        return (
            sum(span.total_s(now_s) for span in spans),
            sum(span.beyond_s(now_s) for span in spans),
        )

    def longest_partial_gang_s(self) -> float:
        """The longest time that a gang with a controller was partial at a stretch."""
        now_s = self._clock()
        spans = [span for key, span in self.partial_spans.items() if key not in self.bare]
        return max((span.longest_s(now_s) for span in spans), default=0.0)

    def degraded_s(self) -> float:
        """Degraded-gang seconds."""
        return sum(span.total_s(self._clock()) for span in self.degraded_spans.values())
