"""The operations that the acts use: submit a job, wait for an observation, ask why, claim.

Everything goes through the API server, as a user's kubectl would. Only the simulated nodes and the
stand-in for the tf-operator are driven directly.

The jobs are the TFJobs of the seeds as printed, with the changes of the experiment: their files
have the words of the printed texts with the indentation restored.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from shared.contracts.annotations import GROUP_NAME
from shared.kube.client import KubeClient
from shared.kube.resources import NAMESPACES, PODS, Resource
from shared.yaml_documents import read_document
from tutti.api.fetches import at_once
from tutti.api.objects import new_object
from tutti.cluster.embedded import EmbeddedCluster
from tutti.cluster.kubelet import EXIT
from tutti.demo.claims import Claim, Finding, Job, PodObservation, Record, of_job, waits_whole
from tutti.demo.observer import Observer, Stuck
from tutti.demo.pod_by_pod import fitting
from tutti.tf_operator.stand_in import TfOperator
from tutti.up.options import SCHEDULER_NAMES
from tutti.why.explanation import Answer, explain
from tutti.why.reader import NamespaceReader

Manifest = dict[str, Any]

#: Seed 000: one ps, one worker with a GPU, on nodes with the label gpu=1060g1.
GANG_SCHEDULING: Final = "000-gang-scheduling.yaml"
#: Seed 000: workers alone, with an explicit PodGroup name.
PODGROUP: Final = "000-podgroup.yaml"
#: Seed 002: one ps, one worker; its operator declares the gang by a PodDisruptionBudget.
BUDGET: Final = "002-gang-scheduling.yaml"

_FOLDER: Final = Path(__file__).parent / "manifests"


def printed(file: str) -> Manifest:
    """A manifest as the seed prints it."""
    content: Manifest = read_document((_FOLDER / file).read_text())
    return content


def varied(
    file: str, replicas: Mapping[str, int], *, name: str = "", scheduler_name: str = ""
) -> Manifest:
    """A manifest with the experiment's changes: the number of pods of some replica types, another
    name (the group's name, which must equal it, follows) and another scheduler.
    """
    job = printed(file)
    types = job["spec"]["tfReplicaSpecs"]
    for kind, count in replicas.items():
        types[kind]["replicas"] = count
    if name:
        job["metadata"]["name"] = name
    for replica in types.values():
        annotations = replica["template"].get("metadata", {}).get("annotations", {})
        if name and GROUP_NAME in annotations:
            annotations[GROUP_NAME] = name
        if scheduler_name:
            replica["template"]["spec"]["schedulerName"] = scheduler_name
    return job


def size(job: Manifest) -> int:
    """The number of its pods."""
    return sum(replica["replicas"] for replica in job["spec"]["tfReplicaSpecs"].values())


Probe: TypeAlias = Callable[[], bool]

#: For manifests without a namespace.
_NAMESPACE: Final = "default"
#: The nodes of seed 000: one GPU each, and the label that its nodeSelector names.
NODE_LABELS: Final = {"gpu": "1060g1"}
_NODE_RESOURCES: Final = {"nvidia.com/gpu": "1"}


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    #: How long to watch for an event that must not happen.
    watch_s: float
    #: Pause to read the last lines.
    read_s: float
    #: How long to wait for an expected change before the demo fails.
    patience_s: float
    #: Limit between a gang's first and last binding. The bindings of a gang take milliseconds; when
    #: a binder is killed among them, another one follows after the 2 s that the decision's message
    #: waits for it, and its own start.
    spread_ms_max: float


CALM: Final = Pace(watch_s=4.0, read_s=2.5, patience_s=30.0, spread_ms_max=1_000.0)
FAST: Final = Pace(watch_s=1.0, read_s=0.0, patience_s=30.0, spread_ms_max=1_000.0)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    at_s: float
    text: str
    style: str = ""


class Stage:
    """The state of the demo; the screen reads it."""

    def __init__(
        self,
        client: KubeClient,
        observer: Observer,
        cluster: EmbeddedCluster,
        operator: TfOperator,
        pace: Pace,
        *,
        began_s: float,
    ) -> None:
        self.client = client
        self.observer = observer
        self.cluster = cluster
        self.operator = operator
        self.pace = pace
        self.title = ""
        self.lines: list[Line] = []
        #: The act's jobs, in the order of their creation; and every job that Tutti had to place.
        self.jobs: list[Job] = []
        self.tutti_jobs: list[Job] = []
        self.claims: list[Claim] = []
        #: Called when there is something to read.
        self.on_pause: Callable[[], object] = lambda: None
        #: The task that kills processes of Tutti; None when none is to be killed.
        self.killing: asyncio.Task[None] | None = None
        self._began_s = began_s

    @property
    def record(self) -> Record:
        return self.observer.record

    def act(self, title: str, about: str) -> None:
        self.title, self.jobs = title, []
        self.say(title, "bold")
        self.say(about, "dim")

    def say(self, text: str, style: str = "") -> None:
        self.lines.append(Line(at_s=time.monotonic() - self._began_s, text=text, style=style))

    def claim(self, text: str, finding: Finding) -> None:
        """Record a claim that was checked, and show it."""
        self.claims.append(Claim(text, finding))
        style = "green" if finding.held else "bold red"
        self.say(f"{'✓' if finding.held else '✗'} {text} ({finding.evidence})", style)

    async def create_namespace(self, name: str) -> None:
        await self.client.create(NAMESPACES, new_object(NAMESPACES, {"name": name}))

    async def add_node(self, name: str) -> None:
        """Add a simulated node like the ones that the cluster has."""
        await self.cluster.add_node(name, resources=_NODE_RESOURCES, labels=NODE_LABELS)

    async def submit(self, manifest: Manifest, *, to_tutti: bool = True) -> Job:
        """Create a TFJob, and wait until its pods exist. Raises KubeError, Stuck."""
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", _NAMESPACE)
        resource = tfjobs(manifest["apiVersion"])
        reply = await self.client.create(resource, manifest, namespace=namespace)
        uid = msgspec.json.decode(reply.body)["metadata"]["uid"]
        job = Job(uid=uid, namespace=namespace, name=metadata["name"], size=size(manifest))
        self.jobs.append(job)
        if to_tutti:
            self.tutti_jobs.append(job)
        await self.until(
            lambda: len(self.observer.of(job)) == job.size, f"{job.size} pods of {job.title}"
        )
        return job

    async def until_running(self, job: Job) -> None:
        """Wait until all pods of a job run at once. Raises Stuck."""
        await self.until(
            lambda: self.observer.running(job) == job.size,
            f"all {job.size} pods of {job.title} run",
        )

    async def until(self, probe: Probe, expected: str) -> None:
        """Wait for a change at the API server. Raises Stuck."""
        await self.observer.until(probe, expected, timeout_s=self.pace.patience_s)

    async def why(self, job: Job) -> Answer:
        """The answer of `tutti why tfjob/NAME`, once the verdict covers all pods. Raises Stuck."""

        def explained() -> bool:
            verdict = self.observer.verdicts.get(job.uid)
            return verdict is not None and verdict.why is not None and verdict.members == job.size

        await self.until(explained, f"a verdict that explains why {job.title} waits")
        reader = NamespaceReader(self.client, job.namespace, SCHEDULER_NAMES)
        return explain(await reader.read("tfjob", job.name))

    async def watch_waiting(self, job: Job) -> tuple[Answer, Finding]:
        """Show why a job waits; watch whether it waits whole. Raises Stuck."""
        from_s = time.monotonic()
        answer = await self.why(job)
        self.say(f"tutti why tfjob/{job.name}: {answer.sentence}", "yellow")
        await self.watch()
        return answer, waits_whole(job, self.record, from_s=from_s, until_s=time.monotonic())

    def count_fitting(self, job: Job) -> int:
        """The number of pods of a waiting job that would fit now, placed pod by pod."""
        observer = self.observer
        pods = [observer.specs[each.uid] for each in observer.of(job)]
        return len(fitting(pods, observer.nodes, observer.pods.values()))

    def worker(self, job: Job) -> PodObservation:
        """A running worker of the job."""
        pods = self.observer.of(job)
        return next(each for each in pods if each.role == "worker" and each.running)

    async def kill(self, pod: PodObservation, job: Job) -> None:
        """Delete a pod of a job, and wait until it is gone. Raises Stuck."""
        await self.client.delete(PODS, pod.name, namespace=job.namespace)
        await self.until(lambda: self.observer.pods[pod.uid].gone, f"{pod.name} is gone")

    async def reservation_of(self, job: Job) -> str:
        """What the group's condition reports about capacity for a lost member. Raises Stuck."""

        def message() -> str:
            verdict = self.observer.verdicts.get(job.uid)
            conditions = verdict.conditions if verdict is not None else ()
            held = (
                condition
                for condition in conditions
                if condition.type == "RoomHeld" and condition.status == "True"
            )
            return next((condition.message for condition in held), "")

        await self.until(lambda: bool(message()), f"a reservation for a member of {job.title}")
        return message()

    async def finish(self, job: Job) -> None:
        """Let the job's workers succeed, and wait until they have ended. Raises Stuck.

        Simulated kubelets end a pod's containers when its annotation says so.
        """
        workers = [each for each in self.observer.of(job) if each.role == "worker"]
        patch = {"metadata": {"annotations": {EXIT: "0"}}}
        await at_once(
            [each.name for each in workers],
            lambda name: self.client.patch(PODS, name, patch, namespace=job.namespace),
        )
        uids = {each.uid for each in workers}
        await self.until(
            lambda: all(self.observer.pods[uid].ended for uid in uids),
            f"the workers of {job.title} end",
        )

    async def remove(self, *jobs: Job) -> None:
        """Delete jobs, and wait until all their pods are gone. Raises Stuck."""
        resource = tfjobs("kubeflow.org/v1")
        for job in jobs:
            await self.client.delete(
                resource, job.name, namespace=job.namespace, propagation="Background"
            )
        await self.until(
            lambda: all(
                each.gone for job in jobs for each in of_job(job, self.observer.pods.values())
            ),
            "the pods of deleted jobs are gone",
        )

    async def watch(self) -> None:
        """Wait a while for events that must not happen, then pause."""
        await asyncio.sleep(self.pace.watch_s)
        await self.pause()

    async def pause(self) -> None:
        """Leave time to read."""
        self.on_pause()
        await asyncio.sleep(self.pace.read_s)

    async def until_killed(self) -> None:
        """Wait until every process of Tutti was killed, if `--kill` is given. Raises Stuck."""
        if self.killing is not None:
            await asyncio.wait([self.killing], timeout=self.pace.patience_s)
            if not self.killing.done():
                raise Stuck("every process is killed", self.pace.patience_s)


def tfjobs(api_version: str) -> Resource:
    group, _, version = api_version.partition("/")
    return Resource(group, version, "tfjobs", "TFJob")


@contextlib.asynccontextmanager
async def running_task(
    work: Coroutine[Any, Any, None], name: str
) -> AsyncIterator[asyncio.Task[None]]:
    """Run a task for the length of the block; an error of the task is raised at its end."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
