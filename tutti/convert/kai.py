"""KAI's Queues (scheduling.run.ai/v2). Pure.

Quotas become deserved amounts and limits the capability; -1 is unlimited. A queue that takes
nothing above its quota (weight 0) is limited to it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.contracts.annotations import MINIMUM_RUN_SECONDS
from shared.kinds.durations import duration_ms
from tutti.convert.queue_tree import Conversion, Json, Queue, read_form

GROUP: Final = "scheduling.run.ai"
KINDS: Final = frozenset({"Queue"})
_UNLIMITED: Final = -1
#: The priority of a queue that names none.
_PRIORITY: Final = 100
#: KAI counts cpu in milli-CPU, as we do, memory in 10^6 bytes, and GPUs.
_SCALE: Final = {"cpu": 1, "memory": 10**6, "gpu": 1}
_CONVERTED: Final = frozenset(
    {"parentQueue", "resources", "priority", "preemptMinRuntime", "reclaimMinRuntime"}
)


class _Metadata(msgspec.Struct, frozen=True):
    name: str


class _Amount(msgspec.Struct, frozen=True, rename="camel"):
    quota: float = 0
    limit: float = _UNLIMITED
    over_quota_weight: float = 1


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    parent_queue: str = ""
    priority: int | None = None
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""
    resources: dict[str, _Amount] = {}


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()


def convert(objects: Iterable[Json], conversion: Conversion, *, gpu_resource: str) -> None:
    """Add the queues of these objects. Raises ValueError."""
    given = [
        (obj.get("spec") or {}, read_form(obj, _Object, f"Queue {number} of KAI"))
        for number, obj in enumerate(objects, 1)
    ]
    ranked = any(read.spec.priority is not None for _, read in given)
    for fields, read in given:
        name, spec = read.metadata.name, read.spec
        parent = f"Queue {spec.parent_queue}" if spec.parent_queue else None
        queue = Queue(name=name, source=f"Queue {name}", parent=parent)
        for kind, amounts in spec.resources.items():
            if kind in _SCALE:
                _read(queue, kind, gpu_resource if kind == "gpu" else kind, amounts)
            else:
                queue.losses.append(f"spec.resources.{kind} has no equivalent")
        _weight(queue, spec.resources)
        _minimum_run(queue, (spec.preempt_min_runtime, spec.reclaim_min_runtime))
        if ranked:
            queue.priority = _PRIORITY if spec.priority is None else max(0, spec.priority)
        for field, value in fields.items():
            if field not in _CONVERTED and value:
                queue.losses.append(f"spec.{field} has no equivalent")
        conversion.queues.append(queue)


def _read(queue: Queue, kind: str, resource: str, amounts: _Amount) -> None:
    if amounts.quota == _UNLIMITED:
        queue.losses.append(f"its {kind} quota is unlimited: it deserves no amount of it now")
    else:
        queue.deserved[resource] = _whole(queue, kind, amounts.quota)
    if amounts.limit != _UNLIMITED:
        queue.capability[resource] = _whole(queue, kind, amounts.limit)
    elif amounts.quota != _UNLIMITED and amounts.over_quota_weight == 0:
        queue.capability[resource] = queue.deserved[resource]


def _whole(queue: Queue, kind: str, given: float) -> int:
    if given < 0:
        raise ValueError(f"{queue.source}: {kind}: {given} is negative")
    exact = given * _SCALE[kind]
    if exact != math.ceil(exact):
        queue.losses.append(f"{given} {kind} is {math.ceil(exact)} now: parts are not counted")
    return math.ceil(exact)


def _weight(queue: Queue, resources: Mapping[str, _Amount]) -> None:
    """One weight: that of GPUs, else of cpu, else of memory."""
    kinds = [kind for kind in ("gpu", "cpu", "memory") if kind in resources]
    weights = [resources[kind].over_quota_weight for kind in kinds]
    if not weights:
        return
    queue.weight = max(1, math.ceil(weights[0]))
    if set(weights) - {float(queue.weight), 0.0}:
        words = ", ".join(f"{weight:g}" for weight in weights)
        queue.losses.append(f"its weights above quota, {words}, are one weight now")


def _minimum_run(queue: Queue, given: Iterable[str]) -> None:
    seconds = []
    for text in filter(None, given):
        duration = duration_ms(text)
        if duration is None:
            raise ValueError(f"{queue.source}: {text} is no duration")
        seconds.append(math.ceil(duration / 1000))
    if not seconds:
        return
    queue.annotations[MINIMUM_RUN_SECONDS] = str(max(seconds))
    if set(seconds) != {max(seconds)} or len(seconds) == 1:
        queue.losses.append(
            f"{max(seconds)} s of minimum runtime protect from preemption and reclaim alike"
        )
