"""Decisions that are in the log and not done: what the tables keep of them."""

from typing import TYPE_CHECKING, NamedTuple

from shared.contracts.decisions import Binding, EvictionDecision, GangDecision

if TYPE_CHECKING:
    from shared.contracts.outcomes import Outcome


class OpenAct:
    """A decision to bind, in the log, with room that CLUSTER has not retired."""

    __slots__ = ("act", "believed_until_ms", "outcome", "outcome_seq", "seq")

    def __init__(self, seq: int, act: GangDecision) -> None:
        self.seq = seq
        self.act = act
        #: What a binder says of it; None: POSTs may be under way, or still to come.
        self.outcome: Outcome | None = None
        self.outcome_seq = 0
        #: Until when that it bound somebody is believed although a newer epoch's picture does not
        #: show it; 0: for ever.
        self.believed_until_ms = 0


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
    """A logged binding of a pod that this picture does not know: not yet, or no more."""

    binding: Binding
    gang_id: str
    seq: int
    #: A picture at least this new would know the pod if it existed.
    cluster_seq: int
