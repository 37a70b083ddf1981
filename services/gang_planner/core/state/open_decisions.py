"""Decisions in the log that are not completed, as the tables keep them."""

from typing import NamedTuple

import msgspec

from shared.contracts.decisions import Binding, EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome


class OpenAct(msgspec.Struct, eq=False, gc=False):
    """A decision to bind, with reservations that CLUSTER has not retired. It is part of no
    reference cycle, so the garbage collector need not track it.
    """

    #: Its sequence in the log; 0 until it is appended.
    seq: int
    act: GangDecision
    #: Number of its reservations.
    rows: int = 0
    #: The binder's outcome; None: POSTs may be in flight, or not sent yet.
    outcome: Outcome | None = None
    outcome_seq: int = 0
    #: Until when its bindings count although a newer epoch's snapshot does not have them; 0: no
    #: deadline.
    believed_until_ms: int = 0
    #: Whether its pods count as in flight: they wait only for binders.
    counted: bool = True

    def repeat(self, seq: int, act: GangDecision) -> None:
        """Replace the record by one that repeats the decision and has no outcome yet."""
        self.seq, self.act = seq, act
        self.outcome, self.outcome_seq = None, 0
        self.believed_until_ms = 0


def awaits_binders_alone(decision: GangDecision) -> bool:
    """Whether the decision waits only for binders and the API server, not for new volumes. A
    reissued decision does not count: it waited for days, and so does not show the binders' load.
    """
    return not decision.again and all(one.volume for one in decision.volumes)


class OpenEviction(msgspec.Struct, eq=False):
    """A decision to release, in the log; kept until the release is over."""

    seq: int
    act: EvictionDecision
    uids: frozenset[str] = frozenset()
    outcome: Outcome | None = None
    outcome_seq: int = 0

    def __post_init__(self) -> None:
        self.uids = frozenset(victim.uid for victim in self.act.victims)


class Unresolved(NamedTuple):
    """A logged binding of a pod that is not in the cluster state, or not yet."""

    binding: Binding
    gang_id: str
    act: OpenAct
    #: Cluster state at least this new would have the pod if it existed.
    cluster_seq: int
