"""Namespaces that opt in: their pods of gangs get a scheduler name of Tutti when they are created.

Manifests of native and Kueue gangs name `default-scheduler`, those of other dialects the scheduler
of their authors. Only `spec.schedulerName` is changed, and only of a pod that declares a gang and
names one of these two.
"""

from typing import Final

from services.admission_webhook.core.gang_declarations import dialect_of_gang, reference_expression
from services.admission_webhook.core.parts import text_at
from services.admission_webhook.core.pods import read_head
from services.admission_webhook.core.review import AdmissionRequest, Verdict, added
from services.admission_webhook.core.rules import Conditions, quoted
from shared.dialects.discovery import by_precedence
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import DEFAULT_SCHEDULER
from shared.dialects.scheduler_choice import EXCLUDED_NAMESPACES, gives_way, name_for_pods
from shared.kube.resources import PODS

_UNCHANGED: Final = Verdict()


def take_pod(request: AdmissionRequest, scheduler_names: tuple[str, ...]) -> Verdict:
    """The answer about a pod of a namespace that has opted in: its new scheduler name, or nothing.

    Args:
        request: The review; the API server sends only those of namespaces that have opted in.
        scheduler_names: The scheduler names that Tutti serves.
    """
    resource = (request.resource.group, request.resource.resource)
    if resource != (PODS.group, PODS.plural) or request.sub_resource:
        return _UNCHANGED
    if request.operation != "CREATE" or request.namespace in EXCLUDED_NAMESPACES:
        return _UNCHANGED
    pod = read_head(request.object)
    given = text_at(pod, "spec", "schedulerName")
    if given in scheduler_names:
        return _UNCHANGED
    dialect = dialect_of_gang(pod)
    if dialect is None or not gives_way(given, dialect):
        return _UNCHANGED
    return Verdict(patch=(added(name_for_pods(scheduler_names), "spec", "schedulerName"),))


def opt_in_conditions(scheduler_names: tuple[str, ...]) -> Conditions:
    """Match conditions, so that other pods are created without the webhook, whether it answers or
    not. `take_pod` decides which of the remaining ones are changed.
    """
    of_dialects = {one.name for dialect in by_precedence() for one in dialect.schedulers}
    taken = (DEFAULT_SCHEDULER, *sorted(of_dialects - {*scheduler_names, DEFAULT_SCHEDULER}))
    named = "object.spec.schedulerName"
    return (
        ("names-a-scheduler-that-gives-way", f"has({named}) && {named} in [{quoted(taken)}]"),
        (
            "declares-a-gang",
            reference_expression("object", pod_vocabulary().references.by_dialects),
        ),
    )
