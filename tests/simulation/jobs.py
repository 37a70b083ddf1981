"""Volcano Jobs under everything that goes wrong: two replicas of the real Job controller, killed at
any effect, on an API server that loses requests and answers.

The parts that admit groups and run pods are played here, and so are failures: pods fail, are
evicted, or are released by a binder. Checked at every write: phases follow the tables, versions and
retries only grow, a pod is killed only after its job has said so, no pod is made beside a living
one. In the end every job has ended, restarted no more often than something befell it, with nothing
left.
"""

import asyncio
import hashlib
from typing import Final

from services.controller.job_controller import JobReconciler
from services.controller.other_controllers import OtherControllers
from services.controller.reconciling.controller import Controller, Runtime
from services.controller.reconciling.sharding import Shards
from shared.kube.resources import (
    COMMANDS,
    CONFIGMAPS,
    CORE_EVENTS,
    JOBS_VOLCANO,
    LEASES,
    NETWORK_POLICIES,
    PODGROUPS_VOLCANO,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
)
from tests.simulation.kube_api import ENDED, ApiServer, KubeRates, delete
from tests.simulation.kube_client import SimKubeClient
from tests.simulation.kube_server import Etcd, Obj, Write, with_
from tests.simulation.loop import Dice, Generation, SimLoop
from tests.simulation.patches import on_virtual_time

NAMESPACE: Final = "work"
STORM_S: Final = 25.0
CALM_S: Final = 120.0
_JOBS: Final = 6
_REPLICAS: Final = ("controller-0", "controller-1")
#: From → to, as the tables say; "" is a new job.
_MOVES: Final = {
    "": {"Pending"},
    "Pending": {"Running", "Restarting", "Aborting"},
    "Running": {"Pending", "Restarting", "Aborting", "Completed", "Failed"},
    "Restarting": {"Pending", "Failed", "Aborting"},
    "Aborting": {"Aborted", "Restarting"},
    "Aborted": {"Restarting"},
}
_FINAL: Final = {"Completed", "Failed"}


class JobRun:
    """One run of one seed."""

    def __init__(
        self, seed: int, *, befalls: tuple[str, ...] = ("fail", "evict", "release")
    ) -> None:
        """`befalls`: what may happen to pods."""
        self.loop = SimLoop(Dice(seed))
        self.rng = self.loop.dice.rng("jobs")
        kinds = [JOBS_VOLCANO, PODGROUPS_VOLCANO, PODS, COMMANDS, PRIORITY_CLASSES, CONFIGMAPS]
        self.etcd = Etcd(self.loop, [*kinds, SERVICES, NETWORK_POLICIES, CORE_EVENTS, LEASES])
        self.api = ApiServer(self.etcd, on_fault=lambda _kind: None)
        self.problems: list[str] = []
        self.kills = 0
        #: Job -> what befell its pods that counts against it.
        self.befallen: dict[str, int] = {}
        self.released = 0
        self._befalls = befalls
        self._storm = True
        self._digest = hashlib.sha256()
        self.etcd.observers += [self._check, self._play]

    def run(self) -> str:
        """Run to the end; returns a digest of everything that was written."""
        with on_virtual_time(self.loop):
            self.api.rates = KubeRates(
                lost_request=0.02,
                lost_reply=0.03,
                throttled=0.02,
                broken_applied=0.02,
                watch_late=0.05,
                watch_cut=0.01,
            )
            for name in _REPLICAS:
                self._start(name)
            for number in range(_JOBS):
                self.loop.at(self.rng.random() * 8.0, self._submit, number)
            self.loop.run_for(STORM_S)
            self._storm = False
            self.api.rates = KubeRates()
            self.loop.run_until(self._over, limit_s=CALM_S, every_s=0.5)
            self._judge()
        self.loop.discard()
        return self._digest.hexdigest()[:16]

    # ---- the controllers

    def _start(self, name: str) -> None:
        made = self.loop.incarnate(name)
        if self._storm:
            made.kill_at_effect = self.rng.randint(3, 60)
        made.on_death.append(lambda: self._died(name))
        task = self.loop.spawn(made, self._live(made))
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nothing but a kill ends a controller."""
        self.problems.append(f"a controller ended: {task}")

    def _died(self, name: str) -> None:
        self.kills += 1
        self.loop.at(0.2 + self.rng.random(), self._start, name)

    async def _live(self, generation: Generation) -> None:
        client = SimKubeClient(self.api, generation)
        runtime = Runtime(client, writes_per_s=1_000)
        shards = Shards(
            client,
            generation.name,
            ["job"],
            namespace="kube-system",
            others=OtherControllers(client, ()),
        )
        controller = Controller(JobReconciler(runtime, ("volcano",)), shards)
        async with asyncio.TaskGroup() as group:
            group.create_task(shards.run(), name="shards")
            group.create_task(runtime.run(), name="runtime")
            group.create_task(controller.run(), name="controller")

    # ---- the world

    def _submit(self, number: int) -> None:
        container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template = {"spec": {"containers": [container]}}
        action = self.rng.choice(("RestartJob", "RestartJob", "RestartTask", "RestartPod"))
        tasks = [
            {"name": name, "replicas": self.rng.randint(1, 3), "template": template}
            for name in ("x", "y")
        ]
        manifest = {
            "apiVersion": JOBS_VOLCANO.api_version,
            "kind": "Job",
            "metadata": {"name": f"j{number}", "namespace": NAMESPACE, "generation": 1},
            "spec": {
                "maxRetry": 100,
                "plugins": {"svc": []},
                "tasks": tasks,
                "policies": [{"events": ["PodFailed", "PodEvicted"], "action": action}],
            },
        }
        self.etcd.create(JOBS_VOLCANO, manifest, by="user")

    def _play(self, write: Write) -> None:
        """Those that act on groups and pods do so a little later."""
        late_s = 0.05 + self.rng.random() * 0.4
        if write.type == "ADDED" and write.resource == PODGROUPS_VOLCANO:
            self.loop.at(late_s, self._set, write, {"phase": "Inqueue"})
        elif write.type == "ADDED" and write.resource == PODS:
            self.loop.at(late_s, self._begin, write)
        elif write.type == "MODIFIED" and write.resource == PODS and write.old is not None:
            going = write.new["metadata"].get("deletionTimestamp")
            if going and not write.old["metadata"].get("deletionTimestamp"):
                self.loop.at(late_s, self._end, write)

    def _set(self, write: Write, status: Obj) -> None:
        self.etcd.change(
            write.resource, write.new, lambda now: with_(now, status=status), by="world"
        )

    def _begin(self, write: Write) -> None:
        """A pod is bound and runs; then it fails, or does its work."""
        started = self.etcd.change(
            PODS,
            write.new,
            lambda now: with_(now, spec={"nodeName": "n"}, status={"phase": "Running"}),
            by="kubelet",
        )
        if started is None:
            return
        what = self.rng.choice(self._befalls) if self._befalls else ""
        if what and self._storm and self.rng.random() < 0.25:
            soon_s = 0.2 if what == "release" else 3.0
            self.loop.at(self.rng.random() * soon_s, getattr(self, f"_{what}"), write)
        else:
            self.loop.at(2.0 + self.rng.random() * 4.0, self._succeed, write)

    def _alive(self, write: Write) -> Obj | None:
        metadata = write.new["metadata"]
        pod = self.etcd.get(PODS, NAMESPACE, metadata["name"])
        if pod is None or pod["metadata"]["uid"] != metadata["uid"]:
            return None
        ended = (pod.get("status") or {}).get("phase") in ENDED or pod["metadata"].get(
            "deletionTimestamp"
        )
        return None if ended else pod

    def _succeed(self, write: Write) -> None:
        pod = self._alive(write)
        if pod is None:
            return
        # Its work is done together: no pod ends before all of its job run.
        job = self.etcd.get(JOBS_VOLCANO, NAMESPACE, _job_of(pod))
        phase = ((job or {}).get("status") or {}).get("state", {}).get("phase")
        if phase == "Running":
            self._set(write, {"phase": "Succeeded"})
        else:
            self.loop.at(1.0, self._succeed, write)

    def _fail(self, write: Write) -> None:
        if self._alive(write) is not None:
            self._count(write)
            ended = {"state": {"terminated": {"exitCode": 1}}}
            self._set(write, {"phase": "Failed", "containerStatuses": [ended]})

    def _evict(self, write: Write) -> None:
        pod = self._alive(write)
        if pod is not None:
            self._count(write)
            delete(self.etcd, PODS, pod, by="user")

    def _release(self, write: Write) -> None:
        """As a binder does it to a gang that never was whole: the mark first, then the deletion."""
        name = _job_of(write.new)
        job = self.etcd.get(JOBS_VOLCANO, NAMESPACE, name)
        starting = any(
            (pod.get("status") or {}).get("phase") != "Running"
            for pod in self.etcd.all(PODS)
            if _job_of(pod) == name
        )
        if self._alive(write) is None or job is None or _phase(job) != "Pending" or not starting:
            self.loop.at(2.0, self._succeed, write)
            return
        self.released += 1
        mark = {"type": "DisruptionTarget", "status": "True", "reason": "GangReleased"}
        self._set(write, {"conditions": [mark]})
        self.loop.at(self.rng.random() * 0.1, self._delete, write)

    def _delete(self, write: Write) -> None:
        pod = self._alive(write)
        if pod is not None:
            delete(self.etcd, PODS, pod, by="binder")

    def _end(self, write: Write) -> None:
        """Its kubelet ends a pod that is being deleted: mostly it is seen to end first."""
        pod = self.etcd.get(PODS, NAMESPACE, write.new["metadata"]["name"])
        if pod is None or pod["metadata"]["uid"] != write.new["metadata"]["uid"]:
            return
        if (pod.get("status") or {}).get("phase") not in ENDED and self.rng.random() < 0.7:
            # Some programs end well because they are asked to end.
            code = self.rng.choice((0, 143))
            ended = {"state": {"terminated": {"exitCode": code}}}
            phase = "Failed" if code else "Succeeded"
            self._set(write, {"phase": phase, "containerStatuses": [ended]})
        self.loop.at(self.rng.random() * 0.2, self._gone, pod)

    def _gone(self, pod: Obj) -> None:
        self.etcd.remove(PODS, pod, by="kubelet")

    def _count(self, write: Write) -> None:
        name = _job_of(write.new)
        self.befallen[name] = self.befallen.get(name, 0) + 1

    # ---- what must hold

    def _check(self, write: Write) -> None:
        metadata = write.new["metadata"]
        self._digest.update(f"{write.at_ms} {metadata['name']} {write.verb}".encode())
        if write.resource == JOBS_VOLCANO and write.old is not None:
            self._check_job(write.old, write.new)
        elif write.resource == PODS and write.by in _REPLICAS and write.verb == "delete":
            self._check_kill(write.old or {})

    def _check_job(self, old: Obj, new: Obj) -> None:
        name = new["metadata"]["name"]
        before, after = old.get("status") or {}, new.get("status") or {}
        was, now = (one.get("state", {}).get("phase", "") for one in (before, after))
        if was != now and now not in _MOVES.get(was, set()):
            self.problems.append(f"{name}: from {was} to {now}")
        for count in ("version", "retryCount"):
            if after.get(count, 0) < before.get(count, 0):
                self.problems.append(f"{name}: {count} fell to {after.get(count, 0)}")

    def _check_kill(self, pod: Obj) -> None:
        """A controller kills a pod only once that is written down."""
        job = self.etcd.get(JOBS_VOLCANO, NAMESPACE, _job_of(pod))
        status = (job or {}).get("status") or {}
        notes = pod["metadata"]["annotations"]
        marked = notes.get("volcano.sh/controller-out-of-sync") == "true"
        older = int(notes["volcano.sh/job-version"]) < status.get("version", 0)
        if not (marked or older or status.get("state", {}).get("phase") in _FINAL):
            self.problems.append(f"{pod['metadata']['name']}: killed without a word")

    def _jobs(self) -> list[Obj]:
        return self.etcd.all(JOBS_VOLCANO)

    def _over(self) -> bool:
        """Every job has ended and is cleaned up."""
        if self.etcd.all(PODGROUPS_VOLCANO) or self.etcd.all(CONFIGMAPS):
            return False
        return all(_phase(job) in _FINAL for job in self._jobs())

    def _judge(self) -> None:
        for job in self._jobs():
            name, status = job["metadata"]["name"], job.get("status") or {}
            if _phase(job) != "Completed":
                self.problems.append(f"{name}: ends {_phase(job) or 'untouched'}")
            if status.get("retryCount", 0) > self.befallen.get(name, 0):
                self.problems.append(
                    f"{name}: {status['retryCount']} retries for {self.befallen.get(name, 0)}"
                )
        left = [
            pod["metadata"]["name"]
            for pod in self.etcd.all(PODS)
            if (pod.get("status") or {}).get("phase") not in ENDED
        ]
        if left:
            self.problems.append(f"left alive: {left}")
        if self.etcd.all(PODGROUPS_VOLCANO):
            self.problems.append("groups are left")


def _phase(job: Obj) -> str:
    return str((job.get("status") or {}).get("state", {}).get("phase", ""))


def _job_of(pod: Obj) -> str:
    return str(pod["metadata"]["labels"]["volcano.sh/job-name"])
