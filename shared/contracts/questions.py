"""Questions over plain NATS requests (`ask.…`), outside every stream.

Operators' questions (`tutti status`), the webhook's advice from the planner's standby, and the
answers. A question without an answer in time is not an error of the asker: it continues without.
"""

import msgspec

from shared.model.objects import Pod, PodGroup, Resources


class StatusRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="status.ask"
):
    """Broadcast on `ask.status`; every service instance answers once."""

    #: Whether it is to report its settings, too.
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
    #: What an operator should know of an instance that does its work, by topic.
    notes: dict[str, str] = {}
    #: True for the one planner or watcher that writes; binders, webhooks and controllers are always
    #: active.
    active: bool = True
    started_ms: int = 0
    #: Generation of the DECISIONS that this process has worked with; "" before, or if it never
    #: does.
    decisions: str = ""
    #: Counters and gauges by name, as /metrics shows them: decisions_total, gangs{phase}…,
    #: pods_bound_total.
    figures: dict[str, float] = {}
    #: Where asked for: its settings by name, without secrets.
    settings: dict[str, str] = {}


class FitRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="fit.ask"):
    """Would this gang fit, now, and on an empty cluster of these nodes? Pods need only shape, role
    and queue.
    """

    group: PodGroup
    pods: tuple[Pod, ...] = ()
    #: The least that a quorum of the pods counts against quotas of limits, under their names
    #: (`limits.cpu`): limits are no part of a shape.
    limits: Resources = ()


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="fit.answer"):
    """`ever` False: no set of nodes of this cluster could hold it even when empty, and `sentence`
    says why.
    """

    fits: bool
    ever: bool
    sentence: str = ""
    #: Where its quorum would go now: (node, members), those with most members first; at most 100.
    where: tuple[tuple[str, int], ...] = ()
    #: The gangs whose pods would be evicted for it, were it created now: ("namespace/name" of a
    #: gang, pods), those with most pods first; of gangs that do not fit, where evictions help.
    displaces: tuple[tuple[str, int], ...] = ()
    #: By which right: "preempt" (within its queue, by priority) or "reclaim" (from other queues).
    displaces_by: str = ""
    #: Admission would refuse it: its queue does not exist or is not open.
    refused: bool = False


class LedgerRequest(msgspec.Struct, frozen=True, kw_only=True, tag="ledger.ask"):
    """What do queues hold, deserve, and wait for? Asked on `ask.planner.ledger`."""


class LedgerAmount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One resource of one queue, its subtree included, in the model's units."""

    resource: str
    used: int = 0
    #: Asked for by gangs that wait for room.
    wanted: int = 0
    #: Minima of admitted gangs that have not started.
    promised: int = 0
    #: For lost members of its gangs, room for them held or sought.
    owed: int = 0
    #: None: it shares with no queue now.
    deserved: int | None = None
    guarantee: int = 0
    #: Its capability, less what others are guaranteed; None: unlimited.
    ceiling: int | None = None


class LedgerTotal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the cluster has of one resource, and how much of it the gangs of all queues can use."""

    resource: str
    total: int
    usable: int


class LedgerQueue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One queue. `exists` False: gangs name it, and there is no such object."""

    name: str
    exists: bool
    parent: str = ""
    state: str = ""
    weight: int = 1
    priority: int = 0
    strict: bool = False
    reclaimable: bool = True
    #: Gangs that have started, that wait for room, and that are not admitted.
    running: int = 0
    waiting: int = 0
    outside: int = 0
    amounts: tuple[LedgerAmount, ...] = ()
    #: "namespace/name" of the gangs that hold most members.
    holders: tuple[str, ...] = ()
    #: What limits it now; "": nothing does.
    why: str = ""


class LedgerAnswer(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="ledger.answer"
):
    """All queues by name. `shared` False: no policy makes them share."""

    queues: tuple[LedgerQueue, ...]
    shared: bool = True
    #: Of the resources that any queue names.
    totals: tuple[LedgerTotal, ...] = ()
