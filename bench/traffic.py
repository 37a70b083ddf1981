"""Gangs that come at a rate, are bound, live for a while and go: the load of soak and upgrades.

Open loop: a gang comes when its time has come, whatever became of those before it, so that a suite
that falls behind is seen to fall behind. As their controller would, it makes pods again that were
deleted before the gang was whole: what a release deletes is not lost.
"""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from bench import load
from bench.live import percentile
from bench.load import Load
from bench.testbed import Bed
from tests.controlplane.client import ApiError

#: How often pods are looked at; what is measured are the watch's own instants.
_LOOK_S: Final = 0.05
#: A gang that is not whole by then is lost.
LOST_S: Final = 120.0
_AT_ONCE: Final = {"gracePeriodSeconds": 0}
_QUEUES_PATH: Final = "/apis/scheduling.volcano.sh/v1beta1/queues"
_CLASSES_PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_NOT_FOUND: Final = 404


@dataclass
class Coming:
    """One gang of the traffic; instants are monotonic, 0 for not yet."""

    prefix: str
    what: Load
    created_s: float = 0.0
    bound_s: float = 0.0
    #: Of a lost one.
    left: str = ""
    #: Members that were there, and how many of them were deleted by others and made again.
    seen: set[str] = field(default_factory=set)
    made_again: int = 0

    @property
    def latency_s(self) -> float:
        """From its last pod created to its last bound."""
        return self.bound_s - self.created_s


class Traffic:
    """`run` it as a task."""

    def __init__(
        self,
        bed: Bed,
        scheduler_name: str,
        *,
        size: int,
        per_s: float,
        life_s: float,
        new_names: bool = False,
    ):
        """With `new_names` each gang has a queue, a priority class, a role and labels that no gang
        had before, which go with it.
        """
        self.gangs: list[Coming] = []
        self._new_names = new_names
        self._bed = bed
        self._scheduler_name = scheduler_name
        self._what = Load(gangs=1, size=size)
        self._between_s = 1 / per_s
        self._life_s = life_s
        self._finished = False

    def finish(self) -> None:
        """Let no more gangs come; `run` ends with the last."""
        self._finished = True

    async def run(self, for_s: float) -> None:
        """Let gangs come for so long, then wait until the last is bound and gone, or lost."""
        began_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            due_s = began_s
            while due_s < began_s + for_s and not self._finished:
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                gang = Coming(prefix=self._bed.fresh_prefix(), what=self._what)
                self.gangs.append(gang)
                tasks.create_task(self._life(gang), name=f"gang {gang.prefix}")
                due_s += self._between_s

    def lost(self) -> list[str]:
        """Gangs that were never whole, with what was there of them in the end."""
        return [
            f"{gang.prefix} ({gang.left})"
            for gang in self.gangs
            if gang.created_s and not gang.bound_s
        ]

    def came_within(self, seconds: float) -> int:
        """How many gangs came within the last seconds."""
        since_s = time.monotonic() - seconds
        return sum(gang.created_s >= since_s for gang in self.gangs)

    def latencies_s(self, since_s: float = 0.0, until_s: float = float("inf")) -> list[float]:
        """Of the gangs whose last pod was created then."""
        return [
            gang.latency_s
            for gang in self.gangs
            if gang.bound_s and since_s <= gang.created_s < until_s
        ]

    async def _life(self, gang: Coming) -> None:
        bed, what = self._bed, gang.what
        group = load.pod_group(what, gang.prefix, 0)
        if self._new_names:
            await self._create_names(gang.prefix)
            group["spec"] |= {"queue": gang.prefix, "priorityClassName": gang.prefix}
        await bed.client.create(load.PODGROUPS_PATH, group)
        for member in range(what.size):
            await self._make(gang, member)
        gang.created_s = time.monotonic()
        names = load.pod_names(what, gang.prefix)
        while time.monotonic() < gang.created_s + LOST_S:
            bound_s = bed.watch.bound_s(names)
            if len(bound_s) == what.size:
                gang.bound_s = bound_s[-1]
                await asyncio.sleep(self._life_s)
                break
            await self._make_again(gang, names)
            await asyncio.sleep(_LOOK_S)
        else:
            there = sum(name in bed.watch.pods for name in names)
            gang.left = f"{there} pods of {what.size}, {len(bed.watch.bound_s(names))} bound"
        await self._gone(f"{load.PODS_PATH}/{name}" for name in names)
        await self._gone([f"{load.PODGROUPS_PATH}/{load.gang_name(gang.prefix, 0)}"])
        if self._new_names:
            await self._gone(f"{path}/{gang.prefix}" for path in (_QUEUES_PATH, _CLASSES_PATH))

    async def _create_names(self, name: str) -> None:
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "spec": {}}
        await self._bed.client.create(_QUEUES_PATH, {**queue, "metadata": {"name": name}})
        await self._bed.client.create(_CLASSES_PATH, {"metadata": {"name": name}, "value": 1})

    async def _make(self, gang: Coming, member: int) -> None:
        pod = load.pod(gang.what, gang.prefix, 0, member, self._scheduler_name)
        if self._new_names:
            pod["metadata"]["labels"][gang.prefix] = gang.prefix
            pod["metadata"]["annotations"]["volcano.sh/task-spec"] = gang.prefix
        await self._bed.client.create(load.PODS_PATH, pod)

    async def _make_again(self, gang: Coming, names: list[str]) -> None:
        there = self._bed.watch.pods
        gang.seen.update(name for name in names if name in there)
        for member, name in enumerate(names):
            if name in gang.seen and name not in there:
                gang.seen.remove(name)
                gang.made_again += 1
                await self._make(gang, member)

    async def _gone(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                await self._bed.client.delete(path, dict(_AT_ONCE))
            except ApiError as error:
                if error.status != _NOT_FOUND:
                    raise


def p(latencies_s: list[float], percent: int) -> float:
    """A percentile in milliseconds; 0 of nothing."""
    with suppress(ValueError):
        return percentile(latencies_s, percent) * 1e3
    return 0.0
