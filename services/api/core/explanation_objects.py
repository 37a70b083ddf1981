"""From an Explanation's manifests to its status."""

from collections.abc import Iterable
from typing import Final

import msgspec

from services.api.core.requests import read_body
from services.api.errors import RequestFailed
from shared.contracts.visibility import Explanation, ExplanationStatus
from shared.dialects.manifests import InvalidManifest, flattened
from shared.explanation.understanding import understand

#: Objects in one Explanation: each takes some tenths of a millisecond.
OBJECTS_MAX: Final = 200

_decode: Final = msgspec.json.Decoder(Explanation).decode


def read_explanation(body: bytes) -> Explanation:
    """The Explanation in a request's body. Raises RequestFailed: 400, it is none."""
    return read_body(body, _decode, "Explanation")


def explained(
    explanation: Explanation, namespace: str, scheduler_names: Iterable[str]
) -> Explanation:
    """The Explanation with its status; `namespace` is for objects without one.

    Raises:
        RequestFailed: 422, the manifests are no objects, or too many.
    """
    try:
        documents = [
            (place.partition(",")[0], one) for place, one in flattened(explanation.spec.manifests)
        ]
        if len(documents) > OBJECTS_MAX:
            raise RequestFailed(422, f"spec.manifests: must have at most {OBJECTS_MAX} objects")
        report = understand(documents, namespace=namespace, scheduler_names=tuple(scheduler_names))
    except (InvalidManifest, RecursionError) as error:
        raise RequestFailed(422, f"spec.manifests: {error}") from None
    status = msgspec.convert(report, ExplanationStatus, from_attributes=True)
    return msgspec.structs.replace(explanation, status=status)
