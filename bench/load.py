"""The loads: gangs of training workers as an operator leaves them.

A gang is a PodGroup (as created: no status, not scheduled yet) and its pods, which name
it. It is written in Volcano's API unless a load asks for another. Owned pods have a TFJob as
controller, which costs nothing to release; bare pods have no owner, so a scheduler that promises
atomic gangs has to prove them first.
"""

import argparse

import msgspec

from bench.gang_apis import FORMS, GangApi, Object

NAMESPACE = "bench"
PODGROUPS_PATH = FORMS[GangApi.VOLCANO].path(NAMESPACE)
PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS_PATH = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
DEVICE_CLASS = "gpu"
CPU_PER_POD = 1
MEMORY_GIB_PER_POD = 2


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """So many gangs of so many pods."""

    gangs: int
    size: int
    owned: bool = True
    api: GangApi = GangApi.VOLCANO
    #: Whether each pod has a ResourceClaim for a device (bench/claims.py makes these devices).
    claims: bool = False

    @property
    def pods(self) -> int:
        """All pods."""
        return self.gangs * self.size

    @property
    def title(self) -> str:
        """How tables name it."""
        api = "" if self.api is GangApi.VOLCANO else f" {self.api}"
        claims = " with claims" if self.claims else ""
        return f"{self.gangs} x {self.size}{'' if self.owned else ' bare'}{api}{claims}"

    @property
    def groups_path(self) -> str:
        """Where the gangs' PodGroups are created."""
        return FORMS[self.api].path(NAMESPACE)


def parsed(text: str) -> Load:
    """Return the load that a flag asks for: GxN, or GxNbare.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    owned = not text.endswith("bare")
    gangs, _, size = text.removesuffix("bare").partition("x")
    if not (gangs.isdigit() and size.isdigit() and int(gangs) and int(size)):
        raise argparse.ArgumentTypeError(f"{text}: must be GxN or GxNbare, such as 20x500")
    return Load(gangs=int(gangs), size=int(size), owned=owned)


def gang_name(prefix: str, gang: int) -> str:
    """The name of a gang's PodGroup and TFJob."""
    return f"{prefix}-{gang}"


def pod_name(prefix: str, gang: int, member: int) -> str:
    """The name of a member."""
    return f"{prefix}-{gang}-worker-{member}"


def pod_names(load: Load, prefix: str) -> list[str]:
    """All pods' names, gang by gang."""
    return [
        pod_name(prefix, gang, member) for gang in range(load.gangs) for member in range(load.size)
    ]


def pod_group(load: Load, prefix: str, gang: int) -> Object:
    """The PodGroup of one gang."""
    form = FORMS[load.api]
    spec = form.spec(load.size)
    if form.with_resources:
        cpu, memory = CPU_PER_POD * load.size, MEMORY_GIB_PER_POD * load.size
        spec["minResources"] = {"cpu": str(cpu), "memory": f"{memory}Gi"}
    return {
        "apiVersion": form.api_version,
        "kind": "PodGroup",
        "metadata": {"name": gang_name(prefix, gang), "namespace": NAMESPACE},
        "spec": spec,
    }


def claim(prefix: str, gang: int, member: int) -> Object:
    """The ResourceClaim of one member, named like it: for one device."""
    exactly = {"deviceClassName": DEVICE_CLASS, "count": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": pod_name(prefix, gang, member), "namespace": NAMESPACE},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def pod(load: Load, prefix: str, gang: int, member: int, scheduler_name: str) -> Object:
    """One member, of the size of a real worker's pod."""
    job = gang_name(prefix, gang)
    metadata: Object = {
        "name": pod_name(prefix, gang, member),
        "namespace": NAMESPACE,
        "labels": {
            "training.kubeflow.org/job-name": job,
            "training.kubeflow.org/operator-name": "tfjob-controller",
            "training.kubeflow.org/replica-index": str(member),
            "training.kubeflow.org/replica-type": "worker",
        },
        "annotations": {"volcano.sh/task-spec": "worker"},
    }
    if load.owned:
        owner = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "name": job,
            "uid": f"00000000-0000-4000-8000-{gang:012d}",
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata["ownerReferences"] = [owner]
    container: Object = {
        "name": "tensorflow",
        "image": "registry.example/train:1",
        "command": ["python", "/opt/train.py", "--epochs=90"],
        "env": [
            {"name": "TF_CONFIG", "value": f'{{"task":{{"type":"worker","index":{member}}}}}'},
            {"name": "NCCL_DEBUG", "value": "WARN"},
        ],
        "resources": {"requests": {"cpu": str(CPU_PER_POD), "memory": f"{MEMORY_GIB_PER_POD}Gi"}},
    }
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "schedulerName": scheduler_name,
            "restartPolicy": "Never",
            "containers": [container],
        },
    }
    if load.claims:
        made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": metadata["name"]}]
        container["resources"]["claims"] = [{"name": "gpu"}]
    FORMS[load.api].name_group(made, job)
    return made


def binding(name: str, uid: str, node: str) -> Object:
    """What binds a pod, of this UID and no other, to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
