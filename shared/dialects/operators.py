"""Pods of operators, which mark roles and ranks by labels of their own. Their gangs are PodGroups
of other dialects.

The operators that create JobSets for their own pods come before `jobset`.
"""

from collections.abc import Mapping
from typing import Final

from shared.dialects.protocol import Dialect, PodKeys, WorkloadLabels
from shared.dialects.reference_objects import read_workload, workload_kind
from shared.kube import reference_objects as kube
from shared.kube.resources import JOB_SETS, LEADER_WORKER_SETS
from shared.model.reference_objects import Workload

_JOB_SET: Final = "jobset.sigs.k8s.io/"
_LEADER_WORKER_SET: Final = "leaderworkerset.sigs.k8s.io/"
_WORKER_INDEX: Final = f"{_LEADER_WORKER_SET}worker-index"


def _read_leader_worker_set(workload: kube.Workload) -> Workload | None:
    """The workload, with the number of its groups; None when it makes no pods again."""
    replicas = workload.spec.replicas
    return read_workload(LEADER_WORKER_SETS, workload, parts=1 if replicas is None else replicas)


def _leader_or_worker(labels: Mapping[str, str]) -> str:
    """No label holds the role: of a group, the pod with index 0 leads the other pods."""
    index = labels.get(_WORKER_INDEX)
    if index is None:
        return ""
    return "leader" if index == "0" else "worker"


DIALECTS: Final = (
    # training-operator, the MPI operator and their predecessors. training-operator marks only the
    # master with `job-role`, beside its replica type.
    Dialect(
        name="kubeflow",
        precedence=40,
        role=PodKeys(
            labels=(
                "training.kubeflow.org/replica-type",
                "training.kubeflow.org/job-role",
                "tf-replica-type",
                "pytorch-replica-type",
                "mpi-replica-type",
                "replica-type",
                "mpi-job-role",
                "mpi_role_type",
            )
        ),
        index=PodKeys(
            labels=(
                "training.kubeflow.org/replica-index",
                "tf-replica-index",
                "pytorch-replica-index",
                "mpi-replica-index",
                "replica-index",
            )
        ),
    ),
    Dialect(name="kuberay", precedence=50, role=PodKeys(labels=("ray.io/node-type",))),
    Dialect(name="spark", precedence=60, role=PodKeys(labels=("spark-role",))),
    Dialect(
        name="jobset",
        precedence=70,
        kinds=(workload_kind(JOB_SETS),),
        role=PodKeys(labels=(f"{_JOB_SET}replicatedjob-name",)),
        workload=WorkloadLabels(
            resource=JOB_SETS,
            name=f"{_JOB_SET}jobset-name",
            parts=(f"{_JOB_SET}replicatedjob-name", f"{_JOB_SET}job-index"),
        ),
    ),
    # It creates its groups of pods again: each group is a part of it.
    Dialect(
        name="leader_worker_set",
        precedence=80,
        kinds=(workload_kind(LEADER_WORKER_SETS, _read_leader_worker_set),),
        derive_role=_leader_or_worker,
        index=PodKeys(labels=(_WORKER_INDEX,)),
        workload=WorkloadLabels(
            resource=LEADER_WORKER_SETS,
            name=f"{_LEADER_WORKER_SET}name",
            parts=(f"{_LEADER_WORKER_SET}group-index",),
        ),
    ),
)
