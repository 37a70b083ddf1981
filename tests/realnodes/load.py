"""A stream of small gangs, and how long each of them waited.

    python -m tests.realnodes.load KUBECONFIG REPORT

It creates a Job of two pods every three seconds, and deletes it some seconds after both have a
node. After SIGTERM it creates no more, and ends when all of them were bound. The report is replaced
whenever a gang is bound.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.processes import Component
from tests.realnodes.images import PAUSE
from tests.realnodes.networks import CONTROL, inside

_JOBS: Final = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
_PODS: Final = "/api/v1/namespaces/default/pods"
_LABEL: Final = "volcano.sh/job-name"
_PREFIX: Final = "load-"
_SIZE: Final = 2
_PACE_S: Final = 3.0
_RETRY_S: Final = 0.5
#: How long a gang stays after both pods have a node.
_STAY_S: Final = 4.0
#: For the gangs that are still waiting when the stream ends.
_END_S: Final = 120.0
_FIRST: Final = 3


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How the gangs of a stream fared.

    Attributes:
        waited_s: By gang, the seconds between its first request and the moment when both pods had a
            node.
        unbound: Gangs that are not bound yet.
        partly_bound_s: By gang, the longest time without a break in which one pod had a node.
        lost: Pods that disappeared although the stream had not deleted their Job.
        refused: What the API server answered to requests that it refused; each was repeated.
    """

    waited_s: dict[str, float]
    unbound: list[str]
    partly_bound_s: dict[str, float]
    lost: list[str]
    refused: list[str]


class LoadError(RuntimeError):
    """The stream ended by itself; the message has the end of its log."""


class Load:
    """The process that creates gangs."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        """Nothing runs before `start`; the folder is its own."""
        self._report = folder / "report.json"
        module = (sys.executable, "-m", "tests.realnodes.load", str(kubeconfig), str(self._report))
        self._process = Component("load", inside(CONTROL, *module), folder / "load.log")

    def start(self) -> None:
        """Begin to create gangs."""
        self._process.start()

    def is_established(self) -> bool:
        """Whether several gangs were bound already.

        Raises:
            LoadError: The process has ended.
        """
        if not self._process.is_running:
            raise LoadError(self._process.log_tail())
        return self._report.exists() and len(self._read().waited_s) >= _FIRST

    def end(self) -> Report:
        """End the stream and return what it found, when all gangs were bound or time was up.

        Raises:
            LoadError: The process failed.
        """
        self._process.stop(timeout_s=_END_S + 30.0)
        if self._process.exit_status != 0:
            raise LoadError(self._process.log_tail())
        return self._read()

    def kill(self) -> None:
        """End the process if it runs."""
        self._process.stop()

    def _read(self) -> Report:
        return msgspec.json.decode(self._report.read_bytes(), type=Report)


@contextmanager
def load(kubeconfig: Path, folder: Path) -> Iterator[Load]:
    """A stream that has started; it ends with the block at the latest."""
    folder.mkdir()
    stream = Load(kubeconfig, folder)
    stream.start()
    try:
        yield stream
    finally:
        stream.kill()


@dataclass
class _Gang:
    """What is known of one gang."""

    submitted_s: float
    bound_s: float | None = None
    deleted: bool = False
    #: UIDs of its pods that have a node.
    bound: set[str] = field(default_factory=set)
    partly_since_s: float | None = None
    partly_s: float = 0.0


class Gangs:
    """The gangs of a stream, as a watch of their pods shows them."""

    def __init__(self) -> None:
        self._gangs: dict[str, _Gang] = {}
        self._lost: list[str] = []
        self.refused: list[str] = []

    def submit(self, name: str, now_s: float) -> None:
        """Note the first request for a gang."""
        self._gangs[name] = _Gang(now_s)

    def observe(self, kind: str, pod: Object, now_s: float) -> bool:
        """Note an event of a watch; return whether a gang is complete by it."""
        metadata = pod["metadata"]
        gang = self._gangs.get(metadata.get("labels", {}).get(_LABEL, ""))
        if gang is None:
            return False
        uid, before = metadata["uid"], len(gang.bound)
        if kind == "DELETED":
            gang.bound.discard(uid)
            if not gang.deleted:
                self._lost.append(metadata["name"])
        elif pod["spec"].get("nodeName"):
            gang.bound.add(uid)
        if not gang.deleted:
            _time_partly_bound(gang, now_s)
        if gang.bound_s is None and before < len(gang.bound) == _SIZE:
            gang.bound_s = now_s
            return True
        return False

    def take_complete(self, now_s: float) -> list[str]:
        """The gangs whose stay is over, each once."""
        over = [
            name
            for name, gang in self._gangs.items()
            if gang.bound_s is not None and not gang.deleted and now_s - gang.bound_s > _STAY_S
        ]
        for name in over:
            self._gangs[name].deleted = True
        return over

    def all_deleted(self) -> bool:
        """Whether no gang is left."""
        return all(gang.deleted for gang in self._gangs.values())

    def report(self, now_s: float) -> Report:
        """What happened until now."""
        for gang in self._gangs.values():
            if gang.partly_since_s is not None:
                gang.partly_s = max(gang.partly_s, now_s - gang.partly_since_s)
        waited = {
            name: gang.bound_s - gang.submitted_s
            for name, gang in self._gangs.items()
            if gang.bound_s is not None
        }
        return Report(
            waited_s=waited,
            unbound=[name for name in self._gangs if name not in waited],
            partly_bound_s={name: gang.partly_s for name, gang in self._gangs.items()},
            lost=list(self._lost),
            refused=list(self.refused),
        )


def _time_partly_bound(gang: _Gang, now_s: float) -> None:
    partly = 0 < len(gang.bound) < _SIZE
    if partly and gang.partly_since_s is None:
        gang.partly_since_s = now_s
    elif not partly and gang.partly_since_s is not None:
        gang.partly_s = max(gang.partly_s, now_s - gang.partly_since_s)
        gang.partly_since_s = None


def _job(name: str) -> Object:
    container = {"name": "member", "image": PAUSE, "resources": {"requests": {"cpu": "1m"}}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    task = {"name": "member", "replicas": _SIZE, "template": {"spec": spec}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "tutti", "minAvailable": _SIZE, "tasks": [task]},
    }


class _Stream:
    """The tasks of the process."""

    def __init__(self, api: RawClient, report: Path) -> None:
        self._api = api
        self._path = report
        self._gangs = Gangs()
        self._ending = asyncio.Event()

    async def run(self) -> None:
        """Create gangs until SIGTERM, and end when none is left."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._ending.set)
        version = (await self._api.get(_PODS))["metadata"]["resourceVersion"]
        watching = asyncio.create_task(self._watch(version), name="watch")
        deleting = asyncio.create_task(self._delete(), name="delete")
        number = 0
        while not self._ending.is_set() and not watching.done() and not deleting.done():
            number += 1
            await self._submit(f"{_PREFIX}{number}")
            await asyncio.sleep(_PACE_S)
        self._ending.set()
        tasks = {watching, deleting}
        ended, _ = await asyncio.wait(tasks, timeout=_END_S, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
        watching.cancel()
        deleting.cancel()
        self._write()

    async def _submit(self, name: str) -> None:
        self._gangs.submit(name, time.monotonic())
        while True:
            try:
                await self._api.create(_JOBS, _job(name))
            except (ApiError, aiohttp.ClientError) as error:
                self._gangs.refused.append(f"{name}: {error}")
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def _watch(self, version: str) -> None:
        while True:
            # The server closes a watch after some minutes; the next one continues where it was.
            async for kind, pod in self._api.watch(_PODS, resourceVersion=version):
                version = pod["metadata"]["resourceVersion"]
                if self._gangs.observe(kind, pod, time.monotonic()):
                    self._write()

    async def _delete(self) -> None:
        while not (self._ending.is_set() and self._gangs.all_deleted()):
            for name in self._gangs.take_complete(time.monotonic()):
                await self._api.delete(f"{_JOBS}/{name}")
            await asyncio.sleep(_RETRY_S)

    def _write(self) -> None:
        report = self._gangs.report(time.monotonic())
        written = self._path.with_suffix(".new")
        written.write_text(json.dumps(msgspec.to_builtins(report)), "utf-8")
        written.rename(self._path)


async def _main(kubeconfig: Path, report: Path) -> None:
    async with RawClient(kubeconfig) as api:
        await _Stream(api, report).run()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), Path(sys.argv[2])))
