"""What a deleted pod costs its job, by its controller's kind: decides whether a gang is
pre-flighted on first try.

A gang that cannot become whole is released by deleting what was bound. Where the controller simply
makes the pod again that is cheap, and proving every binding beforehand would only double the API
server's work.
"""

from functools import lru_cache
from typing import Final, Literal

from shared.model.objects import Owner

Cost = Literal["nothing", "retry", "for ever"]

#: (API group, kind) of controllers that make a deleted pod again and count it as nothing.
_NOTHING: Final = frozenset(
    {
        ("", "ReplicationController"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch.volcano.sh", "Job"),
        ("kubeflow.org", "TFJob"),
        ("kubeflow.org", "PyTorchJob"),
        ("kubeflow.org", "MPIJob"),
        ("kubeflow.org", "MXJob"),
        ("kubeflow.org", "XGBoostJob"),
        ("kubeflow.org", "PaddleJob"),
        ("kubeflow.org", "JAXJob"),
        ("ray.io", "RayCluster"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    }
)


def release_cost(owner: Owner | None) -> Cost:
    """nothing: made again; retry: counted against the job's limit (batch Job, unknown kinds); for
    ever: no controller creates it again.
    """
    return "for ever" if owner is None else _of_kind(owner.api_version, owner.kind)


# Asked for every gang that is placed, of a handful of kinds.
@lru_cache(maxsize=256)
def _of_kind(api_version: str, kind: str) -> Cost:
    group = api_version.rpartition("/")[0]
    return "nothing" if (group, kind) in _NOTHING else "retry"
