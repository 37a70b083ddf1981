"""Kueue's ClusterQueues, LocalQueues and Cohorts. Pure.

Nominal quotas become deserved amounts, borrowing limits the capability, what may not be lent the
guarantee. A cohort is a parent queue that may use what its members deserve together.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from shared.contracts.annotations import QUEUE_NAME
from shared.kube.quantities import amount
from tutti.convert.queue_tree import Amounts, Conversion, Json, Queue, read_form

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
    namespace: str = "default"


class _Quota(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    nominal_quota: str | int | float = 0
    borrowing_limit: str | int | float | None = None
    lending_limit: str | int | float | None = None


class _Flavor(msgspec.Struct, frozen=True):
    name: str = ""
    resources: tuple[_Quota, ...] = ()


class _ResourceGroup(msgspec.Struct, frozen=True):
    flavors: tuple[_Flavor, ...] = ()


class _FairSharing(msgspec.Struct, frozen=True):
    weight: str | int | float | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    cohort: str = ""
    cohort_name: str = ""
    parent: str = ""
    parent_name: str = ""
    cluster_queue: str = ""
    queueing_strategy: str = ""
    fair_sharing: _FairSharing = _FairSharing()
    resource_groups: tuple[_ResourceGroup, ...] = ()

    @property
    def above(self) -> str:
        """The cohort of a ClusterQueue, or the parent of a Cohort; "": it has none."""
        return self.cohort_name or self.cohort or self.parent_name or self.parent


class _Object(msgspec.Struct, frozen=True):
    """The members of the three kinds that are read."""

    metadata: _Metadata
    spec: _Spec = _Spec()


class _Given(NamedTuple):
    """One object: `fields` are those of its spec, also the ones that are not read."""

    kind: str
    fields: Json
    metadata: _Metadata
    spec: _Spec


def convert(objects: Iterable[Json], conversion: Conversion) -> None:
    """Add the queues of these objects. Raises ValueError."""
    given = [
        _Given(str(obj["kind"]), obj.get("spec") or {}, read.metadata, read.spec)
        for number, obj in enumerate(objects, 1)
        for read in [read_form(obj, _Object, f"{obj['kind']} {number} of Kueue")]
    ]
    cohorts = {cohort.metadata.name: cohort for cohort in given if cohort.kind == "Cohort"}
    queues = [queue for queue in given if queue.kind == "ClusterQueue"]
    if queues:
        conversion.losses.append(
            "Kueue admits no pods that request a resource without a quota; in Volcano's queues "
            "such a resource is not limited"
        )
    implied = {obj.spec.above for obj in (*queues, *cohorts.values())} - {""}
    # A ClusterQueue and a cohort may have one name.
    names = {queue.metadata.name for queue in queues}
    for name in sorted({*cohorts, *implied}):
        cohort = cohorts.get(name, _Given("Cohort", {}, _Metadata(name), _Spec()))
        own_name = f"{name}-cohort" if name in names else name
        _add(conversion, cohort, own_name, is_pool=True)
    for queue in queues:
        _add(conversion, queue, queue.metadata.name, is_pool=False)
    _local_queues([queue for queue in given if queue.kind == "LocalQueue"], conversion)


def _add(conversion: Conversion, given: _Given, name: str, *, is_pool: bool) -> None:
    queue = Queue(
        name=name,
        source=f"{given.kind} {given.metadata.name}",
        parent=f"Cohort {given.spec.above}" if given.spec.above else None,
        is_pool=is_pool,
    )
    _read(queue, given)
    conversion.queues.append(queue)


def _read(queue: Queue, given: _Given) -> None:
    """Read quotas, weight and strategy, and list the remaining fields."""
    spec, borrows = given.spec, bool(given.spec.above)
    nominal: Amounts = defaultdict(int)
    most: Amounts = defaultdict(int)
    kept: Amounts = defaultdict(int)
    unlimited: set[str] = set()
    flavors: dict[str, None] = {}
    for flavor, resource in _quotas(spec):
        name = resource.name
        quota = amount(name, resource.nominal_quota)
        nominal[name] += quota
        flavors[flavor] = None
        borrowing, lending = resource.borrowing_limit, resource.lending_limit
        if borrows and borrowing is None:
            unlimited.add(name)
        elif borrowing is not None and borrows:
            most[name] += quota + amount(name, borrowing)
        else:
            most[name] += quota
        if lending is not None:
            kept[name] += max(0, quota - amount(name, lending))
    queue.deserved = dict(nominal)
    queue.capability = {name: quantity for name, quantity in most.items() if name not in unlimited}
    if queue.is_pool:
        # Limits of a pool depend on the quotas of its members.
        if queue.capability and borrows:
            queue.losses.append("its borrowing limit: a parent queue may use what it deserves")
        queue.capability = {}
    queue.guarantee = {name: quantity for name, quantity in kept.items() if quantity}
    _flavors(queue, list(flavors))
    queue.fifo = spec.queueing_strategy == "StrictFIFO"
    _weight(queue, spec.fair_sharing.weight)
    for field, value in given.fields.items():
        if field not in _CONVERTED and value and not _is_default(field, value):
            queue.losses.append(f"spec.{field} has no equivalent{_hint(field)}")
    if "namespaceSelector" not in given.fields and not queue.is_pool:
        queue.losses.append("it selects no namespaces, but any namespace may use a Volcano Queue")


def _quotas(spec: _Spec) -> Iterator[tuple[str, _Quota]]:
    for group in spec.resource_groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                yield flavor.name, resource


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


def _local_queues(objects: list[_Given], conversion: Conversion) -> None:
    """A LocalQueue has no quota; a namespace names the queue of its gangs."""
    of_namespace: dict[str, list[_Given]] = defaultdict(list)
    for queue in objects:
        of_namespace[queue.metadata.namespace].append(queue)
    for namespace, queues in sorted(of_namespace.items()):
        targets = {queue.metadata.name: queue.spec.cluster_queue for queue in queues}
        for name, target in sorted(targets.items()):
            if len(targets) == 1:
                remedy = f"kubectl annotate namespace {namespace} {QUEUE_NAME}={target}"
            else:
                remedy = f"its jobs must name the queue {target}, since its namespace has several"
            conversion.losses.append(f"LocalQueue {namespace}/{name} is no queue: {remedy}")
