"""Manifests with the shapes of the operators' own examples: every pod asks for one GPU."""

from collections.abc import Mapping

from tests.controlplane.client import Object

GPU = "nvidia.com/gpu"


def pod_template(
    *, scheduler_name: str = "", annotations: Mapping[str, str] | None = None
) -> Object:
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
    return {"metadata": {"annotations": dict(annotations or {})}, "spec": spec}


def mpi_job(name: str, workers: int) -> Object:
    """An MPIJob of one launcher and these workers."""
    launcher, worker = pod_template(), pod_template()
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


def job_set(name: str, parallelism: int) -> Object:
    """A JobSet of one replicated Job whose pods are one gang by kube-batch's annotation."""
    minimum = {"scheduling.k8s.io/group-min-member": str(parallelism)}
    template = pod_template(scheduler_name="tutti", annotations=minimum)
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": {"maxRestarts": 3},
            "replicatedJobs": [
                {
                    "name": "workers",
                    "replicas": 1,
                    "template": {
                        "spec": {
                            "parallelism": parallelism,
                            "completions": parallelism,
                            "backoffLimit": 0,
                            "template": template,
                        }
                    },
                }
            ],
        },
    }
