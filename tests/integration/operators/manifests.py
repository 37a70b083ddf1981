"""Manifests with the shapes of the operators' own examples: every pod asks for one GPU."""

from tests.controlplane.client import Object
from tests.controlplane.nodes import GPU


def pod_template(*, scheduler_name: str = "") -> Object:
    """A template of a pod that asks for one GPU and is never restarted in place."""
    spec: Object = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "train",
                "image": "example/train",
                "resources": {"limits": {GPU: "1"}, "requests": {"cpu": "1", GPU: "1"}},
            }
        ],
    }
    if scheduler_name:
        spec["schedulerName"] = scheduler_name
    return {"spec": spec}


def mpi_job(name: str, workers: int, *, scheduler_name: str = "") -> Object:
    """An MPIJob of one launcher and these workers."""
    launcher = pod_template(scheduler_name=scheduler_name)
    worker = pod_template(scheduler_name=scheduler_name)
    # The launcher is a batch Job's pod; the operator recreates workers itself.
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 1,
            "runPolicy": {"cleanPodPolicy": "All"},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": launcher},
                "Worker": {"replicas": workers, "template": worker},
            },
        },
    }


def leader_worker_set(name: str, size: int, *, startup_policy: str = "LeaderCreated") -> Object:
    """A LeaderWorkerSet of one group with this many pods, its leader included."""
    template = pod_template(scheduler_name="volcano")
    template["spec"]["restartPolicy"] = "Always"
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "startupPolicy": startup_policy,
            "leaderWorkerTemplate": {
                "size": size,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "workerTemplate": template,
            },
        },
    }


def ray_cluster(
    name: str, *, workers: int, workers_max: int | None = None, scheduler_name: str = ""
) -> Object:
    """A RayCluster of one head and these workers, elastic up to `workers_max` if that is given."""
    template = pod_template(scheduler_name=scheduler_name)
    del template["spec"]["restartPolicy"]
    group = {"groupName": "workers", "rayStartParams": {}, "template": template}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": {
            "enableInTreeAutoscaling": workers_max is not None,
            "headGroupSpec": {"rayStartParams": {}, "template": template},
            "workerGroupSpecs": [
                group
                | {
                    "replicas": workers,
                    "minReplicas": workers,
                    "maxReplicas": workers if workers_max is None else workers_max,
                }
            ],
        },
    }


def suspended(value: bool) -> Object:
    """The merge patch that suspends or resumes a set; those of most APIs have the field there."""
    return {"spec": {"suspend": value}}


def kubeflow_suspended(value: bool) -> Object:
    """The merge patch that suspends or resumes a job of Kubeflow's API."""
    return {"spec": {"runPolicy": {"suspend": value}}}


def kubeflow_job(kind: str, name: str, container: str, **replicas: int) -> Object:
    """A TFJob or PyTorchJob with these numbers of replicas; each exit code above 128 is retried."""
    template = pod_template()
    template["spec"]["containers"][0]["name"] = container
    del template["spec"]["restartPolicy"]
    field = "tfReplicaSpecs" if kind == "TFJob" else "pytorchReplicaSpecs"
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "All"},
            field: {
                role: {"replicas": count, "restartPolicy": "ExitCode", "template": template}
                for role, count in replicas.items()
            },
        },
    }
