"""How fast the Job controller makes pods: jobs on a real API server, against a bare client.

    .venv/bin/python -m bench.controller [--jobs 20] [--pods 100] [--groups 0] [--runs 1]

The controller is a process of its own; a planner is played that admits every group at once, and
there is no scheduler, so that only creation is measured. Yardsticks of the same run, over as many
connections as the controller has writers (`bare_clients`): a client that does nothing but POST the
same pods, before and after (the bar); and one that sends all requests that the burst was seen to
need, afterwards: of small Jobs, statuses and groups are a large part.
`--groups` PodGroups of others stand by, to be known and kept in memory. Pods created per second
count from the first Job's creation to the last pod's; latency is each Job's own.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import uvloop

from bench.api_metrics import since, writes
from bench.bare_clients import NAMESPACE, a_job, admit, for_all, jobs_per_s, pods_per_s
from services.controller.reconciling.informer import Informer
from shared.bus.connection import Bus
from shared.bus.setup import ensure_streams
from shared.kinds.metadata import Metadata
from shared.kinds.podgroup import PodGroup
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO, PODS
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import CRDS_DIR
from tests.support.nats_server import running_nats_server
from tests.support.service_process import a_service
from tests.support.waiting import eventually

#: Of the ratio: less than this and the controller itself is what is slow.
RATIO_BAR: Final = 0.8
MEMORY_BAR_MB: Final = 300
_LIMIT_S: Final = 600.0


class ControllerRun(msgspec.Struct, frozen=True, kw_only=True):
    """One burst of jobs."""

    jobs: int
    pods_per_job: int
    groups: int
    pods_per_s: float
    #: The yardstick, before and after.
    bare_pods_per_s: float = 0.0
    ratio: float = 0.0
    #: Pods per second of a client that sends the same requests and does nothing else, afterwards.
    same_requests_per_s: float = 0.0
    same_requests_ratio: float = 0.0
    #: Writes that the API server counted in the burst, Leases included.
    sent: dict[str, int] = {}
    #: From a Job's creation to the last of its pods'.
    p50_s: float
    p99_s: float
    #: The controller's process at its largest.
    memory_mb: float
    cpu_ms_per_pod: float


class _Pod(msgspec.Struct, frozen=True):
    metadata: Metadata


async def measure(jobs: int, pods: int, groups: int) -> ControllerRun:
    """Run one burst on a control plane of its own."""
    with tempfile.TemporaryDirectory(prefix="tutti-bench-") as scratch, ControlPlane() as plane:
        plane.install_crds(CRDS_DIR)
        credentials = await load(str(plane.admin_kubeconfig))
        async with KubeClient(credentials) as client, running_nats_server() as nats:
            bus = await Bus.connect(nats.url, name="bench")
            try:
                await ensure_streams(bus)
                flags = (f"--kubeconfig={plane.admin_kubeconfig}", "--controllers=job")
                before_per_s = await pods_per_s(client, jobs * pods)
                await _make_groups(client, groups)
                log = Path(scratch) / "controller.log"
                began = await _writes(client)
                async with a_service("controller", bus, nats.url, log, *flags) as process:
                    found = await _burst(client, process.pid, jobs, pods, groups)
                sent = since(began, await _writes(client))
                after_per_s = await pods_per_s(client, jobs * pods)
                bare_per_s = (before_per_s + after_per_s) / 2
                statuses = sent.get("PUT jobs/status", 0)
                same_per_s = pods * await jobs_per_s(client, jobs, pods, statuses)
                return msgspec.structs.replace(
                    found,
                    sent=sent,
                    bare_pods_per_s=round(bare_per_s, 1),
                    ratio=round(found.pods_per_s / bare_per_s, 3),
                    same_requests_per_s=round(same_per_s, 1),
                    same_requests_ratio=round(found.pods_per_s / same_per_s, 3),
                )
            finally:
                await bus.close()


async def _writes(client: KubeClient) -> dict[str, int]:
    reply = await client.request("GET", "/metrics")
    return writes(reply.body.decode())


async def _burst(client: KubeClient, pid: int, jobs: int, pods: int, groups: int) -> ControllerRun:
    seen = _Seen(client, pods)
    tasks = [asyncio.create_task(one, name="watch") for one in seen.runs()]
    controller = psutil.Process(pid)
    memory_bytes = [controller.memory_info().rss]
    memory = asyncio.create_task(_follow_memory(controller, memory_bytes), name="memory")
    try:
        await seen.synced()
        cpu_s = sum(controller.cpu_times()[:2])
        began_s = time.monotonic()

        async def submit(index: int) -> None:
            name = f"job-{index}"
            seen.began_s[name] = time.monotonic()
            await client.create(JOBS_VOLCANO, a_job(name, pods), namespace=NAMESPACE)

        await for_all(submit, range(jobs))
        await eventually(lambda: len(seen.took_s) == jobs, timeout_s=_LIMIT_S)
        took_s = time.monotonic() - began_s
        used_s = sum(controller.cpu_times()[:2]) - cpu_s
    finally:
        for task in (*tasks, memory):
            task.cancel()
        await asyncio.wait([*tasks, memory])
    lasted = sorted(seen.took_s.values())
    return ControllerRun(
        jobs=jobs,
        pods_per_job=pods,
        groups=groups,
        pods_per_s=round(jobs * pods / took_s, 1),
        p50_s=round(lasted[len(lasted) // 2], 2),
        p99_s=round(lasted[min(len(lasted) - 1, len(lasted) * 99 // 100)], 2),
        memory_mb=round(max(memory_bytes) / 1e6, 1),
        cpu_ms_per_pod=round(used_s / (jobs * pods) * 1e3, 3),
    )


class _Seen:
    """Watches as a scheduler would: admits groups, and counts the pods of each job."""

    def __init__(self, client: KubeClient, pods: int) -> None:
        self._client = client
        self._pods_each = pods
        self.began_s: dict[str, float] = {}
        self.took_s: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self._groups = Informer(client, PODGROUPS_VOLCANO, PodGroup)
        self._pods = Informer(client, PODS, _Pod, label_selector="volcano.sh/job-name")
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._groups.on_change(self._group)
        self._pods.on_change(self._pod)

    def runs(self) -> list[Any]:
        """What has to run."""
        return [self._groups.run(), self._pods.run(), *(self._admit() for _ in range(4))]

    async def synced(self) -> None:
        """Wait until what was there is seen."""
        await self._groups.synced.wait()
        await self._pods.synced.wait()

    def _group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        if old is None and new is not None and new.metadata.name.startswith("job-"):
            self._waiting.put_nowait(new.metadata.name)

    def _pod(self, old: _Pod | None, new: _Pod | None) -> None:
        if old is not None or new is None:
            return
        job = new.metadata.labels["volcano.sh/job-name"]
        self._counts[job] += 1
        if self._counts[job] == self._pods_each and job in self.began_s:
            self.took_s[job] = time.monotonic() - self.began_s[job]

    async def _admit(self) -> None:
        while True:
            name = await self._waiting.get()
            await admit(self._client, name)


async def _follow_memory(process: psutil.Process, seen_bytes: list[int]) -> None:
    """Look at a process's memory until cancelled."""
    while True:
        seen_bytes.append(process.memory_info().rss)
        await asyncio.sleep(0.1)


async def _make_groups(client: KubeClient, count: int) -> None:
    async def create(index: int) -> None:
        manifest = {
            "apiVersion": PODGROUPS_VOLCANO.api_version,
            "kind": "PodGroup",
            "metadata": {"name": f"other-{index}"},
            "spec": {"minMember": 8, "minTaskMember": {"worker": 8}, "queue": "default"},
            "status": {"phase": "Running", "running": 8},
        }
        await client.create(PODGROUPS_VOLCANO, manifest, namespace=NAMESPACE)

    await for_all(create, range(count))


def main() -> int:
    """Measure, and print one line of JSON per run; status 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--pods", type=int, default=100, help="pods of each job")
    parser.add_argument("--groups", type=int, default=0, help="PodGroups of others that stand by")
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    missed = False
    for _ in range(arguments.runs):
        found = uvloop.run(measure(arguments.jobs, arguments.pods, arguments.groups))
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        sys.stdout.flush()
        missed |= found.ratio < RATIO_BAR or found.memory_mb >= MEMORY_BAR_MB
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
