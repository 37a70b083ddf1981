"""Decisions that are in the log and not done: what the tables keep of them."""

from typing import NamedTuple

import msgspec

from shared.contracts.decisions import Binding, EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome


class OpenAct(msgspec.Struct, eq=False, gc=False):
    """A decision to bind, with room that CLUSTER has not retired. Nothing that it refers to leads
    back to it, so no collector need look at it.
    """

    #: Its place in the log; 0 until that has given it one.
    seq: int
    act: GangDecision
    #: How many rows of kept room belong to it.
    rows: int = 0
    #: What a binder says of it; None: POSTs may be in flight, or still to come.
    outcome: Outcome | None = None
    outcome_seq: int = 0
    #: Until when its bindings count although a newer epoch's snapshot does not show
    #: it; 0: for ever.
    believed_until_ms: int = 0
    #: Its rows are pods in flight: binders have them before them, and nothing else holds them up.
    counted: bool = True

    def repeat(self, seq: int, act: GangDecision) -> None:
        """A record that repeats the decision takes its place; no binder has answered that one
        yet.
        """
        self.seq, self.act = seq, act
        self.outcome, self.outcome_seq = None, 0
        self.believed_until_ms = 0


def awaits_binders_alone(decision: GangDecision) -> bool:
    """Whether nothing but binders and the API server decides when it is carried out: no volume has
    to be made for it first. A decision that is issued again waited for days, and says nothing of
    what binders have to do.
    """
    return not decision.again and all(one.volume for one in decision.volumes)


class OpenEviction:
    """A decision to release, in the log; kept until the release is over."""

    __slots__ = ("act", "outcome", "outcome_seq", "seq", "uids")

    def __init__(self, seq: int, act: EvictionDecision) -> None:
        self.seq = seq
        self.act = act
        self.uids = frozenset(victim.uid for victim in act.victims)
        self.outcome: Outcome | None = None
        self.outcome_seq = 0


class Unresolved(NamedTuple):
    """A logged binding of a pod that the cluster state lacks: not yet, or no more."""

    binding: Binding
    gang_id: str
    act: OpenAct
    #: Cluster state at least this new would have the pod if it existed.
    cluster_seq: int
