"""Workloads of other controllers: nothing of them is checked, but whoever tries one with
`--dry-run=server` is told whether its pods would run.
"""

from collections.abc import Iterator
from typing import Final

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_object, member, text_at
from shared.dialects.protocol import JsonObject
from shared.dialects.workloads import parts_of
from shared.kube.resources import (
    DEPLOYMENTS,
    JOBS_BATCH,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)

_KUBEFLOW: Final = "kubeflow.org"
RESOURCES: Final = (
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    JOBS_BATCH,
    Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"),
    Resource(_KUBEFLOW, "v1", "jaxjobs", "JAXJob"),
    Resource(_KUBEFLOW, "v1", "mpijobs", "MPIJob"),
    Resource(_KUBEFLOW, "v1", "paddlejobs", "PaddleJob"),
    Resource(_KUBEFLOW, "v1", "pytorchjobs", "PyTorchJob"),
    Resource(_KUBEFLOW, "v1", "tfjobs", "TFJob"),
    Resource(_KUBEFLOW, "v1", "xgboostjobs", "XGBoostJob"),
    Resource(_KUBEFLOW, "v2beta1", "mpijobs", "MPIJob"),
)


def is_ours(case: Case) -> bool:
    """Whether a template of its pods names a scheduler that we are, or the training operators are
    told to schedule it as a gang: they name the scheduler themselves.
    """
    candidate = case.candidate
    if as_object(member(candidate, "spec", "runPolicy", "schedulingPolicy")) is not None:
        return True
    names = set(case.known.scheduler_names)
    return any(
        text_at(template, "spec", "schedulerName") in names for template in _templates(candidate)
    )


def only_tried(_: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """CEL: only requests that store nothing are sent."""
    return (("is-a-dry-run", "has(request.dryRun) && request.dryRun"),)


def _templates(candidate: JsonObject) -> Iterator[JsonObject]:
    kind = text_at(candidate, "kind")
    api_group = text_at(candidate, "apiVersion").rpartition("/")[0]
    try:
        for part in parts_of(kind, api_group, as_object(candidate.get("spec")) or {}):
            yield part.template
    except ValueError:
        # The API server, or its own webhook, says what is wrong with it.
        return
