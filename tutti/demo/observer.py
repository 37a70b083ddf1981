"""Watches pods, nodes and groups at the API server, and records each change of a pod.

It sends no request to Tutti, and reads only what any user can read with kubectl.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from shared.contracts.annotations import VERDICT
from shared.contracts.verdicts import Verdict
from shared.kube import objects as kube
from shared.kube.client import KubeClient
from shared.kube.requests import amounts, effective_requests
from shared.kube.resources import DISRUPTION_BUDGETS, NODES, PODGROUPS_INCUBATOR, PODS, Resource
from tutti.api.fetches import Wanted, follow
from tutti.api.objects import Object, field, name_of
from tutti.demo.claims import Job, LatestPods, PodObservation, of_job

_ROLE: Final = "tf-replica-type"
_decode_verdict: Final = msgspec.json.Decoder(Verdict).decode


class Stuck(Exception):
    """An expected change was not observed in time."""

    def __init__(self, expected: str, timeout_s: float) -> None:
        super().__init__(f"not within {timeout_s:g} s: {expected}")
        self.expected = expected
        self.timeout_s = timeout_s


class Observer:
    """The cluster as its API server shows it, from `watching` on. For one event loop."""

    def __init__(self, client: KubeClient) -> None:
        #: Every change of a pod, in the API server's order; and the last observation of each pod.
        self.record: list[PodObservation] = []
        self.pods: LatestPods = {}
        #: The allocatable amounts of each node, by resource.
        self.nodes: dict[str, dict[str, int]] = {}
        #: Each living pod whole, for the pod-by-pod scheduler.
        self.specs: dict[str, kube.Pod] = {}
        #: The verdict on the group of a job, by the job's UID.
        self.verdicts: dict[str, Verdict] = {}
        #: `minAvailable` of the budget of a job, by the job's UID.
        self.budgets: dict[str, int | str | None] = {}
        self._client = client
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch for the length of the block."""
        takers = {
            PODS: self._take_pod,
            NODES: self._take_node,
            PODGROUPS_INCUBATOR: self._take_group,
            DISRUPTION_BUDGETS: self._take_budget,
        }
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._watch(resource, take), name=f"observe-{resource.plural}")
                for resource, take in takers.items()
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    async def _watch(self, resource: Resource, take: Callable[[Object, bool], None]) -> None:
        async for kind, obj in follow(self._client, Wanted(resource=resource)):
            take(obj, kind == "DELETED")
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    def of(self, job: Job) -> list[PodObservation]:
        """The last observation of each pod of a job, sorted by name."""
        return sorted(of_job(job, self.pods.values()), key=lambda each: each.name)

    def running(self, job: Job) -> int:
        return sum(each.running for each in self.of(job))

    async def until(
        self, probe: Callable[[], bool], expected: str, *, timeout_s: float | None
    ) -> None:
        """Wait until a change makes `probe` true. Raises Stuck after the timeout, if any."""
        try:
            async with asyncio.timeout(timeout_s):
                while not probe():
                    await self._changed.wait()
        except TimeoutError:
            raise Stuck(expected, timeout_s or 0.0) from None

    def _take_pod(self, obj: Object, gone: bool) -> None:
        """Record an observation that differs from the last one of its pod."""
        pod = msgspec.convert(obj, kube.Pod)
        seen = observe_pod(pod, time.monotonic(), gone=gone)
        self.specs[seen.uid] = pod
        if gone:
            del self.specs[seen.uid]
        known = self.pods.get(seen.uid)
        if known is None or msgspec.structs.replace(known, at_s=seen.at_s) != seen:
            self.pods[seen.uid] = seen
            self.record.append(seen)

    def _take_node(self, obj: Object, gone: bool) -> None:
        self.nodes.pop(name_of(obj), None)
        if not gone:
            self.nodes[name_of(obj)] = amounts(field(obj, "status.allocatable", {}), "allocatable")

    def _take_group(self, obj: Object, gone: bool) -> None:
        group = msgspec.convert(obj, kube.KubeObject).metadata
        text = group.annotations.get(VERDICT)
        if group.controller is not None and gone:
            self.verdicts.pop(group.controller.uid, None)
        elif group.controller is not None and text:
            self.verdicts[group.controller.uid] = _decode_verdict(text)

    def _take_budget(self, obj: Object, gone: bool) -> None:
        self._take_group(obj, gone)
        budget = msgspec.convert(obj, kube.DisruptionBudget)
        owner = budget.metadata.controller
        if owner is not None and gone:
            self.budgets.pop(owner.uid, None)
        elif owner is not None:
            self.budgets[owner.uid] = budget.spec.min_available


def observe_pod(pod: kube.Pod, at_s: float, *, gone: bool = False) -> PodObservation:
    """A pod at one instant. Raises QuantityError."""
    owner = pod.metadata.controller
    return PodObservation(
        at_s=at_s,
        uid=pod.metadata.uid,
        name=pod.metadata.name,
        job=owner.uid if owner is not None else "",
        role=pod.metadata.labels.get(_ROLE, ""),
        node=pod.spec.node_name,
        phase=pod.status.phase or "Pending",
        gone=gone,
        requests=dict(effective_requests(pod.spec)),
    )
