"""Performs the writes of one step of a Job, in the plan's order. Each may be repeated safely."""

import asyncio
import contextlib
import time
from collections.abc import Iterable
from itertools import groupby
from typing import Final, NoReturn

import msgspec

from services.controller.core.jobs.manifests import claim_for, claim_name, pod_for
from services.controller.core.jobs.step import OUT_OF_SYNC, SeenPod, Step
from services.controller.reconciling.controller import Runtime
from services.controller.reconciling.informer import Informer
from services.controller.reconciling.writes import Outcome, Written, for_all
from shared.job_plugins.discovery import plugins_of
from shared.job_plugins.plugin import Manifest, Owned, PluginError
from shared.job_plugins.ssh import with_keys
from shared.kinds.job import Job, JobStatus, TaskSpec
from shared.kinds.job_shape import pod_name, template_spec
from shared.kinds.metadata import Metadata
from shared.kinds.podgroup import PodGroup
from shared.kube.errors import ApiError, MalformedAnswer, NotFound, is_refusal
from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO, PODS, VOLUME_CLAIMS

#: Writes for one job at the same time, fewer than all, so that other jobs' writes continue.
_WRITERS: Final = 16
#: The most errors in one Event.
_ERRORS_SHOWN: Final = 3

_decode_job: Final = msgspec.json.Decoder(Job).decode


class _Stored(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, str] | None = None


class NotOurs(Exception):
    """The name belongs to an object of another owner, which is not touched. It may be a user's, or
    belong to a former job of the same name and be due for garbage collection.
    """


class Overtaken(Exception):
    """The job has changed since it was read: its step must be planned again."""


class Obstacle(Exception):
    """A failure that a user has to remedy: it is reported, and the step is tried again later.

    Attributes:
        reason: The Event's reason.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class JobWriter:
    """The writes for one job in one call of `reconcile`."""

    def __init__(
        self,
        runtime: Runtime,
        jobs: Informer[Job],
        pods: Informer[SeenPod],
        groups: Informer[PodGroup],
        job: Job,
    ) -> None:
        """The caches learn the answers to the writes."""
        self.job = job
        #: When this step created the group, in ms since the epoch; None: it did not.
        self.group_created_ms: int | None = None
        self._client = runtime.client
        self._writes = runtime.writes
        self._jobs = jobs
        self._pods = pods
        self._groups = groups
        self._namespace = job.metadata.namespace
        self._uid = job.metadata.uid

    @property
    def group_uid(self) -> str:
        """UID of the job's group; "" without one."""
        group = self._group()
        return group.metadata.uid if group is not None else ""

    async def read_again(self) -> Job | None:
        """Read the stored job; None when it does not exist. Raises KubeError."""
        try:
            reply = await self._client.request(
                "GET", JOBS_VOLCANO.path(self._namespace, self.job.metadata.name)
            )
        except NotFound:
            return None
        self._learn(reply.body)
        return self.job

    async def write_status(self, status: JobStatus) -> None:
        """Replace the job's status. Raises Overtaken, KubeError."""
        changed = msgspec.structs.replace(self.job, status=status)
        written = await self._writes.replace_status(JOBS_VOLCANO, changed)
        if written.outcome is Outcome.STALE:
            raise Overtaken
        if written.done:
            self._learn(written.body)

    def _learn(self, body: bytes) -> None:
        """Keep the stored job of an answer. Raises MalformedAnswer when it cannot be decoded."""
        try:
            self.job = _decode_job(body)
        except msgspec.MsgspecError as error:
            raise MalformedAnswer(f"Job {self._namespace}/{self.job.metadata.name}: {error}") from (
                None
            )
        self._jobs.learn(body)

    async def carry_out(self, step: Step) -> tuple[Obstacle | ApiError, ...]:
        """Perform all writes of the step but the status; return the failures.

        Deletions do not wait for creations: a quota may refuse a pod until another is deleted.

        Raises:
            KubeError: There was no answer to a write.
        """
        failures: list[Obstacle | ApiError] = []
        for write in (self._create, self._delete_pods, self._delete_objects):
            try:
                await write(step)
            except (Obstacle, ApiError) as failure:
                failures.append(failure)
        return tuple(failures)

    async def _create(self, step: Step) -> None:
        if step.ensure_objects:
            await self._ensure(step)
        await self._write_group(step)
        if step.make_pods:
            await self._make_pods(step)

    async def _delete_objects(self, step: Step) -> None:
        """Delete the plugins' objects, and then the group."""
        try:
            if step.delete_objects:
                for owned in self._owned(step.job):
                    with contextlib.suppress(NotOurs):
                        stored = await self._stored(owned)
                        if stored is not None:
                            await self._writes.delete(owned.resource, stored.metadata)
            group = self._group()
            if step.delete_group and group is not None:
                await self._writes.delete(PODGROUPS_VOLCANO, group.metadata)
        except ApiError as error:
            _fail(error, "FailedDelete", "Error deleting objects: ")

    # Objects of plugins, and claims.

    async def _ensure(self, step: Step) -> None:
        try:
            await self._ensure_claims(step)
        except ApiError as error:
            _fail(error, "PVCError", "Failed to create PVC, err: ")
        try:
            for owned in self._owned(step.job):
                await self._ensure_owned(owned)
        except NotOurs as other:
            raise Obstacle("PluginError", str(other)) from other
        except ApiError as error:
            _fail(error, "PluginError")

    def _owned(self, job: Job) -> Iterable[Owned]:
        return [owned for plugin in plugins_of(job) for owned in plugin.objects()]

    async def _ensure_owned(self, owned: Owned) -> None:
        """Create the object, or update the data of an existing one if it `follows`. Idempotent.
        Raises NotOurs, KubeError.
        """
        manifest = owned.manifest
        if owned.keys:
            if await self._stored(owned) is not None:
                return
            private, public = await asyncio.to_thread(_key_pair)
            manifest = with_keys(manifest, private, public)
        made = await self._writes.create(owned.resource, manifest, namespace=self._namespace)
        stored = await self._stored(owned) if made.outcome is Outcome.EXISTS else None
        if stored is None or not owned.follows or (stored.data or {}) == manifest["data"]:
            return
        patch = {"data": dict.fromkeys(stored.data or {}) | manifest["data"]}
        await self._writes.patch(owned.resource, stored.metadata, patch)

    async def _stored(self, owned: Owned) -> _Stored | None:
        """The stored object; None when it does not exist. Raises NotOurs, KubeError."""
        resource, name = owned.resource, owned.name
        try:
            stored = await self._client.get(resource, name, _Stored, namespace=self._namespace)
        except NotFound:
            return None
        self._check_owner(stored.metadata, f"{resource.kind} {name}")
        return stored

    def _check_owner(self, metadata: Metadata, title: str) -> None:
        if all(owner.uid != self._uid for owner in metadata.owner_references):
            raise NotOurs(f"{title} belongs to another owner")

    async def _ensure_claims(self, step: Step) -> None:
        """Create the missing claims, and write their names into the job."""
        volumes = step.job.spec.volumes
        for volume in volumes:
            if volume.volume_claim is not None:
                manifest = claim_for(step.job, volume)
                await self._writes.create(VOLUME_CLAIMS, manifest, namespace=self._namespace)
            else:
                await self._expect_claim(volume.volume_claim_name)
        names = [claim_name(step.job, volume) for volume in volumes]
        if names != [volume.volume_claim_name for volume in self.job.spec.volumes]:
            patch = [
                {"op": "test", "path": "/metadata/uid", "value": self.job.metadata.uid},
                *(
                    {"op": "add", "path": f"/spec/volumes/{at}/volumeClaimName", "value": name}
                    for at, name in enumerate(names)
                ),
            ]
            reply = await self._client.patch(
                JOBS_VOLCANO,
                self.job.metadata.name,
                patch,
                namespace=self._namespace,
                patch_type="json",
            )
            self._learn(reply.body)

    async def _expect_claim(self, name: str) -> None:
        try:
            await self._client.request("GET", VOLUME_CLAIMS.path(self._namespace, name))
        except NotFound:
            raise Obstacle(
                "PVCError",
                f"Failed to create PVC, err: pvc {name} is not found, the job will be in the "
                "Pending state until the PVC is created",
            ) from None

    # The group.

    async def _write_group(self, step: Step) -> None:
        try:
            if step.make_group is not None:
                made = await self._writes.create(
                    PODGROUPS_VOLCANO, step.make_group, namespace=self._namespace
                )
                self._groups.learn(made.body)
                self.group_created_ms = time.time_ns() // 1_000_000
            group = self._group()
            if step.change_group is not None and group is not None:
                changed = await self._writes.patch(
                    PODGROUPS_VOLCANO, group.metadata, step.change_group
                )
                self._groups.learn(changed.body)
        except ApiError as error:
            _fail(error, "PodGroupError", "Failed to create PodGroup, err: ")

    def _group(self) -> PodGroup | None:
        metadata = self.job.metadata
        owned = self._groups.owned_by(metadata.uid, namespace=metadata.namespace)
        return owned[0] if owned else None

    # Pods.

    async def _make_pods(self, step: Step) -> None:
        plugins = plugins_of(step.job)
        #: Task -> index and error of its first pod that cannot be created. Only this one is
        #: reported, so that the report stays the same however many pods were tried.
        failed: dict[str, tuple[int, str]] = {}
        #: Tasks with a refused pod (a quota, a policy). Their other pods would be refused, too, and
        #: trying all of them every few seconds would delay the writes for other jobs.
        refused_tasks: set[str] = set()

        async def make(at: tuple[TaskSpec, int]) -> None:
            task, index = at
            if task.name in refused_tasks:
                return
            name = pod_name(step.job.metadata.name, task.name, index)
            try:
                await self._make_pod(name, pod_for(step.job, task, index, plugins))
            except ApiError as error:
                if not is_refusal(error):
                    raise
                refused_tasks.add(task.name)
                problem = error.message
            except (PluginError, NotOurs) as error:
                problem = str(error)
            else:
                return
            text = f"failed to create pod {name}, err: {problem}"
            failed[task.name] = min((index, text), failed.get(task.name, (index, text)))

        for _, pods in groupby(step.make_pods, key=_priority_class):
            await for_all(make, list(pods), at_once=_WRITERS, name="job-writer")
        if failed:
            errors = ", ".join([failed[name][1] for name in sorted(failed)][:_ERRORS_SHOWN])
            raise Obstacle("FailedCreate", f"Error creating pods: [{errors}]")

    async def _make_pod(self, name: str, manifest: Manifest) -> None:
        """Create the pod unless it exists. Raises NotOurs, KubeError."""
        made = await self._writes.create(PODS, manifest, namespace=self._namespace)
        if made.outcome is Outcome.EXISTS:
            made = await self._ours(name)
        self._pods.learn(made.body)

    async def _ours(self, name: str) -> Written:
        """The existing pod of this name, if it belongs to this job. Raises NotOurs."""
        try:
            reply = await self._client.request("GET", PODS.path(self._namespace, name))
        except NotFound:
            return Written(Outcome.GONE)
        pod = msgspec.json.decode(reply.body, type=SeenPod)
        self._check_owner(pod.metadata, f"pod {name}")
        return Written(Outcome.DONE, reply.body)

    async def _delete_pods(self, step: Step) -> None:
        failed: list[str] = []
        marked = {pod.metadata.uid for pod in step.mark}
        # A surplus pod of an old version is in both sets.
        doomed = {pod.metadata.uid: pod for pod in (*step.mark, *step.delete)}

        async def delete(pod: SeenPod) -> None:
            metadata = pod.metadata
            try:
                if metadata.uid in marked:
                    mark = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}
                    await self._writes.patch(PODS, metadata, mark)
                if not pod.terminating:
                    self._pods.learn((await self._writes.delete(PODS, metadata)).body)
            except ApiError as error:
                if not is_refusal(error):
                    raise
                failed.append(f"failed to delete pod {metadata.name}, err: {error.message}")

        await for_all(delete, list(doomed.values()), at_once=_WRITERS, name="job-writer")
        if failed:
            errors = ", ".join(sorted(failed)[:_ERRORS_SHOWN])
            raise Obstacle("FailedDelete", f"Error deleting pods: [{errors}]")


def _fail(error: ApiError, reason: str, what: str = "") -> NoReturn:
    """Raise the error, as an Obstacle if a user has to remedy it."""
    if is_refusal(error):
        raise Obstacle(reason, f"{what}{error.message}") from error
    raise error


def _priority_class(at: tuple[TaskSpec, int]) -> str:
    """The PriorityClass of a pod to create. Pods of one class are created together and before those
    of the next class, so that a gang starts with its pods of the highest priority.
    """
    return str(template_spec(at[0]).get("priorityClassName") or "")


def _key_pair() -> tuple[str, str]:
    """A new RSA key: private (PKCS #1, PEM) and public (OpenSSH). Call it in a thread."""
    from cryptography.hazmat.primitives import serialization  # 8 MiB, and few jobs have keys.
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private.decode(), public.decode() + "\n"
