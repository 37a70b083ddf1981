"""Messages of the OUTCOMES stream: the result of each decision. The first outcome of a decision
counts.

Writer: binders. Readers: planners. Subject `outcomes.<gang id>.<decision sequence>`, appended with
an expected last subject sequence. That is 0 for the first delivery of the decision; for a repeated
delivery it is the sequence of the claim that the binder stored there before its first request. So
an outcome proves that no binder with a later delivery has started: with `delivered` 1, that no
other request can be in flight.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.terms import Struct

MemberResult = Literal["bound", "refused", "conflict", "gone", "unknown", "skipped", "unprepared"]
"""The API server's answer for one member.

bound: on the decided node (now or before). refused: not bound, and a retry with the same node would
not help (403, 422, 400). conflict: 409, bound elsewhere, other UID, being deleted,
gated. gone: 404. unknown: timeout, 5xx or 429 after all retries: a late POST may still bind it.
skipped: not sent, because the dry run of another member failed, or a claim of another member could
not be prepared. unprepared: not sent, because its claims could not be prepared for this node;
another node may work.

For an `EvictionDecision` only refused victims (403 and the like) and unknown ones are listed; all
others are deleted, being deleted or gone (another UID counts as gone).
"""


#: Statuses with which the API server refuses an eviction for a PodDisruptionBudget, and for a pod
#: that has several. With any other cause of these, the binder tries again.
_OF_BUDGETS: Final = frozenset({429, 500})


class Member(Struct, frozen=True, kw_only=True):
    """The result for one member that is not plainly bound."""

    uid: str
    node: str
    result: MemberResult
    code: int = 0
    reason: str = ""
    message: str = ""
    #: An earlier request for this member got no answer: whatever the result, it may still bind.
    late: bool = False


def refusal_without_words(member: Member) -> str:
    """How the API server refused to evict a pod, for users who may not read the pod: the kind of
    the refusal alone. The server's message, and its reason, which a webhook chooses, may contain
    anything of the pod, its namespace and its disruption budgets.
    """
    if member.result != "refused":
        return f"the API server's answer about a pod to evict is {member.result}"
    if member.code in _OF_BUDGETS:
        return "a disruption budget protects a pod"
    return f"the API server refuses to evict a pod (status {member.code})"


class Outcome(Struct, frozen=True, kw_only=True, tag="decision.outcome"):
    """The result of one decision."""

    gang_id: str
    decision_seq: int
    epoch: int
    binder: str
    #: How often the decision had been delivered when this was written, 2 if unknown; 1 means that
    #: no second POST can be in flight.
    delivered: int
    #: "" when the decision was carried out; StaleEpoch, PreflightFailed, BinderGaveUp, … otherwise.
    reason: str = ""
    #: Remarks for operators on a decision that was carried out: "PreflightUntested: <the webhook's
    #: words>".
    notes: tuple[str, ...] = ()
    bound: int = 0
    #: Victims that are deleted, being deleted or gone, or that have succeeded: a release treats
    #: them alike.
    evicted: int = 0
    #: Members whose result is not `bound`, or victims that are not `evicted`.
    members: tuple[Member, ...] = ()
    #: Generation of the DECISIONS stream that `decision_seq` belongs to: an outcome of another
    #: generation may have the same subject. "": not reported.
    generation: str = msgspec.field(default="", name="incarnation")
    received_ms: int = 0
    preflight_ms: int = 0
    first_bound_ms: int = 0
    last_bound_ms: int = 0


class DecisionClaimed(Struct, frozen=True, kw_only=True, tag="decision.claimed"):
    """A binder starts a decision that had been delivered before: binders with earlier deliveries
    can store no outcome any more. Read by binders; planners skip it.
    """

    gang_id: str
    decision_seq: int
    binder: str
    delivered: int
    generation: str = msgspec.field(default="", name="incarnation")


OutcomeRecord: TypeAlias = Outcome | DecisionClaimed
