"""Builds the one outcome message of a decision.

The message must not be longer than NATS accepts, or the decision would have no outcome: a member's
entry without text is not longer than the planner counts for its binding, and the texts share what
is left of a message.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from services.binder.core.answers import Answer
from shared.contracts import codec
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.outcomes import Member, MemberResult, Outcome
from shared.contracts.subjects import MESSAGE_BYTES_MAX

#: Longest text kept of one member: webhooks may answer with pages.
MESSAGE_CHARS_MAX: Final = 300
#: All texts of one outcome, a quarter of a message, or less where the members' entries leave less.
TEXT_BYTES_MAX: Final = 256 * 1024
#: Names, lengths and markers of both texts of a member.
_TEXTS_OVERHEAD_BYTES: Final = 24
#: For the other fields of an outcome, its remarks and headers.
_FIELDS_BYTES_MAX: Final = 8 * 1024


class Finding(msgspec.Struct, frozen=True, gc=False):
    """The result of a member that is not certainly bound, or of a victim not certainly gone."""

    result: MemberResult
    code: int = 0
    reason: str = ""
    message: str = ""
    #: An earlier request for it was not answered, and may still be carried out.
    late: bool = False

    @classmethod
    def of(cls, result: MemberResult, answer: Answer, *, late: bool = False) -> "Finding":
        """A result with the code, reason and message of the answer that shows it."""
        return cls(result, answer.status, answer.reason, answer.message, late)


#: No request of it was sent.
SKIPPED: Final = Finding("skipped")

Found: TypeAlias = tuple[str, str, Finding]
"""UID, node ("" for a victim, as on the wire), and the finding."""


class Instants(msgspec.Struct):
    """When each phase was reached, in milliseconds since the epoch; 0, as on the wire: not yet."""

    received_ms: int = 0
    preflight_ms: int = 0
    first_bound_ms: int = 0
    last_bound_ms: int = 0


class Sender(msgspec.Struct, frozen=True):
    """The binder that writes the outcome, and of which delivery."""

    binder: str
    decision_seq: int
    #: At least 1; above 1 another binder may have requests in flight.
    delivered: int
    #: Of the DECISIONS in which `decision_seq` counts.
    generation: str = ""


def outcome_of(
    decision: GangDecision | EvictionDecision,
    sender: Sender,
    instants: Instants,
    *,
    bound: int = 0,
    reason: str = "",
    notes: tuple[str, ...] = (),
    evicted: int = 0,
    findings: Sequence[Found] = (),
) -> Outcome:
    """Build the outcome: `bound` members are on their nodes, or `evicted` victims are gone or being
    deleted; `findings` has all other ones in the decision's order.
    """
    return Outcome(
        gang_id=decision.gang_id,
        decision_seq=sender.decision_seq,
        epoch=decision.epoch,
        binder=sender.binder,
        delivered=sender.delivered,
        reason=reason,
        notes=notes,
        bound=bound,
        evicted=evicted,
        generation=sender.generation,
        members=_members(findings),
        received_ms=instants.received_ms,
        preflight_ms=instants.preflight_ms,
        first_bound_ms=instants.first_bound_ms,
        last_bound_ms=instants.last_bound_ms,
    )


def refusal_of(
    decision: GangDecision | EvictionDecision, sender: Sender, *, reason: str, now_ms: int
) -> Outcome:
    """Build the outcome of a decision of which no request was sent."""
    if isinstance(decision, EvictionDecision):
        findings = [(victim.uid, "", SKIPPED) for victim in decision.victims]
    else:
        findings = [(binding.uid, binding.node, SKIPPED) for binding in decision.bindings]
    instants = Instants(received_ms=now_ms)
    return outcome_of(decision, sender, instants, reason=reason, findings=findings)


def _members(findings: Sequence[Found]) -> tuple[Member, ...]:
    """The findings as members, with their texts up to the limit of all texts."""
    bare = [
        Member(uid=uid, node=node, result=finding.result, code=finding.code, late=finding.late)
        for uid, node, finding in findings
    ]
    left = MESSAGE_BYTES_MAX - _FIELDS_BYTES_MAX - len(codec.encode(bare))
    budget = min(TEXT_BYTES_MAX, left)
    members: list[Member] = []
    for member, (_, _, finding) in zip(bare, findings, strict=True):
        reason = finding.reason[:MESSAGE_CHARS_MAX]
        message = finding.message[:MESSAGE_CHARS_MAX]
        if not reason and not message:
            members.append(member)
            continue
        budget -= len(message.encode()) + len(reason.encode()) + _TEXTS_OVERHEAD_BYTES
        with_texts = msgspec.structs.replace(member, reason=reason, message=message)
        members.append(with_texts if budget >= 0 else member)
    return tuple(members)
