"""Run limits at admission: durations that can be read, and that the queue allows.

A limit is at most the maximum that the nearest queue sets, from the gang's own queue up to `root`.
A group or Job that exists gets a longer one only if there is such a maximum: plans for other gangs
count on the present one. While the queues are unknown, only the durations are checked.
"""

import math
from collections.abc import Iterator
from typing import Final

from shared.admission.parts import forbidden, invalid, member, violation
from shared.admission.queue_tree import QueueTree
from shared.admission.rules import Case
from shared.contracts.annotations import RUN_LIMIT, RUN_LIMIT_MAX
from shared.dialects.protocol import FieldError, JsonObject
from shared.dialects.settings import objection
from shared.kinds.durations import seconds_of
from shared.kinds.queue import DEFAULT_QUEUE, ROOT_QUEUE
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
    usual_s = next((above.run_limits.usual_s for above in _way_up(queues, name, "usual_s")), None)
    before, after = (
        (text and seconds_of(text)) or usual_s or math.inf
        for text in (_given(case.old), _given(case.candidate))
    )
    if after <= before:
        return
    if after == math.inf:
        yield forbidden(_PATH, "may not be removed: the gang would have no run limit")
    elif next(_way_up(queues, name, "most_s"), None) is None:
        was, wanted = (
            "the default" if text is None else f'"{text}"'
            for text in (_given(case.old), _given(case.candidate))
        )
        rule = f"may not grow from {was} to {wanted}"
        yield forbidden(_PATH, f"{rule}: neither queue `{name}` nor one above sets {RUN_LIMIT_MAX}")
    else:
        yield from above_maximum(case.candidate, name, queues)


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


def _given(annotated: JsonObject) -> str | None:
    """The annotation; None without one."""
    text = member(annotated, "metadata", "annotations", RUN_LIMIT)
    return text if isinstance(text, str) else None
