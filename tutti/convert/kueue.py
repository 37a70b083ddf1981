"""Kueue's ClusterQueues, LocalQueues and Cohorts. Pure.

Nominal quotas become deserved amounts, borrowing limits the capability, what may not be lent the
guarantee. A cohort is a parent queue that may use what its members deserve together.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from shared.contracts.annotations import QUEUE_NAME
from shared.kube.quantities import amount
from tutti.convert.queue_tree import Amounts, Conversion, Json, Queue, check_form

GROUP: Final = "kueue.x-k8s.io"
KINDS: Final = frozenset({"ClusterQueue", "LocalQueue", "Cohort"})
#: Fields of a ClusterQueue or Cohort that are converted, or whose value makes no difference.
_CONVERTED: Final = frozenset(
    {"cohort", "cohortName", "parent", "parentName", "resourceGroups", "fairSharing"}
    | {"queueingStrategy"}
)
_DEFAULT_FLAVOR: Final = frozenset({"default", "default-flavor"})


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""


class _Quota(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    nominal_quota: str | float = 0
    borrowing_limit: str | float = 0
    lending_limit: str | float = 0


class _Flavor(msgspec.Struct, frozen=True):
    name: str = ""
    resources: tuple[_Quota, ...] = ()


class _ResourceGroup(msgspec.Struct, frozen=True):
    flavors: tuple[_Flavor, ...] = ()


class _FairSharing(msgspec.Struct, frozen=True):
    weight: str | float = 1


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    cohort: str = ""
    cohort_name: str = ""
    parent: str = ""
    parent_name: str = ""
    cluster_queue: str = ""
    queueing_strategy: str = ""
    fair_sharing: _FairSharing = _FairSharing()
    resource_groups: tuple[_ResourceGroup, ...] = ()


class _Object(msgspec.Struct, frozen=True):
    """The members of the three kinds that are read."""

    metadata: _Metadata
    spec: _Spec = _Spec()


def convert(objects: Iterable[Json], conversion: Conversion) -> None:
    """Add the queues of these objects. Raises ValueError."""
    given = list(objects)
    for number, one in enumerate(given, 1):
        check_form(one, _Object, f"{one['kind']} {number} of Kueue")
    cohorts = {_name(one): one for one in given if one["kind"] == "Cohort"}
    queues = [one for one in given if one["kind"] == "ClusterQueue"]
    if queues:
        conversion.losses.append(
            "Kueue admits no pods that request a resource without a quota; in Volcano's queues "
            "such a resource is not limited"
        )
    implied = {str(_cohort_of(one)) for one in queues if _cohort_of(one)}
    implied |= {str(_parent_of(one)) for one in cohorts.values() if _parent_of(one)}
    # A ClusterQueue and a cohort may have one name.
    names = {_name(one) for one in queues}
    for name in sorted({*cohorts, *implied}):
        one = cohorts.get(name, {"metadata": {"name": name}, "spec": {}})
        parent = _parent_of(one)
        queue = Queue(
            name=f"{name}-cohort" if name in names else name,
            source=f"Cohort {name}",
            parent=f"Cohort {parent}" if parent else None,
            is_pool=True,
        )
        _read(queue, one, borrows=bool(parent))
        conversion.queues.append(queue)
    for one in queues:
        cohort = _cohort_of(one)
        queue = Queue(
            name=_name(one),
            source=f"ClusterQueue {_name(one)}",
            parent=f"Cohort {cohort}" if cohort else None,
        )
        _read(queue, one, borrows=bool(cohort))
        conversion.queues.append(queue)
    _local_queues([one for one in given if one["kind"] == "LocalQueue"], conversion)


def _name(one: Json) -> str:
    return str(one["metadata"]["name"])


def _cohort_of(one: Json) -> object:
    spec = one.get("spec") or {}
    return spec.get("cohortName") or spec.get("cohort")


def _parent_of(one: Json) -> object:
    spec = one.get("spec") or {}
    return spec.get("parentName") or spec.get("parent")


def _read(queue: Queue, one: Json, *, borrows: bool) -> None:
    """Read quotas, weight and strategy, and list the remaining fields."""
    spec: Json = one.get("spec") or {}
    nominal: Amounts = defaultdict(int)
    most: Amounts = defaultdict(int)
    kept: Amounts = defaultdict(int)
    unlimited: set[str] = set()
    flavors: dict[str, None] = {}
    for flavor, resource in _quotas(spec):
        name = str(resource["name"])
        quota = amount(name, resource.get("nominalQuota", 0))
        nominal[name] += quota
        flavors[flavor] = None
        borrowing, lending = resource.get("borrowingLimit"), resource.get("lendingLimit")
        if borrows and borrowing is None:
            unlimited.add(name)
        elif borrowing is not None and borrows:
            most[name] += quota + amount(name, borrowing)
        else:
            most[name] += quota
        if lending is not None:
            kept[name] += max(0, quota - amount(name, lending))
    queue.deserved = dict(nominal)
    queue.capability = {name: found for name, found in most.items() if name not in unlimited}
    if queue.is_pool:
        # Limits of a pool depend on the quotas of its members.
        if queue.capability and borrows:
            queue.losses.append("its borrowing limit: a parent queue may use what it deserves")
        queue.capability = {}
    queue.guarantee = {name: found for name, found in kept.items() if found}
    _flavors(queue, list(flavors))
    queue.fifo = spec.get("queueingStrategy") == "StrictFIFO"
    _weight(queue, (spec.get("fairSharing") or {}).get("weight"))
    for field, value in spec.items():
        if field not in _CONVERTED and value and not _is_default(field, value):
            queue.losses.append(f"spec.{field} has no equivalent{_hint(field)}")
    if "namespaceSelector" not in spec and not queue.is_pool:
        queue.losses.append("it selects no namespaces, but any namespace may use a Volcano Queue")


def _quotas(spec: Json) -> Iterator[tuple[str, Json]]:
    for group in spec.get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for resource in flavor.get("resources") or ():
                yield str(flavor.get("name", "")), resource


def _flavors(queue: Queue, flavors: list[str]) -> None:
    if len(flavors) > 1:
        queue.losses.append(
            f"the quotas of its flavors {', '.join(flavors)} are added: a Volcano Queue has one "
            "amount of a resource"
        )
    elif flavors and flavors[0] not in _DEFAULT_FLAVOR:
        queue.losses.append(
            f"its flavor {flavors[0]}: node labels, taints and topology of a flavor do not select "
            "nodes for a Volcano Queue"
        )


def _weight(queue: Queue, weight: str | float | None) -> None:
    if weight is None:
        return
    milli = amount("cpu", weight)
    queue.weight = max(1, math.ceil(milli / 1000))
    if milli != queue.weight * 1000:
        queue.losses.append(f"its weight {weight} is {queue.weight} now: weights are 1, 2, …")


def _is_default(field: str, value: object) -> bool:
    return value == {} or (field == "stopPolicy" and value == "None")


def _hint(field: str) -> str:
    return {
        "namespaceSelector": ": any namespace may use a Volcano Queue",
        "preemption": ": the actions preempt and reclaim of the scheduler configuration apply",
        "stopPolicy": ": close the queue (tutti queue operate --action close)",
    }.get(field, "")


def _local_queues(objects: list[Json], conversion: Conversion) -> None:
    """A LocalQueue has no quota; a namespace names the queue of its gangs."""
    of_namespace: dict[str, list[Json]] = defaultdict(list)
    for one in objects:
        of_namespace[str(one["metadata"].get("namespace", "default"))].append(one)
    for namespace, found in sorted(of_namespace.items()):
        targets = {_name(one): str((one.get("spec") or {}).get("clusterQueue")) for one in found}
        for name, target in sorted(targets.items()):
            if len(targets) == 1:
                remedy = f"kubectl annotate namespace {namespace} {QUEUE_NAME}={target}"
            else:
                remedy = f"its jobs must name the queue {target}, since its namespace has several"
            conversion.losses.append(f"LocalQueue {namespace}/{name} is no queue: {remedy}")
