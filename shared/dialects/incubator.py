"""scheduling.incubator.k8s.io/v1alpha1 PodGroup and Queue: the group that kube-batch and Kubeflow's
operators of that time use.

See `kubebatch_api` for what they mean.
"""

from typing import Final

from shared.contracts.verdicts import Verdict
from shared.dialects import kubebatch_api
from shared.dialects.protocol import FieldError, JsonObject, Kind, StatusPatch
from shared.kube.resources import PODGROUPS_INCUBATOR, QUEUES_INCUBATOR

NAME: Final = "incubator"
KINDS: Final[tuple[Kind, ...]] = kubebatch_api.kinds(NAME, PODGROUPS_INCUBATOR, QUEUES_INCUBATOR)


def status(verdict: Verdict) -> StatusPatch | None:
    """What the group's status becomes."""
    return kubebatch_api.status(verdict, PODGROUPS_INCUBATOR)


def validate(kind: str, candidate: JsonObject) -> list[FieldError]:
    """Every violation that the object itself shows."""
    return kubebatch_api.validate(kind, candidate)
