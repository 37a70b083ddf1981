"""Questions over plain NATS requests (`ask.…`), outside every stream.

Operators' questions (`tutti status`), the webhook's advice from the planner's standby, and the
answers. A question that nobody answers in time is not an error of the asker: it goes on without.
"""

import msgspec

from shared.model.objects import Pod, PodGroup


class StatusRequest(msgspec.Struct, frozen=True, kw_only=True, tag="status.ask"):
    """Broadcast on `ask.status`; every service instance answers once."""


class ServiceStatus(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="status.answer"
):
    """One instance: who it is, whether it is ready, and its own figures."""

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
    #: Incarnation of the DECISIONS that this process has worked with; "" before, or if it never
    #: does.
    decisions: str = ""
    #: Counters and gauges by name, as /metrics shows them: decisions_total, gangs{phase}…,
    #: pods_bound_total.
    figures: dict[str, float] = {}


class FitRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="fit.ask"):
    """Would this gang fit, now, and on an empty cluster of these nodes? Pods need only shape, role
    and queue.
    """

    group: PodGroup
    pods: tuple[Pod, ...] = ()


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="fit.answer"):
    """`ever` False: no set of nodes of this cluster could hold it even when empty, and `sentence`
    says why.
    """

    fits: bool
    ever: bool
    sentence: str = ""
