"""Pods of Kubeflow's training-operator, the MPI operator and their predecessors: roles and ranks.

Their gangs are PodGroups of other dialects. training-operator marks only the master with
`job-role`, beside its replica type.
"""

from typing import Final

from shared.dialects.protocol import Dialect, PodKeys

DIALECT: Final = Dialect(
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
)
