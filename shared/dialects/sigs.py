"""scheduling.sigs.dev/v1alpha2 PodGroup and Queue: kube-batch's later name for the same two kinds.

See `kubebatch_api` for what they mean.
"""

from typing import Final

from shared.contracts.verdicts import Verdict
from shared.dialects import kubebatch_api
from shared.dialects.protocol import FieldError, JsonObject, Kind, StatusPatch
from shared.kube.resources import PODGROUPS_SIGS, QUEUES_SIGS

NAME: Final = "sigs"
KINDS: Final[tuple[Kind, ...]] = kubebatch_api.kinds(NAME, PODGROUPS_SIGS, QUEUES_SIGS)


def status(verdict: Verdict) -> StatusPatch | None:
    """What the group's status becomes."""
    return kubebatch_api.status(verdict, PODGROUPS_SIGS)


def validate(kind: str, candidate: JsonObject) -> list[FieldError]:
    """Every violation that the object itself shows."""
    return kubebatch_api.validate(kind, candidate)
