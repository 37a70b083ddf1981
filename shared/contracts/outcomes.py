"""Messages of the OUTCOMES stream: what became of a decision. The first outcome of a decision wins.

Writer: binders. Readers: planners. Subject `outcomes.<gang id>.<decision sequence>`, appended with
an expected last subject sequence: 0 by the binder that has the message first, and by a binder that
has it again that of the claim which it stored there before its first request. So an outcome proves
that no binder whose delivery is newer has begun: with `delivered` 1, that no other request can be
in flight.
"""

from typing import Literal, TypeAlias

import msgspec

MemberResult = Literal["bound", "refused", "conflict", "gone", "unknown", "skipped", "unprepared"]
"""What the API server said of one member.

bound: on the node decided (now or already). refused: definitely not, and asking again with the same
node would not help (403, 422, 400). conflict: 409, bound elsewhere, other UID, being deleted,
gated. gone: 404. unknown: timeout, 5xx or 429 after all retries: a late POST may still bind it.
skipped: not sent, the pre-flight of another failed, or a claim of another could not be prepared.
unprepared: not sent, its claims could not be prepared for this node; another node may do.

Of an `EvictionDecision` only victims are listed of which it is not known that they are deleted,
being deleted or gone (another UID is gone, too): refused (403 and the like) or unknown.
"""


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The result for one member that is not plainly bound."""

    uid: str
    node: str
    result: MemberResult
    code: int = 0
    reason: str = ""
    message: str = ""
    #: An earlier request for this member went unanswered: whatever the result, it may still bind.
    late: bool = False


class Outcome(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="decision.outcome"
):
    """One per decision."""

    gang_id: str
    decision_seq: int
    epoch: int
    binder: str
    #: How often the message had been delivered when this was written, 2 where that is not known; 1
    #: means no second POST can be in flight.
    delivered: int
    #: "" when the decision was carried out; StaleEpoch, PreflightFailed, BinderGaveUp, … otherwise.
    reason: str = ""
    #: What an operator should know of a decision that was carried out: "PreflightUntested: <the
    #: webhook's words>".
    notes: tuple[str, ...] = ()
    bound: int = 0
    #: Victims that are deleted, being deleted, were gone, or are left because they have succeeded:
    #: all the same to a release.
    evicted: int = 0
    #: Members whose result is not `bound`, or victims that are not `evicted`.
    members: tuple[Member, ...] = ()
    #: Generation of the DECISIONS in which `decision_seq` counts: the subject of another life's
    #: outcome may be the same. "": not reported.
    generation: str = msgspec.field(default="", name="incarnation")
    received_ms: int = 0
    preflight_ms: int = 0
    first_bound_ms: int = 0
    last_bound_ms: int = 0


class DecisionClaimed(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="decision.claimed"
):
    """A binder begins with a decision that had been delivered before: earlier deliveries can store
    no outcome any more. For binders; planners leave it out.
    """

    gang_id: str
    decision_seq: int
    binder: str
    delivered: int
    generation: str = msgspec.field(default="", name="incarnation")


OutcomeRecord: TypeAlias = Outcome | DecisionClaimed
