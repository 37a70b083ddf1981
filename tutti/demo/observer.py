"""Watches pods, nodes and groups at the API server, and writes down what it sees of pods.

It never asks Tutti anything: what it knows, any user with kubectl could see.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

import msgspec

from shared.contracts.annotations import VERDICT
from shared.contracts.verdicts import Verdict
from shared.kube import objects as kube
from shared.kube.client import KubeClient
from shared.kube.decoding import Undecodable
from shared.kube.listwatch import Batch, Changes, HasMetadata, Listed, ListWatch
from shared.kube.requests import amounts, effective_requests
from shared.kube.resources import DISRUPTION_BUDGETS, NODES, PODGROUPS_INCUBATOR, PODS, Resource
from tutti.demo.record import ClusterState, Job, Sighting, of_job

_ROLE: Final = "tf-replica-type"
_decode_verdict: Final = msgspec.json.Decoder(Verdict).decode


class Stuck(Exception):
    """What the story waits for does not happen."""

    def __init__(self, what: str, timeout_s: float) -> None:
        super().__init__(f"not within {timeout_s:g} s: {what}")
        self.what = what
        self.timeout_s = timeout_s


class Observer:
    """Sees everything from `watching` on. Read its attributes from the same event loop.

    Attributes:
        record: Every sighting of a pod, in the API server's order.
        pods: The last sighting of each.
        nodes: What each node has, by resource.
        specs: Each living pod whole, for the scheduler that must place it.
        verdicts: What stands on the group of a job, by the job's UID.
    """

    def __init__(self, client: KubeClient) -> None:
        self.record: list[Sighting] = []
        self.pods: ClusterState = {}
        self.nodes: dict[str, dict[str, int]] = {}
        self.specs: dict[str, kube.Pod] = {}
        self.verdicts: dict[str, Verdict] = {}
        self._client = client
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch until left."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(watch, name=f"observe-{name}")
                for name, watch in self._watches().items()
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    def of(self, job: Job) -> list[Sighting]:
        """The last sighting of each pod of a job, in order of names."""
        return sorted(of_job(job, self.pods.values()), key=lambda each: each.name)

    async def until(self, probe: Callable[[], bool], what: str, *, timeout_s: float | None) -> None:
        """Wait until something seen makes `probe` true. Raises Stuck after the time, if any."""
        try:
            async with asyncio.timeout(timeout_s):
                while not probe():
                    await self._changed.wait()
        except TimeoutError:
            raise Stuck(what, timeout_s or 0.0) from None

    def _watches(self) -> "dict[str, Any]":
        async def pods(batch: Batch[kube.Pod]) -> None:
            self._see_pods(batch)
            self._tell()

        async def nodes(batch: Batch[kube.Node]) -> None:
            self._see_nodes(batch)
            self._tell()

        async def groups(batch: Batch[kube.PodGroup] | Batch[kube.DisruptionBudget]) -> None:
            self._see_groups(batch)
            self._tell()

        return {
            "pods": self._watch(PODS, kube.Pod).run(pods),
            "nodes": self._watch(NODES, kube.Node).run(nodes),
            "groups": self._watch(PODGROUPS_INCUBATOR, kube.PodGroup).run(groups),
            "budgets": self._watch(DISRUPTION_BUDGETS, kube.DisruptionBudget).run(groups),
        }

    def _watch(self, resource: Resource, kind: "type[Any]") -> "ListWatch[Any]":
        return ListWatch(self._client, resource, kind)

    def _tell(self) -> None:
        """Wake all waiting tasks."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _see_pods(self, batch: Batch[kube.Pod]) -> None:
        at_s = time.monotonic()
        present, gone = _sorted_out(batch)
        if isinstance(batch, Listed):
            seen = {pod.metadata.uid for pod in present}
            for uid in self.pods.keys() - seen:
                self._note(msgspec.structs.replace(self.pods[uid], at_s=at_s, gone=True))
        for pod in present:
            self.specs[pod.metadata.uid] = pod
            self._note(sighting(pod, at_s))
        for pod in gone:
            self._note(sighting(pod, at_s, gone=True))

    def _note(self, seen: Sighting) -> None:
        """Write down what is news."""
        known = self.pods.get(seen.uid)
        if seen.gone:
            self.specs.pop(seen.uid, None)
        if known is not None and (
            known.gone or msgspec.structs.replace(known, at_s=seen.at_s) == seen
        ):
            return
        self.pods[seen.uid] = seen
        self.record.append(seen)

    def _see_nodes(self, batch: Batch[kube.Node]) -> None:
        present, gone = _sorted_out(batch)
        for node in present:
            self.nodes[node.metadata.name] = amounts(node.status.allocatable, "allocatable")
        for node in gone:
            self.nodes.pop(node.metadata.name, None)

    def _see_groups(self, batch: Batch[kube.PodGroup] | Batch[kube.DisruptionBudget]) -> None:
        present, gone = _sorted_out(batch)
        for group in present:
            owner, text = group.metadata.controller, group.metadata.annotations.get(VERDICT)
            if owner is not None and text:
                self.verdicts[owner.uid] = _decode_verdict(text)
        for group in gone:
            if group.metadata.controller is not None:
                self.verdicts.pop(group.metadata.controller.uid, None)


def sighting(pod: kube.Pod, at_s: float, *, gone: bool = False) -> Sighting:
    """What a pod looks like now. Raises QuantityError."""
    owner = pod.metadata.controller
    return Sighting(
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


def _sorted_out(batch: Batch[Any]) -> tuple[list[Any], list[Any]]:
    """What is there and what went. An object that does not decode breaks the demo's own ground."""
    present: list[HasMetadata] = []
    gone: list[HasMetadata] = []
    if isinstance(batch, Listed):
        present.extend(_decoded(batch.objects))
    elif isinstance(batch, Changes):
        for change in batch.changes:
            (gone if change.type == "DELETED" else present).extend(_decoded([change.object]))
    return present, gone


def _decoded(found: Iterable[Any]) -> Iterable[Any]:
    for each in found:
        assert not isinstance(each, Undecodable), f"{each.metadata.name}: {each.error}"
        yield each
