"""What a queue of Volcano's dialect gets that it does not say, at its creation."""

from collections.abc import Iterator
from typing import Final

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_object, lacks_number, text_at
from services.admission_webhook.core.queue_tree import ROOT
from services.admission_webhook.core.review import PatchOperation, added
from shared.dialects.protocol import JsonObject

_HIERARCHY: Final = "volcano.sh/hierarchy"
_WEIGHTS: Final = "volcano.sh/hierarchy-weights"


def mutate(case: Case) -> list[PatchOperation]:
    """Weight 1 (an explicit 0 counts as none), reclaimable, and the hierarchy below `root`."""
    spec = case.candidate.get("spec")
    found = as_object(spec)
    if spec is None:
        return [added({"weight": 1, "reclaimable": True}, "spec")]
    if found is None:
        return []
    return [*_spec(found), *_hierarchy(case.candidate)]


def _spec(spec: JsonObject) -> Iterator[PatchOperation]:
    if lacks_number(spec, "weight"):
        yield added(1, "spec", "weight")
    if spec.get("reclaimable") is None:
        yield added(True, "spec", "reclaimable")


def _hierarchy(queue: JsonObject) -> Iterator[PatchOperation]:
    """Both annotations are prefixed when the path does not start at `root`, as in Volcano."""
    path = text_at(queue, "metadata", "annotations", _HIERARCHY)
    weights = text_at(queue, "metadata", "annotations", _WEIGHTS)
    if not (path and weights):
        return
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        yield added(f"{ROOT}/{path}", "metadata", "annotations", _HIERARCHY)
        yield added(f"1/{weights}", "metadata", "annotations", _WEIGHTS)
