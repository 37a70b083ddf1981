"""Pods: defaults from their resource group, the format of their gang annotations, and warnings.

As in Volcano, a resource group's scheduler replaces the pod's; its tolerations are added to the
pod's and its labels to the node selector, where they take precedence; its affinity is for a pod
that has none. The API server itself validates the remaining fields of a pod.
"""

from collections.abc import Iterator
from typing import TypedDict

import msgspec

from shared.admission import gang_annotations, scheduler_names, warnings
from shared.admission.gang_declarations import (
    is_misdirected,
    misdirected_expression,
)
from shared.admission.parts import as_list, as_object, decoded_member, text_at
from shared.admission.resource_groups import (
    ResourceGroup,
    ResourceGroups,
    membership_expression,
)
from shared.admission.review import PatchOperation, added, plain_object
from shared.admission.rules import (
    Case,
    Conditions,
    KindRules,
    quoted,
    string_literal,
)
from shared.admission.run_limits import above_maximum, malformed_limit
from shared.contracts.annotations import QUEUE_NAME
from shared.dialects.discovery import by_precedence
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.resources import PODS


# The members of a pod that these rules read. A raw member is decoded only when it is needed.
class _Metadata(TypedDict, total=False):
    labels: dict[str, str] | None
    annotations: dict[str, str] | None
    ownerReferences: msgspec.Raw


class _Spec(TypedDict, total=False):
    schedulerName: str
    tolerations: msgspec.Raw
    nodeSelector: msgspec.Raw
    affinity: msgspec.Raw
    schedulingGroup: msgspec.Raw
    workloadRef: msgspec.Raw


class _Head(TypedDict, total=False):
    metadata: _Metadata
    spec: _Spec


_decode_head = msgspec.json.Decoder(_Head).decode


def read_head(raw: msgspec.Raw) -> JsonObject:
    """The members that these rules read. This takes a tenth of the time of decoding the whole pod,
    and thousands of pods may be created at once.
    """
    try:
        return {**_decode_head(raw)}
    except msgspec.ValidationError:
        # Not sent by an API server, which checks the types of a pod before it calls webhooks.
        return plain_object(raw)


def _is_ours(case: Case) -> bool:
    """Whether the pod names one of our schedulers, or belongs to a resource group. (A pod that
    named no scheduler has `default-scheduler` by now.)
    """
    named = text_at(case.candidate, "spec", "schedulerName") in case.known.scheduler_names
    return named or _group_of(case) is not None


def _is_relevant(case: Case) -> bool:
    """Whether the pod's scheduler name is a likely misspelling of one of ours, or the pod declares
    a gang that its scheduler ignores.
    """
    return bool(scheduler_names.of_pod(case)) or is_misdirected(case.candidate)


def _conditions(names: tuple[str, ...]) -> Conditions:
    """As `_is_ours` and `_is_relevant`."""
    named = "object.spec.schedulerName"
    pattern = scheduler_names.misspellings(names)
    misspelt = f" || {named}.matches({string_literal(pattern)})" if pattern else ""
    ours = f"has({named}) && ({named} in [{quoted(names)}]{misspelt})"
    # No user reads warnings about pods that a controller creates.
    by_user = "!has(object.metadata.ownerReferences)"
    expression = f"({ours}) || ({by_user} && {misdirected_expression('object')})"
    return (("names-our-scheduler", expression),)


def _membership(groups: ResourceGroups) -> str:
    return membership_expression(groups) if groups else ""


def _violations(case: Case) -> list[FieldError]:
    """Violations of the labels and annotations that any dialect reads on a pod of ours, and of its
    run limit, if the pod itself names its queue.
    """
    queue = text_at(case.candidate, "metadata", "annotations", QUEUE_NAME)
    return [
        *(
            error
            for dialect in by_precedence()
            for error in dialect.validate("Pod", case.candidate)
        ),
        *malformed_limit(case.candidate),
        *above_maximum(case.candidate, queue, case.known.queues if queue else None),
    ]


def _warnings(case: Case) -> tuple[str, ...]:
    return (
        *scheduler_names.of_pod(case),
        *warnings.unread_marks_of_pod(case),
        *warnings.misdirected_pods([case.candidate], case),
        *gang_annotations.warnings_of(case),
    )


def _group_of(case: Case) -> ResourceGroup | None:
    """The first resource group that the pod belongs to."""
    metadata = as_object(case.candidate.get("metadata")) or {}
    annotations = as_object(metadata.get("annotations")) or {}
    groups = case.known.resource_groups
    return next((group for group in groups if group.holds(case.namespace, annotations)), None)


def _defaults(case: Case) -> list[PatchOperation]:
    group = _group_of(case)
    spec = as_object(case.candidate.get("spec"))
    return [] if group is None or spec is None else list(_defaults_of_group(group, spec))


def _defaults_of_group(group: ResourceGroup, spec: JsonObject) -> Iterator[PatchOperation]:
    if group.scheduler_name:
        yield added(group.scheduler_name, "spec", "schedulerName")
    if group.tolerations:
        both = [*as_list(decoded_member(spec, "tolerations")), *group.tolerations]
        yield added(both, "spec", "tolerations")
    if group.labels:
        selector = {**(as_object(decoded_member(spec, "nodeSelector")) or {}), **group.labels}
        yield added(selector, "spec", "nodeSelector")
    affinity = group.node_affinity()
    if affinity and not decoded_member(spec, "affinity"):
        yield added(affinity, "spec", "affinity")


RULES = KindRules(
    resource=PODS,
    defaults=_defaults,
    membership=_membership,
    violations=_violations,
    is_ours=_is_ours,
    is_relevant=_is_relevant,
    read=read_head,
    conditions=_conditions,
    warnings=_warnings,
)
