"""The cost of a deleted pod for its job, by the kind of its controller. It decides whether the
first attempt of a gang is preceded by a preflight.

A gang that cannot be completed is released: its bound pods are deleted. If the controller simply
creates them again, this is cheap, and a preflight would only double the API server's work.
"""

from functools import lru_cache
from typing import Final, Literal

from shared.model.objects import Owner

Cost = Literal["nothing", "retry", "for ever"]

#: (API group, kind) of controllers that create a deleted pod again without counting a failure.
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
    """The cost of deleting a pod with this owner.

    `nothing`: the controller creates it again. `retry`: it also counts against the job's limit
    (batch Job, unknown kinds). `for ever`: no controller creates it again.
    """
    return "for ever" if owner is None else _of_kind(owner.api_version, owner.kind)


# Called for every placed gang, with few distinct kinds.
@lru_cache(maxsize=256)
def _of_kind(api_version: str, kind: str) -> Cost:
    group = api_version.rpartition("/")[0]
    return "nothing" if (group, kind) in _NOTHING else "retry"
