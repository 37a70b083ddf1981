"""Run limits at admission: durations that can be read, and that the queue allows.

A limit is at most the maximum that the nearest queue sets, from the gang's own queue up to `root`.
A group or Job that exists gets a longer one only if there is such a maximum, whichever of its marks
states it: plans for other gangs count on the present one. While the queues are unknown, only the
durations are checked.
"""

import math
from collections.abc import Iterator
from typing import Final

from shared.admission.parts import as_object, forbidden, invalid, member, violation
from shared.admission.queue_tree import QueueTree
from shared.admission.rules import Case
from shared.contracts.annotations import RUN_LIMIT, RUN_LIMIT_MAX
from shared.dialects.protocol import FieldError, JsonObject
from shared.dialects.run_limits import Stated, stated
from shared.dialects.settings import objection
from shared.kinds.durations import seconds_of
from shared.kinds.queue import DEFAULT_QUEUE, ROOT_QUEUE
from shared.kube.objects import ObjectMeta
from shared.model.objects import Queue

_PATH: Final = f"metadata.annotations[{RUN_LIMIT}]"


def malformed_limit(annotated: JsonObject, prefix: str = "") -> Iterator[FieldError]:
    """The violation of an object, or of a template at the path `prefix`, whose run limit is no
    duration.
    """
    text = _given(annotated)
    if text is not None and (words := objection(RUN_LIMIT, text)):
        yield violation(f"{prefix}{_PATH}", words)


def refused_limit(case: Case, queue: str) -> Iterator[FieldError]:
    """The violation of a group or a Job whose run limit, or whose change of it, its queue does not
    allow; "" is the default queue.
    """
    queues, name = case.known.queues, queue or DEFAULT_QUEUE
    if queues is None:
        return
    if case.operation != "UPDATE":
        yield from above_maximum(case.candidate, name, queues)
        return
    usual_s, most_s = (
        next((getattr(above.run_limits, field) for above in _way_up(queues, name, field)), None)
        for field in ("usual_s", "most_s")
    )
    # As the planner does: without a limit a gang has the default, else the maximum.
    unstated_s = min(filter(None, (usual_s, most_s)), default=math.inf)
    before, after = _smallest(case.old), _smallest(case.candidate)
    after_s = unstated_s if after is None else after.seconds
    if after_s <= (unstated_s if before is None else before.seconds):
        return
    if most_s is not None:
        yield from above_maximum(case.candidate, name, queues)
        return
    path = next(limit.path for limit in (before, after) if limit is not None)
    if after_s == math.inf:
        yield forbidden(path, "may not be removed: the gang would have no run limit")
    else:
        was, wanted = _shown(case.old, before), _shown(case.candidate, after)
        rule = f"may not grow from {was} to {wanted}"
        yield forbidden(path, f"{rule}: neither queue `{name}` nor one above sets {RUN_LIMIT_MAX}")


def above_maximum(
    annotated: JsonObject, queue: str, queues: QueueTree | None, prefix: str = ""
) -> Iterator[FieldError]:
    """The violation of an object, or of a template at the path `prefix`, whose run limit is longer
    than that queue allows.
    """
    text = _given(annotated)
    given_s = seconds_of(text) if text is not None else None
    above = next(_way_up(queues, queue, "most_s"), None) if queues is not None else None
    most_s = above.run_limits.most_s if above is not None else None
    if text is None or given_s is None or above is None or most_s is None or given_s <= most_s:
        return
    most = dict(above.settings).get(RUN_LIMIT_MAX, f"{most_s}s")
    place = f"metadata.annotations[{RUN_LIMIT_MAX}] of queue `{above.name}`"
    yield invalid(f"{prefix}{_PATH}", text, f'must be at most "{most}", {place}')


def _way_up(queues: QueueTree, name: str, field: str) -> Iterator[Queue]:
    """The queue of this name and those above it that set a field of `RunLimits`, nearest first."""
    for queue in (*queues.ancestors(name), queues.get(ROOT_QUEUE)):
        if queue is not None and getattr(queue.run_limits, field) is not None:
            yield queue


def _smallest(annotated: JsonObject) -> Stated | None:
    """The smallest limit that an object states in its metadata, by any of its marks."""
    annotations, labels = (
        {
            key: text
            for key, text in (as_object(member(annotated, "metadata", field)) or {}).items()
            if isinstance(text, str)
        }
        for field in ("annotations", "labels")
    )
    limits = stated(ObjectMeta(annotations=annotations, labels=labels))
    return min(limits, key=lambda limit: limit.seconds, default=None)


def _shown(annotated: JsonObject, limit: Stated | None) -> str:
    if limit is None:
        return "the default"
    return f'"{_given(annotated)}"' if limit.path == _PATH else f"{limit.seconds} s"


def _given(annotated: JsonObject) -> str | None:
    """The annotation; None without one."""
    text = member(annotated, "metadata", "annotations", RUN_LIMIT)
    return text if isinstance(text, str) else None
