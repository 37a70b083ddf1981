"""Reads the gang that a pod or a pod template declares, from the members that rules have read."""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.admission.parts import as_object, decoded_member, text_at
from shared.admission.rules import string_literal
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import (
    DEFAULT_SCHEDULER,
    Dialect,
    GroupReference,
    JsonObject,
    Membership,
)
from shared.kube import objects as kube
from shared.kube.decoding import without_nulls

_NONE: Final[tuple[Membership | None, tuple[str, ...]]] = (None, ())


def read_declaration(pod: JsonObject) -> tuple[Membership | None, tuple[str, ...]]:
    """The gang that the pod declares, and why it must not be bound, as `ReferenceTable.read`.

    The webhook does not know which dialects are served, so it takes each of them for served.
    """
    typed = _typed(pod)
    if typed is None:
        return _NONE
    return pod_vocabulary().references.read(typed.metadata, typed.spec, None)


def dialect_of_gang(pod: JsonObject) -> Dialect | None:
    """The dialect that finds the gang of `read_declaration`; None when the pod declares none."""
    typed = _typed(pod)
    if typed is None:
        return None
    declared = pod_vocabulary().references.declarations(typed.metadata, typed.spec, None)
    return next(
        (declaration.dialect for declaration in declared if declaration.membership is not None),
        None,
    )


def declares_anything(pod: JsonObject) -> bool:
    """Whether the pod has a mark of a gang, whether a dialect reads it or not."""
    typed = _typed(pod)
    if typed is None:
        return True
    return bool(pod_vocabulary().references.declarations(typed.metadata, typed.spec, None))


def is_misdirected(pod: JsonObject) -> bool:
    """Whether the pod names kube-scheduler, which would bind it without regard to its gang."""
    if text_at(pod, "spec", "schedulerName") != DEFAULT_SCHEDULER:
        return False
    dialect = dialect_of_gang(pod)
    return dialect is not None and dialect.kube_scheduler_ignores


def misdirected_expression(pod: str) -> str:
    """CEL that is true of the pods of `is_misdirected`; arguments as for `reference_expression`.

    A pod that names no scheduler has `default-scheduler` by now.
    """
    declares = reference_expression(pod, pod_vocabulary().references.kube_scheduler_ignores)
    spec = f"{pod}.spec.schedulerName"
    return f"(has({spec}) && {spec} == {string_literal(DEFAULT_SCHEDULER)} && ({declares}))"


def reference_expression(pod: str, references: Iterable[GroupReference]) -> str:
    """CEL that is true of a pod, or of a pod template, that has one of the references.

    Args:
        pod: The pod in CEL ("object.spec.template"), which must exist and have a spec.
        references: The references.
    """
    given = tuple(references)
    terms = [f"has({pod}.{reference.key})" for reference in given if reference.place == "field"]
    for place in ("annotation", "label"):
        keys = ", ".join(
            string_literal(reference.key) for reference in given if reference.place == place
        )
        if keys:
            members = f"{pod}.metadata.{place}s"
            has = f"has({pod}.metadata) && has({members})"
            terms.append(f"({has} && [{keys}].exists(key, key in {members}))")
    return " || ".join(terms) or "false"


def _typed(pod: JsonObject) -> kube.Pod | None:
    """The members of the pod that may declare a gang; None for members of the wrong type, which the
    API server reports.
    """
    metadata = as_object(pod.get("metadata")) or {}
    spec = as_object(pod.get("spec")) or {}
    fields = {key: decoded_member(spec, key) for key in ("schedulingGroup", "workloadRef")}
    marks = {key: metadata.get(key) for key in ("labels", "annotations")}
    try:
        return msgspec.convert(without_nulls({"metadata": marks, "spec": fields}), kube.Pod)
    except msgspec.ValidationError:
        return None
