"""`tutti job logs`: the logs of a Job's pods, through the API server alone.

Without `--follow`, pod after pod. With it, the lines of all containers as they are written, also
those of pods that are created later, until the Job is finished and all logs were read to the end.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import click
import msgspec

from shared.kube.client import KubeClient
from shared.kube.errors import ApiError
from shared.kube.resources import JOBS_VOLCANO, PODS
from tutti.api.access import CONNECTIONS_MAX
from tutti.api.failures import Refusal
from tutti.api.fetches import Wanted, fetch, follow, get, named
from tutti.api.flags import Selection
from tutti.api.objects import Object, field, labels_of, name_of, text
from tutti.api.output import echo
from tutti.job.view import FINAL_PHASES, JOB_NAME_LABEL, phase

_TASK_LABEL: Final = "volcano.sh/task-spec"
_INDEX_LABEL: Final = "volcano.sh/task-index"
#: Containers whose logs are followed at once. Each needs a connection; the remaining connections
#: are for watches of the Job and its pods, and for single requests.
FOLLOWED_MAX: Final = CONNECTIONS_MAX - 4


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A selection of logs: the flags of `tutti job logs`; "" and None select all."""

    task: str = ""
    index: int | None = None
    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since_ms: int | None = None
    #: Whether to print the pod before each line; None: if there are several logs.
    prefix: bool | None = None

    def params(self, container: str) -> dict[str, str]:
        params = {
            "container": container,
            "follow": "true" if self.follow else "",
            "previous": "true" if self.previous else "",
            "timestamps": "true" if self.timestamps else "",
            "tailLines": "" if self.tail is None else str(self.tail),
            "sinceSeconds": "" if self.since_ms is None else str(max(1, self.since_ms // 1000)),
        }
        return {key: value for key, value in params.items() if value}

    def selector(self, job: str) -> str:
        terms = [f"{JOB_NAME_LABEL}={job}"]
        if self.task:
            terms.append(f"{_TASK_LABEL}={self.task}")
        if self.index is not None:
            terms.append(f"{_INDEX_LABEL}={self.index}")
        return ",".join(terms)


async def print_logs(selection: Selection, reading: Reading) -> None:
    """Print the selected logs. Raises KubeError, and Refusal when there is no name, no log, or too
    many logs to follow at once.
    """
    name = selection.single(JOBS_VOLCANO)
    async with selection.opened() as (client, place):
        job = await get(client, JOBS_VOLCANO, name, place)
        logs = _Logs(client, place, reading)
        if reading.follow:
            await logs.follow(job)
        else:
            await logs.all(name)


class _Logs:
    def __init__(self, client: KubeClient, namespace: str, reading: Reading) -> None:
        self._client = client
        self._namespace = namespace
        self._reading = reading
        #: UID of the pod and name of the container.
        self._followed: set[tuple[str, str]] = set()
        self._reading_now: set[asyncio.Task[None]] = set()

    async def all(self, job: str) -> None:
        """Print the present logs, in the order of tasks and their indices."""
        pods = await fetch(self._client, self._wanted(job))
        sources = [
            (name_of(pod), container)
            for pod in sorted(pods, key=_order)
            for container in self._containers(pod)
        ]
        if not sources:
            raise Refusal(
                f"no pod of Job {job} matches: try `kubectl get pods -l {JOB_NAME_LABEL}={job}`"
            )
        failed: list[str] = []
        for pod, container in sources:
            try:
                await self._read(pod, container, several=len(sources) > 1)
            except ApiError as error:
                failed.append(f"{pod}/{container}: no log: {error.message}")
        if failed:
            raise Refusal("\n".join(failed))

    async def follow(self, job: Object) -> None:
        """Print all lines, until the Job is finished and all logs have ended."""
        async with asyncio.TaskGroup() as group:
            finding = group.create_task(self._find(name_of(job), group), name="pods")
            await self._finished(job)
            finding.cancel()
            # The watch of pods may lag behind: the last pods' logs belong to the Job too.
            for pod in await fetch(self._client, self._wanted(name_of(job))):
                self._take(pod, group)

    async def _find(self, job: str, group: asyncio.TaskGroup) -> None:
        async for kind, pod in follow(self._client, self._wanted(job)):
            if kind != "DELETED":
                self._take(pod, group)

    def _take(self, pod: Object, group: asyncio.TaskGroup) -> None:
        """Follow the logs of the pod's containers that have started and are not followed yet."""
        for container in self._containers(pod):
            source = (text(pod, "metadata.uid"), container)
            if source in self._followed or not _has_started(pod, container):
                continue
            if len(self._reading_now) >= FOLLOWED_MAX:
                raise Refusal(
                    f"more than {FOLLOWED_MAX} logs to follow: select some with --task, --index or "
                    "--container"
                )
            self._followed.add(source)
            task = group.create_task(
                self._follow_log(name_of(pod), container), name=f"{name_of(pod)}/{container}"
            )
            self._reading_now.add(task)
            task.add_done_callback(self._reading_now.discard)

    async def _follow_log(self, pod: str, container: str) -> None:
        try:
            await self._read(pod, container, several=True)
        except ApiError as error:
            # The logs of the remaining pods can still be read.
            click.echo(f"[{pod}/{container}] no log: {error.message}", err=True)

    async def _finished(self, job: Object) -> None:
        async for kind, job_now in follow(self._client, named(JOBS_VOLCANO, job)):
            if kind == "DELETED" or phase(job_now) in FINAL_PHASES:
                return

    async def _read(self, pod: str, container: str, *, several: bool) -> None:
        reading = self._reading
        named = several if reading.prefix is None else reading.prefix
        prefix = f"[{pod}/{container}] " if named else ""
        path = PODS.path(self._namespace, pod, "log")
        async for line in lines(self._client.chunks(path, reading.params(container))):
            echo(f"{prefix}{line}")

    def _wanted(self, job: str) -> Wanted:
        return Wanted(
            resource=PODS, namespace=self._namespace, label_selector=self._reading.selector(job)
        )

    def _containers(self, pod: Object) -> Sequence[str]:
        chosen = self._reading.container
        names = [text(each, "name") for each in field(pod, "spec.containers", [])]
        if not chosen:
            return names
        inits = [text(each, "name") for each in field(pod, "spec.initContainers", [])]
        return [chosen] if chosen in {*names, *inits} else []


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Chunks as lines, with an unfinished last one. Bytes that are not UTF-8 are replaced."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def _has_started(pod: Object, container: str) -> bool:
    """Whether the container has started; before that, the API server refuses to read its log."""
    for kind in ("containerStatuses", "initContainerStatuses"):
        for status in field(pod, f"status.{kind}", []):
            if text(status, "name") == container:
                state = field(status, "state", {})
                return "running" in state or "terminated" in state
    return False


def _order(pod: Object) -> tuple[str, int, str]:
    labels = labels_of(pod)
    index = labels.get(_INDEX_LABEL, "")
    return labels.get(_TASK_LABEL, ""), int(index) if index.isdecimal() else 0, name_of(pod)
