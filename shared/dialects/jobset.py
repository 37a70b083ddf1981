"""Pods of a JobSet: their role is the replicated Job, and the JobSet creates them again.

Its precedence is lower than that of the operators that create JobSets for their own pods.
"""

from typing import Final

from shared.dialects.protocol import Dialect, PodKeys, WorkloadLabels
from shared.dialects.workload_kinds import workload_kind
from shared.kube.resources import JOB_SETS

_PREFIX: Final = "jobset.sigs.k8s.io/"

DIALECT: Final = Dialect(
    name="jobset",
    precedence=70,
    kinds=(workload_kind(JOB_SETS),),
    role=PodKeys(labels=(f"{_PREFIX}replicatedjob-name",)),
    workload=WorkloadLabels(
        resource=JOB_SETS,
        name=f"{_PREFIX}jobset-name",
        parts=(f"{_PREFIX}replicatedjob-name", f"{_PREFIX}job-index"),
    ),
)
