"""Warnings about gang declarations of pods that Tutti does not read: such pods are not bound."""

from collections.abc import Iterator
from typing import Final

import msgspec

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.mutate_pod import read_part
from services.admission_webhook.core.parts import as_list, as_object, text_at
from shared.dialects.marks import READERS, unread
from shared.dialects.protocol import JsonObject
from shared.kube import objects as kube
from shared.kube.decoding import without_nulls

#: Of one object; templates of one Job mostly carry the same.
_WARNINGS_MAX: Final = 3


def of_pod(case: Case) -> tuple[str, ...]:
    """About a pod, given whole or as its head."""
    if text_at(case.candidate, "spec", "schedulerName") not in case.known.scheduler_names:
        return ()
    return tuple(_warning(one) for one in _sentences(case.candidate))[:_WARNINGS_MAX]


def of_job(case: Case) -> tuple[str, ...]:
    """About the pods of a Volcano Job's tasks."""
    if case.operation != "CREATE":
        return ()
    tasks = as_list((as_object(case.candidate.get("spec")) or {}).get("tasks"))
    templates = [as_object((as_object(task) or {}).get("template")) or {} for task in tasks]
    found = {one for template in templates for one in _sentences(template)}
    return tuple(_warning(one) for one in sorted(found))[:_WARNINGS_MAX]


def _sentences(pod: JsonObject) -> Iterator[str]:
    metadata = as_object(pod.get("metadata")) or {}
    spec = as_object(pod.get("spec")) or {}
    fields = {key: read_part(spec, key) for key in ("schedulingGroup", "workloadRef")}
    notes = {key: metadata.get(key) for key in ("labels", "annotations")}
    try:
        found = msgspec.convert(without_nulls({"metadata": notes, "spec": fields}), kube.Pod)
    except msgspec.ValidationError:
        return  # the API server says what is wrong with its types
    # Whether the dialect of a mark is served, the planner knows.
    yield from unread(found.metadata, found.spec, READERS)


def _warning(sentence: str) -> str:
    return f"tutti: not bound: {sentence}"
