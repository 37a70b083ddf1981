"""Reads the gang that a pod or a pod template declares, from the members that rules have read."""

from typing import Final

import msgspec

from services.admission_webhook.core.parts import as_object, decoded_member
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import JsonObject, Membership
from shared.kube import objects as kube
from shared.kube.decoding import without_nulls

_NONE: Final[tuple[Membership | None, tuple[str, ...]]] = (None, ())


def read_declaration(pod: JsonObject) -> tuple[Membership | None, tuple[str, ...]]:
    """The gang that the pod declares, and why it must not be bound, as `ReferenceTable.read`.

    The webhook does not know which dialects are served, so it takes each of them for served.
    """
    metadata = as_object(pod.get("metadata")) or {}
    spec = as_object(pod.get("spec")) or {}
    fields = {key: decoded_member(spec, key) for key in ("schedulingGroup", "workloadRef")}
    marks = {key: metadata.get(key) for key in ("labels", "annotations")}
    try:
        found = msgspec.convert(without_nulls({"metadata": marks, "spec": fields}), kube.Pod)
    except msgspec.ValidationError:
        return _NONE  # the API server reports fields of the wrong type
    return pod_vocabulary().references.read(found.metadata, found.spec, None)
