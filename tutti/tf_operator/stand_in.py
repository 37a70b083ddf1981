"""A STAND-IN for Kubeflow's tf-operator of 2018-2020, for the embedded cluster only.

It creates the same pods for a TFJob (kubeflow.org v1alpha2, v1beta1, v1) as that operator: names,
labels, controller reference, TF_CONFIG, template and annotations. It declares the gang in one of
the operator's ways: `podgroup` (--enable-gang-scheduling: a PodGroup of kube-batch's API group,
named like the job), `pdb` (before that: a PodDisruptionBudget controlled by the job) or `off`. It
re-creates missing pods, ends the job when its workers have succeeded or a pod has failed, and then
applies cleanPodPolicy. It creates no Services and implements no backoff limit, deadline or TTL.
"""

import asyncio
from pathlib import Path
from typing import Final, Literal, Self

from shared.contracts.annotations import GROUP_NAME
from tutti.api.objects import field
from tutti.cluster.admission import Call
from tutti.cluster.api import Api
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj, clone, controller_of, encode, now_text, set_condition
from tutti.cluster.resources import BUDGETS, PODS, Key
from tutti.cluster.store import Change

Gang = Literal["podgroup", "pdb", "off"]
CRD_FILE: Final = Path(__file__).with_name("tfjobs.yaml")
TFJOBS: Key = ("kubeflow.org", "tfjobs")
GROUPS: Key = ("scheduling.incubator.k8s.io", "podgroups")
USER = "system:serviceaccount:kubeflow:tf-job-operator"
RETRY_S = 0.5
_PORT = 2222
_PHASES = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
Pods = dict[str, Obj]  # by name


class TfOperator:
    """The stand-in: an asynchronous context manager inside which it works. Make it before the first
    TFJob.

    `gang` may be set while it runs; it applies to every job that is reconciled afterwards. On exit
    an error that ended its task is raised.
    """

    def __init__(self, api: Api, gang: Gang = "podgroup") -> None:
        self._api = api
        self.gang: Gang = gang
        self._task: asyncio.Task[None] | None = None
        self._due: dict[tuple[str, str], None] = {}  # (namespace, name) of jobs to reconcile
        self._wake = asyncio.Event()
        #: While it is cleared no job is reconciled; pending jobs follow when it is set again.
        self.active = asyncio.Event()
        self.active.set()
        api.store.listeners.append(self._on_change)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="tf-operator")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.result()  # raises the error that ended it

    async def _run(self) -> None:
        """Reconcile until cancelled. A failure is retried: a refusal, a missing CRD."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                await self.active.wait()
                job = next(iter(self._due))
                del self._due[job]
                try:
                    await self._reconcile(*job)
                except (ApiError, KeyError):
                    asyncio.get_running_loop().call_later(RETRY_S, self._enqueue, job)

    def _on_change(self, key: Key, change: Change) -> None:
        metadata = change.stored.obj["metadata"]
        owner = controller_of(change.stored.obj) if key == PODS else None
        if key == TFJOBS and change.type != "DELETED":
            self._enqueue((metadata["namespace"], metadata["name"]))
        elif owner is not None and owner["kind"] == "TFJob":
            self._enqueue((metadata["namespace"], owner["name"]))

    def _enqueue(self, job: tuple[str, str]) -> None:
        self._due[job] = None
        self._wake.set()

    async def _reconcile(self, namespace: str, name: str) -> None:
        row = self._api.store.get(TFJOBS, namespace, name)
        if row is None or row.obj["metadata"].get("deletionTimestamp"):
            return
        job, pods = row.obj, {}
        for each in self._api.store.rows(PODS, namespace):
            if (controller_of(each.obj) or {}).get("uid") == job["metadata"]["uid"]:
                pods[each.obj["metadata"]["name"]] = each.obj
        ended = [kind for kind in _conditions(job) if kind in ("Succeeded", "Failed")]
        outcome = ended[0] if ended else _outcome(job, pods)
        if outcome is None:
            await self._declare_gang(job)
            for kind, index, pod_name in _members(job):
                if pod_name not in pods:
                    await self._create(PODS, _pod(job, kind, index, pod_name, self.gang))
        if not ended:
            await self._report(job, pods, outcome)
        if outcome is not None:
            await self._clean(job, pods)

    async def _declare_gang(self, job: Obj) -> None:
        total = len(_members(job))
        if self.gang == "podgroup":
            kind = {"apiVersion": f"{GROUPS[0]}/v1alpha1", "kind": "PodGroup"}
            await self._create(GROUPS, {**kind, **_owned(job), "spec": {"minMember": total}})
        elif self.gang == "pdb" and total > 1:  # the operator created none for a single replica
            spec = {"minAvailable": total, "selector": {"matchLabels": _labels(job)}}
            kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
            await self._create(BUDGETS, {**kind, **_owned(job), "spec": spec})

    async def _create(self, key: Key, obj: Obj) -> None:
        call = self._api.call(key[1], obj["metadata"]["namespace"], group=key[0], user=USER)
        try:
            await self._api.create(call, obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _report(self, job: Obj, pods: Pods, outcome: str | None) -> None:
        counts: Obj = {kind: {} for kind in _replicas(job)}
        for kind, _, name in _members(job):
            phase = field(pods.get(name), "status.phase")
            for key in (key for key, value in _PHASES.items() if value == phase):
                counts[kind][key] = counts[kind].get(key, 0) + 1

        def change(new: Obj) -> None:
            status: Obj = new.setdefault("status", {})
            status.setdefault("startTime", now_text())
            status["replicaStatuses"] = counts
            set_condition(status, "Created", "True", reason="TFJobCreated")
            if outcome is not None:
                status["completionTime"] = now_text()
                if "Running" in _conditions(new):
                    set_condition(status, "Running", "False", reason=f"TFJob{outcome}")
                set_condition(status, outcome, "True", reason=f"TFJob{outcome}")
            elif pods and all(field(pod, "status.phase") == "Running" for pod in pods.values()):
                set_condition(status, "Running", "True", reason="TFJobRunning")

        await self._api.modify(self._call(TFJOBS, job, job["metadata"]["name"], "status"), change)

    async def _clean(self, job: Obj, pods: Pods) -> None:
        policy, name = job["spec"].get("cleanPodPolicy") or "Running", job["metadata"]["name"]
        phases = {"All": (*_PHASES.values(), "Pending"), "Running": ("Running", "Pending")}
        gone = [
            (PODS, each)
            for each, pod in pods.items()
            if field(pod, "status.phase") in phases.get(policy, ())
        ]
        if self.gang != "off":
            gone.append((GROUPS if self.gang == "podgroup" else BUDGETS, name))
        for key, each in gone:
            try:
                await self._api.delete(self._call(key, job, each), {})
            except ApiError as error:
                if error.code != 404:
                    raise

    def _call(self, key: Key, job: Obj, name: str, sub: str = "") -> Call:
        namespace = job["metadata"]["namespace"]
        return self._api.call(key[1], namespace, name, group=key[0], sub=sub, user=USER)


def _replicas(job: Obj) -> dict[str, Obj]:
    """Each replica type's spec, in the job's order."""
    return {kind: spec or {} for kind, spec in (field(job, "spec.tfReplicaSpecs") or {}).items()}


def _members(job: Obj) -> list[tuple[str, int, str]]:
    """(type, index, pod's name) of all replicas."""
    name = job["metadata"]["name"]
    return [
        (kind, index, f"{name}-{kind.lower()}-{index}")
        for kind, spec in _replicas(job).items()
        for index in range(spec.get("replicas", 1))
    ]


def _conditions(job: Obj) -> list[str]:
    """The types of the conditions that are True."""
    conditions: list[Obj] = field(job, "status.conditions") or []
    return [item["type"] for item in conditions if item["status"] == "True"]


def _outcome(job: Obj, pods: Pods) -> str | None:
    """Succeeded if the chief has, or without a chief all workers; Failed if any pod has.

    Kubelets restart containers by the restartPolicy, so a failed pod is final.
    """
    kinds = _replicas(job)
    deciding = next((kind for kind in ("Chief", "Master") if kind in kinds), "Worker")
    names = [name for kind, _, name in _members(job) if kind == deciding]
    if any(field(pod, "status.phase") == "Failed" for pod in pods.values()):
        return "Failed"
    done = [field(pods.get(name), "status.phase") == "Succeeded" for name in names]
    return "Succeeded" if done and all(done) else None


def _labels(job: Obj) -> dict[str, str]:
    """The labels of a job's pods, those of all versions of the operator together."""
    name, key = job["metadata"]["name"], f"{job['metadata']['namespace']}-{job['metadata']['name']}"
    old = {"group_name": TFJOBS[0], "tf_job_name": name, "tf_job_key": key}
    return old | {"group-name": TFJOBS[0], "job-name": name, "tf-job-name": name}


def _owned(job: Obj) -> Obj:
    """The metadata of an object that the job owns and that has the job's name."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    owner = {"apiVersion": job["apiVersion"], "kind": "TFJob", "name": name}
    owner |= {"uid": job["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
    return {"metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]}}


def _pod(job: Obj, kind: str, index: int, name: str, gang: Gang) -> Obj:
    replica = _replicas(job)[kind]
    template = clone(replica.get("template") or {})
    spec: Obj = template.get("spec") or {}
    restart = replica.get("restartPolicy") or spec.get("restartPolicy") or "Never"
    spec["restartPolicy"] = "Never" if restart == "ExitCode" else restart
    metadata: Obj = _owned(job)["metadata"] | {"name": name}
    place = {"tf-replica-type": kind.lower(), "tf-replica-index": str(index)}
    metadata["labels"] = (field(template, "metadata.labels") or {}) | _labels(job) | place
    metadata["annotations"] = dict(field(template, "metadata.annotations") or {})
    if gang == "podgroup":
        metadata["annotations"].setdefault(GROUP_NAME, job["metadata"]["name"])
    hosts: dict[str, list[str]] = {}
    for each, _, member in _members(job):
        address = f"{member}.{metadata['namespace']}.svc:{_PORT}"
        hosts.setdefault(each.lower(), []).append(address)
    task = {"type": kind.lower(), "index": index}
    config = encode({"cluster": hosts, "task": task, "environment": "cloud"}).decode()
    for container in spec.get("containers") or ():
        if container.get("name") == "tensorflow":
            variable = {"name": "TF_CONFIG", "value": config}
            container["env"] = [*(container.get("env") or ()), variable]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
