"""Questions over plain NATS requests (`ask.…`), and reports (`report.…`), outside every stream.

Requests of operators (`tutti status`), and of the webhook to the planner's standby. An answer that
does not come in time is no error: the requester continues without it. A report has no answer; what
it reports is reported again while it lasts.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.objects import Pod, PodGroup, Resources
from shared.model.terms import Labels, Struct

FIT_PODS_MAX: Final = 2_000
"""Pods in one `FitRequest`: one with more does not fit into a message."""
FIT_EARLIER_PODS_MAX: Final = 20_000
"""Pods of the gangs that one `FitRequest` names as earlier ones: as many as all manifests of a
question may have."""


ESTIMATES_PAGE: Final = 1_000
"""Estimates in one answer."""
ESTIMATE_BASIS_MAX: Final = 400
"""Characters of an estimate's basis."""


class StatusRequest(Struct, frozen=True, kw_only=True, tag="status.ask"):
    """Broadcast on `ask.status`; every service instance answers once."""

    #: Whether instances report their settings as well.
    settings: bool = False


class ServiceStatus(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="status.answer"
):
    """One instance: its identity, whether it is ready, and its own figures."""

    service: str
    instance: str
    pid: int
    version: str
    #: Port of /healthz, /readyz and /metrics on 127.0.0.1 (or the pod's address).
    http_port: int
    ready: bool
    not_ready: tuple[str, ...] = ()
    #: Remarks for operators on an instance that is ready, by topic.
    notes: dict[str, str] = {}
    #: True for the one planner or watcher that writes; binders, webhooks and controllers are always
    #: active.
    active: bool = True
    started_ms: int = 0
    #: Generation of the DECISIONS stream that this process works with; "": none yet.
    decisions: str = ""
    #: Counters and gauges by name, as /metrics shows them: decisions_total, gangs{phase}…,
    #: pods_bound_total.
    figures: dict[str, float] = {}
    #: If requested: its settings by name, without secrets.
    settings: dict[str, str] = {}


class EqualPods(Struct, frozen=True, kw_only=True):
    """Pods that differ in their names only."""

    pod: Pod
    count: int = 1


class EarlierGang(Struct, frozen=True, kw_only=True):
    """A gang that is asked about together with another one, and gets its capacity before it."""

    group: PodGroup
    pods: tuple[EqualPods, ...] = ()


class AskedQueue(Struct, frozen=True, kw_only=True):
    """A queue that would be created together with the gangs of a question."""

    name: str
    parent: str = ""
    capability: Resources = ()


class FitRequest(Struct, frozen=True, kw_only=True, tag="fit.ask"):
    """Whether this gang would fit now, and whether it would on the empty cluster. Of pods only
    shape, role and queue are read.
    """

    group: PodGroup
    #: At most `FIT_PODS_MAX`.
    pods: tuple[Pod, ...] = ()
    #: The least that a quorum of the pods counts against quotas of limits, under their names
    #: (`limits.cpu`): limits are no part of a shape.
    limits: Resources = ()
    #: Gangs of the same manifests that are placed before it, in this order; one that does not fit
    #: takes nothing. Planners that do not know this field judge the gang by itself.
    earlier: tuple[EarlierGang, ...] = ()
    #: Queues of the same manifests, for gangs that name them.
    queues: tuple[AskedQueue, ...] = ()
    #: No other objects would be created: a gang that lacks members of its minimum would wait, and
    #: one in a namespace that does not exist would be refused. Planners that do not know this field
    #: judge the given pods.
    complete: bool = False
    #: Names of the namespaces of the same manifests.
    namespaces: tuple[str, ...] = ()


def impossible_words(*, needs_nodes: bool) -> str:
    """What a gang does that does not fit even on empty nodes. Nodes may be added or come back, so
    "never" is for other causes only.
    """
    return "needs more or other nodes" if needs_nodes else "can never run here"


class FitAnswer(Struct, frozen=True, kw_only=True, tag="fit.answer"):
    """`ever` False: no set of nodes of this cluster could hold it even when all were empty and in
    service, or its quota or queue could not; `sentence` has the reason.
    """

    fits: bool
    ever: bool
    sentence: str = ""
    #: Placement of its quorum now: (node, members), most members first; at most 100.
    where: tuple[tuple[str, int], ...] = ()
    #: If it does not fit and evictions would help: ("namespace/name" of a gang, number of its pods
    #: that would be evicted), most pods first; at most 1,000.
    displaces: tuple[tuple[str, int], ...] = ()
    #: The action that evicts: "preempt" (within its queue, by priority) or "reclaim" (from other
    #: queues).
    displaces_by: str = ""
    #: Admission would refuse it: its queue does not exist or is not open.
    refused: bool = False
    #: Set if there is no answer, for the reason in `sentence`: "invalid", the question breaks a
    #: rule, which `sentence` names with the field; "internal", an error of the planner. Readers
    #: that do not know this field see a gang that does not fit now.
    failure: Literal["invalid", "internal"] | None = None
    #: With `ever` False: only the nodes of this cluster are too few or too small, so that nodes
    #: which are added could hold it.
    needs_nodes: bool = False


class FragmentationRequest(msgspec.Struct, frozen=True, kw_only=True, tag="fragmentation.ask"):
    """Asks how many more pods of common shapes fit, on `ask.planner.fragmentation`."""


class TierCapacity(Struct, frozen=True, kw_only=True):
    """The domain of one tier that holds the most further pods of a shape; "": none holds any."""

    tier: str
    domain: str = ""
    pods: int = 0


class ShapeCapacity(Struct, frozen=True, kw_only=True):
    """How many more pods of one shape fit now; upper bounds for shapes with rules between pods."""

    #: A hash of the shape, which stays the same: 12 hexadecimal digits.
    id: str
    requests: Resources
    node_selector: Labels = ()
    #: Members of gangs with this shape, and those of them without a node.
    members: int
    waiting: int
    #: On all nodes: the largest gang that fits anywhere.
    total: int
    #: If all free amounts of the nodes that it may use were on one node.
    unfragmented: int
    #: The node that holds the most; "": none holds any.
    node: str = ""
    on_node: int = 0
    #: From the lowest tier of HyperNodes up.
    tiers: tuple[TierCapacity, ...] = ()


class FragmentationAnswer(Struct, frozen=True, kw_only=True, tag="fragmentation.answer"):
    """The most common shapes, most members first."""

    shapes: tuple[ShapeCapacity, ...] = ()


class EstimatesRequest(msgspec.Struct, frozen=True, kw_only=True, tag="estimates.ask"):
    """Requests when gangs are expected to start, on `ask.planner.estimates`.
    `shared.bus.questions` reads all pages.
    """

    #: The page begins with the first gang whose id is greater.
    after: str = ""


class StartEstimate(Struct, frozen=True, kw_only=True):
    """When one waiting gang is expected to start."""

    gang_id: str
    #: Its place among the waiting gangs of its queue, in the order in which they are tried; the
    #: first has 1.
    position: int
    #: In milliseconds since the epoch. Without either there is no estimate; `basis` has the reason.
    earliest_ms: int = 0
    latest_ms: int = 0
    #: A clause that says what the instants rest on, or what is missing for them. It names only
    #: gangs of the gang's own namespace; those of others are a count.
    basis: str = ""


class EstimatesAnswer(Struct, frozen=True, kw_only=True, tag="estimates.answer"):
    """A page of the estimates of one run of the standby planner, by gang id."""

    #: When the run began. 0: there was none yet.
    as_of_ms: int = 0
    estimates: tuple[StartEstimate, ...] = ()
    #: More gangs follow.
    more: bool = False


class SuggestionsRequest(msgspec.Struct, frozen=True, kw_only=True, tag="suggestions.ask"):
    """Asks what would let a waiting gang start at once, on `ask.planner.suggestions`."""

    gang_id: str


SuggestionKind: TypeAlias = Literal[
    "runLimit",
    "topology",
    "queue",
    "nodeRules",
    "tolerations",
    "minimum",
    "requests",
    "end",
    "nodes",
]


class Suggestion(Struct, frozen=True, kw_only=True):
    """One change with which the gang starts at once, as it was planned."""

    kind: SuggestionKind
    #: The rest of a sentence that begins with "it would start".
    change: str


class SuggestionsAnswer(Struct, frozen=True, kw_only=True, tag="suggestions.answer"):
    """The changes, those first that cost the gang's user least."""

    suggestions: tuple[Suggestion, ...] = ()
    #: If there are none: why.
    sentence: str = ""
    #: There is no answer, because of an error of the planner.
    failed: bool = False


class LedgerRequest(msgspec.Struct, frozen=True, kw_only=True, tag="ledger.ask"):
    """Requests the queue ledger, on `ask.planner.ledger`. `shared.bus.questions` reads all
    pages.
    """

    #: The page begins with the first queue whose name is greater. Planners of older versions do not
    #: know it, and answer with all queues.
    after: str = ""


class LedgerAmount(Struct, frozen=True, kw_only=True):
    """One resource of one queue, its subtree included, in the model's units."""

    resource: str
    used: int = 0
    #: Requests of gangs that wait for free capacity.
    wanted: int = 0
    #: Minima of admitted gangs that have not started.
    promised: int = 0
    #: Replacement reservations for lost members of its gangs, placed or not.
    owed: int = 0
    #: None: no fair share is computed for it now.
    deserved: int | None = None
    guarantee: int = 0
    #: Its capability, less the guarantees of other queues; None: unlimited.
    ceiling: int | None = None


class LedgerTotal(Struct, frozen=True, kw_only=True):
    """The cluster's amount of one resource, and how much of it all queues can use."""

    resource: str
    total: int
    usable: int


class LedgerReservation(Struct, frozen=True, kw_only=True):
    """Capacity that is kept for one gang without a pod on it, for one reason."""

    #: "namespace/name" of the gang; "": not visible to the reader.
    gang: str
    #: MinResources, Preempting, or the reason of a hold: how its members were lost.
    reason: str
    #: (resource, amount in the model's units), by name.
    amounts: tuple[tuple[str, int], ...] = ()
    #: Number of lost pods, or of parts of `minResources`.
    count: int = 0
    #: When the last of it ends, unless pods use it before.
    until_ms: int = 0


class LedgerQueue(Struct, frozen=True, kw_only=True):
    """One queue. `exists` is False for a queue that gangs name and that has no object."""

    name: str
    exists: bool
    parent: str = ""
    state: str = ""
    weight: int = 1
    priority: int = 0
    strict: bool = False
    reclaimable: bool = True
    #: Its annotation `RUN_LIMIT_MAX`; "": it has none.
    run_limit_max: str = ""
    #: Numbers of gangs that have started, that wait for free capacity, and that are not admitted.
    running: int = 0
    waiting: int = 0
    outside: int = 0
    amounts: tuple[LedgerAmount, ...] = ()
    #: "namespace/name" of the gangs that hold most members.
    holders: tuple[str, ...] = ()
    #: A sentence about its current limit; "": none.
    why: str = ""
    #: The reservations with the latest ends, and the number of all.
    reservations: tuple[LedgerReservation, ...] = ()
    reservations_count: int = 0


class LedgerAnswer(Struct, frozen=True, kw_only=True, tag="ledger.answer"):
    """A page of the queues, by name. `shared`: whether a policy computes fair shares."""

    queues: tuple[LedgerQueue, ...]
    shared: bool = True
    #: One for each resource that a queue of the page names.
    totals: tuple[LedgerTotal, ...] = ()
    #: Whether there are queues after the last one of this page.
    more: bool = False


class RequestRefused(Struct, frozen=True, kw_only=True, tag="request.refused"):
    """The API server does not create a ProvisioningRequest, or one of its PodTemplates (ADR 0087).
    Sent by the controller unless the verdict has this refusal already.
    """

    gang_id: str
    #: The name of the request.
    request: str
    #: Status, reason and message of the API server's answer, at most `REFUSAL_CHARACTERS_MAX`.
    message: str
