"""Pods of a LeaderWorkerSet, which creates its groups of pods again: each group is a part of it.

No label holds the role: of a group, the pod with index 0 leads the other pods.
"""

from collections.abc import Mapping
from typing import Final

from shared.dialects.protocol import Dialect, PodKeys, WorkloadLabels
from shared.dialects.workload_kinds import read_workload, workload_kind
from shared.kube import reference_objects as kube
from shared.kube.resources import LEADER_WORKER_SETS
from shared.model.reference_objects import Workload

_PREFIX: Final = "leaderworkerset.sigs.k8s.io/"
_INDEX: Final = f"{_PREFIX}worker-index"


def read_leader_worker_set(found: kube.Workload) -> Workload | None:
    """The workload, with the number of its groups; None when it makes no pods again."""
    replicas = found.spec.replicas
    return read_workload(LEADER_WORKER_SETS, found, parts=1 if replicas is None else replicas)


def _role(labels: Mapping[str, str]) -> str:
    index = labels.get(_INDEX)
    if index is None:
        return ""
    return "leader" if index == "0" else "worker"


DIALECT: Final = Dialect(
    name="leader_worker_set",
    precedence=80,
    kinds=(workload_kind(LEADER_WORKER_SETS, read_leader_worker_set),),
    derive_role=_role,
    index=PodKeys(labels=(_INDEX,)),
    workload=WorkloadLabels(
        resource=LEADER_WORKER_SETS,
        name=f"{_PREFIX}name",
        parts=(f"{_PREFIX}group-index",),
    ),
)
