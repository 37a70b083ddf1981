"""What the acts play on: they submit, wait, ask why and claim; nothing else is at hand.

Everything goes through the API server, as a user's kubectl would; only the orders to the `Ground`
(another operator, one node more) are the demo's own.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from shared.kube.client import KubeClient
from shared.kube.resources import NAMESPACES, PODS, Resource
from tutti.cluster.kubelet import EXIT
from tutti.demo.claims import Claim
from tutti.demo.observer import Observer, Stuck
from tutti.demo.processes import Ground
from tutti.demo.record import Job, Sighting, of_job
from tutti.demo.tfjobs import Manifest, size
from tutti.up.options import SCHEDULER_NAMES
from tutti.why.explaining import Answer, explain
from tutti.why.gathering import Gatherer

Probe: TypeAlias = Callable[[], bool]

#: Where manifests without a namespace go.
_NAMESPACE: Final = "default"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How the demo takes its time."""

    #: How long what must not happen is watched for.
    watch_s: float
    #: For people to read what has just happened.
    read_s: float
    #: How long anything awaited may take; one that takes longer fails the demo.
    patience_s: float
    #: Within which a gang's first and last binding must lie. The bindings of a gang take
    #: milliseconds; a binder that is killed among them is followed by another after the 2 s that
    #: the decision's message waits for it, and its own start.
    spread_ms_max: float


CALM: Final = Pace(watch_s=4.0, read_s=2.5, patience_s=30.0, spread_ms_max=1_000.0)
FAST: Final = Pace(watch_s=1.0, read_s=0.0, patience_s=30.0, spread_ms_max=1_000.0)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the story."""

    at_s: float
    text: str
    style: str = ""


class Stage:
    """The state of the play; the screen reads it.

    Attributes:
        title: Of the act.
        about: The act in one or two sentences.
        lines: The story so far.
        jobs: The act's jobs, in order of appearance.
        tutti_jobs: Every job that Tutti had to place.
        claims: What was claimed so far.
        on_pause: Called when there is something to read.
        trouble: What is done to the suite meanwhile; None for nothing.
    """

    def __init__(
        self, client: KubeClient, observer: Observer, ground: Ground, pace: Pace, *, began_s: float
    ) -> None:
        self.client = client
        self.observer = observer
        self.ground = ground
        self.pace = pace
        self.began_s = began_s
        self.title = ""
        self.about = ""
        self.lines: list[Line] = []
        self.jobs: list[Job] = []
        self.tutti_jobs: list[Job] = []
        self.claims: list[Claim] = []
        self.on_pause: Callable[[], object] = _nothing
        self.trouble: asyncio.Task[None] | None = None

    def act(self, title: str, about: str) -> None:
        """Begin an act."""
        self.title, self.about, self.jobs = title, about, []
        self.say(title, "bold")
        self.say(about, "dim")

    def say(self, text: str, style: str = "") -> None:
        """Print a line."""
        self.lines.append(Line(at_s=time.monotonic() - self.began_s, text=text, style=style))

    def claim(self, claim: Claim) -> None:
        """Note a claim that has been checked."""
        self.claims.append(claim)
        style = "green" if claim.held else "bold red"
        self.say(f"{'✓' if claim.held else '✗'} {claim.text} ({claim.evidence})", style)

    async def namespace(self, name: str) -> None:
        """Make a namespace."""
        await self.client.create(
            NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )

    async def submit(self, manifest: Manifest, *, to_tutti: bool = True) -> Job:
        """Create a TFJob, and wait until its pods exist.

        Raises:
            KubeError: The API server refused it.
            Stuck: The operator made no pods.
        """
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", _NAMESPACE)
        reply = await self.client.create(
            tfjobs(manifest["apiVersion"]), manifest, namespace=namespace
        )
        made = msgspec.json.decode(reply.body, type=_Made)
        job = Job(
            uid=made.metadata.uid, namespace=namespace, name=metadata["name"], size=size(manifest)
        )
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
            lambda: sum(each.running for each in self.observer.of(job)) == job.size,
            f"all {job.size} pods of {job.title} run",
        )

    async def until(self, probe: Probe, what: str) -> None:
        """Wait for something that is seen at the API server. Raises Stuck."""
        await self.observer.until(probe, what, timeout_s=self.pace.patience_s)

    async def why(self, job: Job) -> Answer:
        """What `tutti why tfjob/NAME` says, once all its pods are judged. Raises Stuck."""

        def judged() -> bool:
            verdict = self.observer.verdicts.get(job.uid)
            return verdict is not None and verdict.why is not None and verdict.members == job.size

        await self.until(judged, f"a verdict that explains why {job.title} waits")
        gatherer = Gatherer(self.client, job.namespace, SCHEDULER_NAMES)
        return explain(await gatherer.gather("tfjob", job.name), SCHEDULER_NAMES)

    async def kill(self, pod: Sighting, job: Job) -> None:
        """Delete a pod of a job, and wait until it has gone. Raises Stuck."""
        await self.client.delete(PODS, pod.name, namespace=job.namespace)
        await self.until(lambda: self.observer.pods[pod.uid].gone, f"{pod.name} goes")

    async def held_for(self, job: Job) -> str:
        """What the job's group says of room held for a member that it lost. Raises Stuck."""

        def held() -> str:
            verdict = self.observer.verdicts.get(job.uid)
            conditions = verdict.conditions if verdict is not None else ()
            found = (one for one in conditions if one.type == "RoomHeld" and one.status == "True")
            return next((one.message for one in found), "")

        await self.until(lambda: bool(held()), f"{job.title} says that capacity is reserved for it")
        return held()

    async def finish(self, job: Job) -> None:
        """Let the job's workers end well, and wait until they have. Raises Stuck.

        Simulated kubelets end a pod's containers when its annotation says so.
        """
        workers = [each for each in self.observer.of(job) if each.role == "worker"]
        patch = {"metadata": {"annotations": {EXIT: "0"}}}
        async with asyncio.TaskGroup() as group:
            for each in workers:
                group.create_task(
                    self.client.patch(PODS, each.name, patch, namespace=job.namespace),
                    name=f"finish-{each.name}",
                )
        uids = {each.uid for each in workers}
        await self.until(
            lambda: all(self.observer.pods[uid].ended for uid in uids),
            f"the workers of {job.title} end",
        )

    async def remove(self, *jobs: Job) -> None:
        """Delete jobs and wait until no pod of them is left. Raises Stuck."""
        for job in jobs:
            await self.client.delete(
                tfjobs("kubeflow.org/v1"),
                job.name,
                namespace=job.namespace,
                propagation="Background",
            )
        await self.until(
            lambda: all(
                each.gone for job in jobs for each in of_job(job, self.observer.pods.values())
            ),
            "the pods of deleted jobs go",
        )

    async def watch_on(self) -> None:
        """Give what must not happen its time to happen."""
        await asyncio.sleep(self.pace.watch_s)

    async def outlast_trouble(self) -> None:
        """Wait until everything has been done to the suite. Raises Stuck."""
        if self.trouble is not None:
            await asyncio.wait([self.trouble], timeout=self.pace.patience_s)
            if not self.trouble.done():
                raise Stuck("every process is killed", self.pace.patience_s)

    async def let_read(self) -> None:
        """Give people time to read."""
        self.on_pause()
        await asyncio.sleep(self.pace.read_s)


def _nothing() -> None:
    """Frames are not recorded."""


class _MadeMeta(msgspec.Struct, frozen=True):
    uid: str


class _Made(msgspec.Struct, frozen=True):
    metadata: _MadeMeta


def tfjobs(api_version: str) -> Resource:
    """The resource of a version of TFJobs."""
    group, _, version = api_version.partition("/")
    return Resource(group, version, "tfjobs", "TFJob")
