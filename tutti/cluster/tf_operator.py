"""A STAND-IN for Kubeflow's tf-operator of 2018-2020, for the embedded cluster only; it is not that operator.

It turns a TFJob (kubeflow.org v1alpha2, v1beta1, v1) into the pods that operator made: names, labels of the version, controller
reference, TF_CONFIG, template and annotations as written. How it asks for a gang is what its history offers: `podgroup`
(--enable-gang-scheduling: a PodGroup of kube-batch's group, named as the job), `pdb` (the older way: a PodDisruptionBudget
controlled by the job) or `off`. It re-creates missing pods, ends the job when its workers have succeeded or one has failed for
good, and then keeps cleanPodPolicy. It makes no Services and knows no backoff limit, deadline or TTL.
"""

import asyncio
from typing import Literal

from tutti.cluster.api import Api
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj, clone, controller_of, dig, encode, now_text, set_condition
from tutti.cluster.resources import PODS, Key
from tutti.cluster.store import Change

Gang = Literal["podgroup", "pdb", "off"]
GROUP = "kubeflow.org"
TFJOBS: Key = (GROUP, "tfjobs")
GROUP_NAME = "scheduling.k8s.io/group-name"
USER = "system:serviceaccount:kubeflow:tf-job-operator"
RETRY_S = 0.5
_PORT = 2222
_CHIEFS = ("Chief", "Master")


def _open(**properties: Obj) -> Obj:
    """The schema of an object with these fields and any others."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {**anything, "properties": properties}


# As much as this file reads; the rest of a template is judged when its pods are created.
_TEXTS: Obj = {"type": "object", "additionalProperties": {"type": "string"}}
_TEMPLATE = _open(
    metadata=_open(labels=_TEXTS, annotations=_TEXTS),
    spec=_open(
        containers={"type": "array", "items": _open(env={"type": "array", "items": _open()})}
    ),
)
_REPLICA = _open(
    replicas={"type": "integer", "minimum": 0}, restartPolicy={"type": "string"}, template=_TEMPLATE
)
_SPEC = _open(
    tfReplicaSpecs={"type": "object", "additionalProperties": _REPLICA},
    cleanPodPolicy={"type": "string"},
)
_SCHEMA = _open(spec=_SPEC)
CRD: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tfjobs.kubeflow.org"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "TFJob", "plural": "tfjobs", "singular": "tfjob"},
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v1",
                "schema": {"openAPIV3Schema": _SCHEMA},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
            for version in ("v1alpha2", "v1beta1", "v1")
        ],
    },
}


class TfOperator:
    """The stand-in. Make it before the first TFJob, then `run` it in a task."""

    def __init__(self, api: Api, gang: Gang = "podgroup") -> None:
        self._api = api
        self._gang = gang
        self._due: dict[tuple[str, str], None] = {}  # (namespace, name) of jobs to look at
        self._wake = asyncio.Event()
        api.store.listeners.append(self._heard)

    async def run(self) -> None:
        """Works until it is cancelled. What fails is tried again: a missing CRD, a refusal, a conflict."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                job = next(iter(self._due))
                del self._due[job]
                try:
                    await self._reconcile(*job)
                except (ApiError, KeyError):
                    asyncio.get_running_loop().call_later(RETRY_S, self._look_at, job)

    def _heard(self, key: Key, change: Change) -> None:
        metadata = change.stored.obj["metadata"]
        owner = controller_of(change.stored.obj) if key == PODS else None
        if key == TFJOBS and change.type != "DELETED":
            self._look_at((metadata["namespace"], metadata["name"]))
        elif owner is not None and owner["kind"] == "TFJob":
            self._look_at((metadata["namespace"], owner["name"]))

    def _look_at(self, job: tuple[str, str]) -> None:
        self._due[job] = None
        self._wake.set()

    async def _reconcile(self, namespace: str, name: str) -> None:
        row = self._api.store.get(TFJOBS, namespace, name)
        if row is None or row.obj["metadata"].get("deletionTimestamp"):
            return
        job = row.obj
        uid = job["metadata"]["uid"]
        pods = {
            row.obj["metadata"]["name"]: row.obj
            for row in self._api.store.rows(PODS, namespace)
            if (controller_of(row.obj) or {}).get("uid") == uid
        }
        outcome = _ended(job) or _outcome(job, pods)
        if outcome is None:
            await self._declare_gang(job)
            for kind, replica in _replicas(job):
                for index in range(replica.get("replicas", 1)):
                    if _pod_name(job, kind, index) not in pods:
                        await self._create(
                            "pods", "", _pod(job, kind, index, self._gang), namespace
                        )
        await self._report(job, pods, outcome)
        if outcome is not None:
            await self._clean(job, pods)

    async def _declare_gang(self, job: Obj) -> None:
        total = sum(replica.get("replicas", 1) for _, replica in _replicas(job))
        if self._gang == "podgroup":
            group = {
                "apiVersion": "scheduling.incubator.k8s.io/v1alpha1",
                "kind": "PodGroup",
                "spec": {"minMember": total},
            }
            await self._create(
                "podgroups",
                "scheduling.incubator.k8s.io",
                group | _owned(job),
                job["metadata"]["namespace"],
            )
        elif self._gang == "pdb" and total > 1:  # it made none for a single replica
            spec = {"minAvailable": total, "selector": {"matchLabels": _labels(job)}}
            budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}
            await self._create(
                "poddisruptionbudgets", "policy", budget | _owned(job), job["metadata"]["namespace"]
            )

    async def _create(self, plural: str, group: str, obj: Obj, namespace: str) -> None:
        try:
            await self._api.create(self._api.call(plural, namespace, group=group, user=USER), obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _report(self, job: Obj, pods: dict[str, Obj], outcome: str | None) -> None:
        metadata = job["metadata"]
        phases = {name: dig(pod, "status.phase") for name, pod in pods.items()}

        def count(kind: str, phase: str) -> int:
            return sum(
                p == phase and dig(pods[name], "metadata.labels")["tf-replica-type"] == kind.lower()
                for name, p in phases.items()
            )

        def change(new: Obj) -> None:
            status: Obj = new.setdefault("status", {})
            status.setdefault("startTime", now_text())
            if not _ended(job):
                counted = (("active", "Running"), ("succeeded", "Succeeded"), ("failed", "Failed"))
                status["replicaStatuses"] = {
                    kind: {key: number for key, phase in counted if (number := count(kind, phase))}
                    for kind, _ in _replicas(job)
                }
            set_condition(status, "Created", "True", reason="TFJobCreated")
            if outcome is not None:
                status.setdefault("completionTime", now_text())
                if any(item["type"] == "Running" for item in status["conditions"]):
                    set_condition(status, "Running", "False", reason=f"TFJob{outcome}")
                set_condition(status, outcome, "True", reason=f"TFJob{outcome}")
            elif phases and all(phase == "Running" for phase in phases.values()):
                set_condition(status, "Running", "True", reason="TFJobRunning")

        call = self._api.call(
            "tfjobs",
            metadata["namespace"],
            metadata["name"],
            group=GROUP,
            subresource="status",
            user=USER,
        )
        await self._api.modify(call, change)

    async def _clean(self, job: Obj, pods: dict[str, Obj]) -> None:
        policy = job["spec"].get("cleanPodPolicy") or "Running"
        gone = [
            ("pods", "", name)
            for name, pod in pods.items()
            if policy == "All"
            or (policy == "Running" and dig(pod, "status.phase") in ("Running", "Pending"))
        ]
        name = job["metadata"]["name"]
        gone += (
            [("podgroups", "scheduling.incubator.k8s.io", name)] if self._gang == "podgroup" else []
        )
        gone += [("poddisruptionbudgets", "policy", name)] if self._gang == "pdb" else []
        for plural, group, each in gone:
            call = self._api.call(
                plural, job["metadata"]["namespace"], each, group=group, user=USER
            )
            try:
                await self._api.delete(call, {})
            except ApiError as error:
                if error.code != 404:
                    raise


def _replicas(job: Obj) -> list[tuple[str, Obj]]:
    """(type, spec) of each replica type, in the job's order."""
    return [
        (kind, replica or {}) for kind, replica in (dig(job, "spec.tfReplicaSpecs") or {}).items()
    ]


def _ended(job: Obj) -> str | None:
    ends = [
        item["type"] for item in dig(job, "status.conditions") or () if item["status"] == "True"
    ]
    return next((kind for kind in ends if kind in ("Succeeded", "Failed")), None)


def _outcome(job: Obj, pods: dict[str, Obj]) -> str | None:
    """Succeeded when the chief has, or without one all workers; Failed when any pod has (kubelets restart those that may)."""
    kinds = dict(_replicas(job))
    deciding = next((kind for kind in _CHIEFS if kind in kinds), "Worker")
    names = [
        _pod_name(job, deciding, index)
        for index in range(kinds.get(deciding, {}).get("replicas", 1))
    ]
    if any(dig(pod, "status.phase") == "Failed" for pod in pods.values()):
        return "Failed"
    done = all(dig(pods.get(name), "status.phase") == "Succeeded" for name in names)
    return "Succeeded" if done else None


def _pod_name(job: Obj, kind: str, index: int) -> str:
    return f"{job['metadata']['name']}-{kind.lower()}-{index}"


def _labels(job: Obj) -> dict[str, str]:
    """What pods of a job were labelled with, in every version's spelling at once."""
    metadata = job["metadata"]
    name = metadata["name"]
    old = {
        "group_name": GROUP,
        "tf_job_name": name,
        "tf_job_key": f"{metadata['namespace']}-{name}",
    }
    return old | {"group-name": GROUP, "job-name": name, "tf-job-name": name}


def _owned(job: Obj) -> Obj:
    """Metadata of what belongs to a job and is named like it."""
    metadata = job["metadata"]
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": "TFJob",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    owner |= {"controller": True, "blockOwnerDeletion": True}
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        }
    }


def _pod(job: Obj, kind: str, index: int, gang: Gang) -> Obj:
    replica = dict(_replicas(job))[kind]
    template = clone(replica.get("template") or {})
    spec: Obj = template.get("spec") or {}
    restart = replica.get("restartPolicy") or spec.get("restartPolicy") or "Never"
    spec["restartPolicy"] = "Never" if restart == "ExitCode" else restart
    metadata = _owned(job)["metadata"] | {"name": _pod_name(job, kind, index)}
    place = {"tf-replica-type": kind.lower(), "tf-replica-index": str(index)}
    metadata["labels"] = (dig(template, "metadata.labels") or {}) | _labels(job) | place
    annotations = dict(dig(template, "metadata.annotations") or {})
    if gang == "podgroup":
        annotations.setdefault(GROUP_NAME, job["metadata"]["name"])
    metadata["annotations"] = annotations
    domain = job["metadata"]["namespace"]
    members = {
        each.lower(): [
            f"{_pod_name(job, each, i)}.{domain}.svc:{_PORT}"
            for i in range(other.get("replicas", 1))
        ]
        for each, other in _replicas(job)
    }
    task = {"type": kind.lower(), "index": index}
    config = encode({"cluster": members, "task": task, "environment": "cloud"}).decode()
    for container in spec.get("containers") or ():
        if container.get("name") == "tensorflow":
            container["env"] = [
                *(container.get("env") or ()),
                {"name": "TF_CONFIG", "value": config},
            ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
