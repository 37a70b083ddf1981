"""Decisions that are in the log and not done: what the tables keep of them."""

from typing import NamedTuple

from shared.contracts.decisions import Act, Binding


class OpenAct(NamedTuple):
    """A decision in the log, with room that CLUSTER has not retired."""

    seq: int
    act: Act


class Unresolved(NamedTuple):
    """A logged binding of a pod that this picture does not know: not yet, or no more."""

    binding: Binding
    gang_id: str
    seq: int
    #: A picture at least this new would know the pod if it existed.
    cluster_seq: int
