"""Workloads of other controllers: nothing of them is checked, but a dry run with
`--dry-run=server` returns whether the pods would run, and a creation returns warnings of names in
the pods' template that do not exist: otherwise only the controller, not the author, would see them.
"""

from collections.abc import Iterator
from typing import Final

from services.admission_webhook.core import priority_classes, scheduler_names
from services.admission_webhook.core.case import Case
from services.admission_webhook.core.cel import quoted, text_of
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
    configured to schedule it as a gang: they name the scheduler themselves.
    """
    candidate = case.candidate
    if as_object(member(candidate, "spec", "runPolicy", "schedulingPolicy")) is not None:
        return True
    names = set(case.known.scheduler_names)
    return any(
        text_at(template, "spec", "schedulerName") in names for template in _templates(candidate)
    )


def is_for_us(case: Case) -> bool:
    """Whether it is ours, or was meant to be."""
    return is_ours(case) or bool(_misspelt(case))


def warnings(case: Case) -> tuple[str, ...]:
    """What is said of the scheduler and the priority class in its templates."""
    named = [text_at(one, "spec", "priorityClassName") for one in _templates(case.candidate)]
    missing = priority_classes.missing(case, named) if is_ours(case) else ()
    return (*_misspelt(case), *missing)


def conditions(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """CEL: what stores nothing is sent, and what may need a warning, unless a controller made it:
    no user reads what a controller is warned of.
    """
    template = "object.spec.template.spec"
    given = (
        "!has(object.metadata.ownerReferences) && has(object.spec) && "
        f"has(object.spec.template) && has({template}) && has({template}.schedulerName)"
    )
    named = f"{template}.schedulerName"
    ours = f"({named} in [{quoted(names)}] && has({template}.priorityClassName))"
    slipped = scheduler_names.slips(names)
    meant = f" || {named}.matches({text_of(slipped)})" if slipped else ""
    tried = "has(request.dryRun) && request.dryRun"
    return (("is-a-dry-run-or-worth-a-warning", f"({tried}) || ({given} && ({ours}{meant}))"),)


def _misspelt(case: Case) -> tuple[str, ...]:
    named = (text_at(one, "spec", "schedulerName") for one in _templates(case.candidate))
    found = (said for name in dict.fromkeys(named) for said in scheduler_names.of_name(name, case))
    return tuple(found)


def _templates(candidate: JsonObject) -> Iterator[JsonObject]:
    kind = text_at(candidate, "kind")
    api_group = text_at(candidate, "apiVersion").rpartition("/")[0]
    try:
        for part in parts_of(kind, api_group, as_object(candidate.get("spec")) or {}):
            yield part.template
    except ValueError:
        # The API server, or its own webhook, says what is wrong with it.
        return
