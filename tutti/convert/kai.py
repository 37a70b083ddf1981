"""KAI's Queues (scheduling.run.ai/v2). Pure.

Quotas become deserved amounts and limits the capability; -1 is unlimited. A queue that takes
nothing above its quota (weight 0) is limited to it.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from shared.contracts.annotations import MINIMUM_RUN_SECONDS
from shared.kinds.durations import duration_ms
from tutti.convert.queue_tree import Conversion, Json, Queue, check_form

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
    priority: int = _PRIORITY
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""
    resources: dict[str, _Amount] = {}


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()


def convert(objects: Iterable[Json], conversion: Conversion, *, gpu_resource: str) -> None:
    """Add the queues of these objects. Raises ValueError."""
    given = list(objects)
    for number, one in enumerate(given, 1):
        check_form(one, _Object, f"Queue {number} of KAI")
    ranked = any((one.get("spec") or {}).get("priority") is not None for one in given)
    for one in given:
        spec: Json = one.get("spec") or {}
        name = str(one["metadata"]["name"])
        parent = spec.get("parentQueue")
        queue = Queue(
            name=name, source=f"Queue {name}", parent=f"Queue {parent}" if parent else None
        )
        weights: dict[str, float] = {}
        for kind, found in (spec.get("resources") or {}).items():
            if kind not in _SCALE:
                queue.losses.append(f"spec.resources.{kind} has no equivalent")
                continue
            resource = gpu_resource if kind == "gpu" else kind
            _read(queue, kind, resource, found or {})
            weights[kind] = _number(found or {}, "overQuotaWeight", 1)
        _weight(queue, weights)
        _minimum_run(queue, spec)
        if ranked:
            priority = spec.get("priority")
            queue.priority = _PRIORITY if priority is None else max(0, int(priority))
        for field, value in spec.items():
            if field not in _CONVERTED and value:
                queue.losses.append(f"spec.{field} has no equivalent")
        conversion.queues.append(queue)


def _number(holder: Json, key: str, otherwise: float) -> float:
    return float(holder.get(key, otherwise))


def _read(queue: Queue, kind: str, resource: str, found: Json) -> None:
    quota, limit = _number(found, "quota", 0), _number(found, "limit", _UNLIMITED)
    if quota == _UNLIMITED:
        queue.losses.append(f"its {kind} quota is unlimited: it deserves no amount of it now")
    else:
        queue.deserved[resource] = _whole(queue, kind, quota)
    if limit != _UNLIMITED:
        queue.capability[resource] = _whole(queue, kind, limit)
    elif quota != _UNLIMITED and _number(found, "overQuotaWeight", 1) == 0:
        queue.capability[resource] = queue.deserved[resource]


def _whole(queue: Queue, kind: str, given: float) -> int:
    if given < 0:
        raise ValueError(f"{queue.source}: {kind}: {given} is negative")
    exact = given * _SCALE[kind]
    if exact != math.ceil(exact):
        queue.losses.append(f"{given} {kind} is {math.ceil(exact)} now: parts are not counted")
    return math.ceil(exact)


def _weight(queue: Queue, weights: dict[str, float]) -> None:
    """One weight: that of GPUs, else of cpu, else of memory."""
    found = [weights[kind] for kind in ("gpu", "cpu", "memory") if kind in weights]
    if not found:
        return
    queue.weight = max(1, math.ceil(found[0]))
    if set(found) - {float(queue.weight), 0.0}:
        words = ", ".join(f"{one:g}" for one in found)
        queue.losses.append(f"its weights above quota, {words}, are one weight now")


def _minimum_run(queue: Queue, spec: Json) -> None:
    given = [spec[key] for key in ("preemptMinRuntime", "reclaimMinRuntime") if spec.get(key)]
    seconds = []
    for text in given:
        found = duration_ms(str(text))
        if found is None:
            raise ValueError(f"{queue.source}: {text} is no duration")
        seconds.append(math.ceil(found / 1000))
    if not seconds:
        return
    queue.annotations[MINIMUM_RUN_SECONDS] = str(max(seconds))
    if set(seconds) != {max(seconds)} or len(seconds) == 1:
        queue.losses.append(
            f"{max(seconds)} s of minimum runtime protect from preemption and reclaim alike"
        )
