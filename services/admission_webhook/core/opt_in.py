"""Namespaces that opt in: their pods of gangs get a scheduler name of Tutti when they are created.

Manifests of native and Kueue gangs name `default-scheduler`, those of other dialects the scheduler
of their authors. Only `spec.schedulerName` is changed, and only of a pod that declares a gang and
names one of these two.

A namespace that also asks for gangs of operators' objects (`tutti.dev/gang: all`) opts in for the
pods of such objects, which declare nothing themselves.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from shared.admission.gang_declarations import (
    declares_anything,
    dialect_of_gang,
    reference_expression,
)
from shared.admission.parts import text_at
from shared.admission.pods import read_head
from shared.admission.review import AdmissionRequest, Verdict, added
from shared.admission.rules import Conditions, quoted
from shared.dialects.discovery import by_precedence
from shared.dialects.owned_gangs import may_be_owned
from shared.dialects.owner_kinds import OWNER_KINDS
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import DEFAULT_SCHEDULER, JsonObject
from shared.dialects.scheduler_choice import EXCLUDED_NAMESPACES, gives_way, name_for_pods
from shared.kube.objects import KubeObject
from shared.kube.resources import PODS

_UNCHANGED: Final = Verdict()

TakePod: TypeAlias = Callable[[AdmissionRequest, tuple[str, ...]], Verdict]
"""`take_pod` or `take_owned_pod`."""


def take_pod(request: AdmissionRequest, scheduler_names: tuple[str, ...]) -> Verdict:
    """The answer about a pod of a namespace that has opted in: its new scheduler name, or nothing.

    Args:
        request: The review; the API server sends only those of namespaces that have opted in.
        scheduler_names: The scheduler names that Tutti serves.
    """
    pod = _created_pod(request)
    if pod is None:
        return _UNCHANGED
    given = text_at(pod, "spec", "schedulerName")
    dialect = dialect_of_gang(pod)
    if given in scheduler_names or dialect is None or not gives_way(given, dialect):
        return _UNCHANGED
    return _renamed(scheduler_names)


def take_owned_pod(request: AdmissionRequest, scheduler_names: tuple[str, ...]) -> Verdict:
    """The same about a pod of a namespace that also asks for gangs of operators' objects: taken is
    a pod that names kube-scheduler, declares no gang, and may be below such an object. Whether that
    object declines is not read.
    """
    pod = _created_pod(request)
    if pod is None or DEFAULT_SCHEDULER in scheduler_names:
        return _UNCHANGED
    if text_at(pod, "spec", "schedulerName") != DEFAULT_SCHEDULER or declares_anything(pod):
        return _UNCHANGED
    try:
        whole = msgspec.json.decode(request.object, type=KubeObject)
    except msgspec.ValidationError:
        return _UNCHANGED  # the API server refuses it
    return _renamed(scheduler_names) if may_be_owned(whole.metadata) else _UNCHANGED


def _created_pod(request: AdmissionRequest) -> JsonObject | None:
    """The pod whose creation is reviewed; None: another review, or a pod that is never taken."""
    resource = (request.resource.group, request.resource.resource)
    if resource != (PODS.group, PODS.plural) or request.sub_resource:
        return None
    if request.operation != "CREATE" or request.namespace in EXCLUDED_NAMESPACES:
        return None
    return read_head(request.object)


def _renamed(scheduler_names: tuple[str, ...]) -> Verdict:
    return Verdict(patch=(added(name_for_pods(scheduler_names), "spec", "schedulerName"),))


def opt_in_conditions(scheduler_names: tuple[str, ...]) -> Conditions:
    """Match conditions, so that other pods are created without the webhook, whether it answers or
    not. `take_pod` decides which of the remaining ones are changed.
    """
    of_dialects = {
        scheduler.name for dialect in by_precedence() for scheduler in dialect.schedulers
    }
    taken = (DEFAULT_SCHEDULER, *sorted(of_dialects - {*scheduler_names, DEFAULT_SCHEDULER}))
    return (
        _names_one_of(taken),
        (
            "declares-a-gang",
            reference_expression("object", pod_vocabulary().references.by_dialects),
        ),
    )


def opt_in_owned_conditions() -> Conditions:
    """The same for `take_owned_pod`."""
    owners = " || ".join(
        f"(owner.apiVersion.startsWith('{resource.group}/') && owner.kind == '{resource.kind}')"
        if resource.group
        else f"(owner.apiVersion == '{resource.version}' && owner.kind == '{resource.kind}')"
        for resource in (kind.resource for kind in OWNER_KINDS)
    )
    references, labels = "object.metadata.ownerReferences", "object.metadata.labels"
    controller = "has(owner.controller) && owner.controller"
    numbered = quoted(tuple(kind.part_label for kind in OWNER_KINDS if kind.part_label))
    return (
        _names_one_of((DEFAULT_SCHEDULER,)),
        (
            "is-below-an-operators-object",
            f"(has({references}) && {references}.exists(owner, {controller} && ({owners}))) || "
            f"(has({labels}) && [{numbered}].exists(key, key in {labels}))",
        ),
    )


def _names_one_of(schedulers: tuple[str, ...]) -> tuple[str, str]:
    named = "object.spec.schedulerName"
    return (
        "names-a-scheduler-that-gives-way",
        f"has({named}) && {named} in [{quoted(schedulers)}]",
    )
