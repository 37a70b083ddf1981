"""Watches pods, nodes and groups at the API server, and records each change of a pod.

It sends no request to Tutti, and reads only what any user can read with kubectl.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from shared.contracts.annotations import VERDICT
from shared.contracts.verdicts import Verdict
from shared.kube import objects as kube
from shared.kube.client import KubeClient
from shared.kube.decoding import Undecodable
from shared.kube.listwatch import Batch, Changes, HasMetadata, Listed, ListWatch
from shared.kube.requests import amounts, effective_requests
from shared.kube.resources import DISRUPTION_BUDGETS, NODES, PODGROUPS_INCUBATOR, PODS
from shared.model.invariants import InvariantViolation
from tutti.demo.claims import Job, LatestPods, PodObservation, of_job

_ROLE: Final = "tf-replica-type"
_decode_verdict: Final = msgspec.json.Decoder(Verdict).decode

T = TypeVar("T", bound=HasMetadata)


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
        client = self._client
        watches = {
            "pods": ListWatch(client, PODS, kube.Pod).run(self._take_pods),
            "nodes": ListWatch(client, NODES, kube.Node).run(self._take_nodes),
            "groups": ListWatch(client, PODGROUPS_INCUBATOR, kube.PodGroup).run(self._take_groups),
            "budgets": ListWatch(client, DISRUPTION_BUDGETS, kube.DisruptionBudget).run(
                self._take_groups
            ),
        }
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(watch, name=f"observe-{name}") for name, watch in watches.items()
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

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

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _take_pods(self, batch: Batch[kube.Pod]) -> None:
        at_s = time.monotonic()
        present, gone = _split(batch)
        if isinstance(batch, Listed):
            listed = {pod.metadata.uid for pod in present}
            for uid in self.pods.keys() - listed:
                self._note(msgspec.structs.replace(self.pods[uid], at_s=at_s, gone=True))
        for pod in present:
            self.specs[pod.metadata.uid] = pod
            self._note(observe_pod(pod, at_s))
        for pod in gone:
            self._note(observe_pod(pod, at_s, gone=True))
        self._wake()

    def _note(self, pod: PodObservation) -> None:
        """Record an observation that differs from the last one of its pod."""
        known = self.pods.get(pod.uid)
        if pod.gone:
            self.specs.pop(pod.uid, None)
        if known is not None and (
            known.gone or msgspec.structs.replace(known, at_s=pod.at_s) == pod
        ):
            return
        self.pods[pod.uid] = pod
        self.record.append(pod)

    async def _take_nodes(self, batch: Batch[kube.Node]) -> None:
        present, gone = _split(batch)
        for node in present:
            self.nodes[node.metadata.name] = amounts(node.status.allocatable, "allocatable")
        for node in gone:
            self.nodes.pop(node.metadata.name, None)
        self._wake()

    async def _take_groups(
        self, batch: Batch[kube.PodGroup] | Batch[kube.DisruptionBudget]
    ) -> None:
        present, gone = _split(batch)
        for group in present:
            owner, text = group.metadata.controller, group.metadata.annotations.get(VERDICT)
            if owner is not None and isinstance(group, kube.DisruptionBudget):
                self.budgets[owner.uid] = group.spec.min_available
            if owner is not None and text:
                self.verdicts[owner.uid] = _decode_verdict(text)
        for group in gone:
            if group.metadata.controller is not None:
                self.verdicts.pop(group.metadata.controller.uid, None)
                self.budgets.pop(group.metadata.controller.uid, None)
        self._wake()


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


def _split(batch: Batch[Any]) -> tuple[list[Any], list[Any]]:
    """The objects that exist, and those that were deleted."""
    present: list[Any] = []
    gone: list[Any] = []
    if isinstance(batch, Listed):
        present.extend(_decoded(batch.objects))
    elif isinstance(batch, Changes):
        for change in batch.changes:
            (gone if change.type == "DELETED" else present).extend(_decoded([change.object]))
    return present, gone


def _decoded(objects: Sequence[T | Undecodable]) -> Iterator[T]:
    for each in objects:
        if isinstance(each, Undecodable):
            raise InvariantViolation(each.metadata.name, f"must decode: {each.error}")
        yield each
