"""The conditions of a gang's verdict, with the types and reasons of Volcano and Kubernetes.

A condition that was never True is omitted. One that is no longer True becomes False and stays.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from services.gang_planner.core.lifecycle import release
from services.gang_planner.core.lifecycle.assessment import growing
from services.gang_planner.core.state.existing_requests import requests_of
from services.gang_planner.core.state.gang_settings import Defaults, shortened_durations
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.member_states import PLACED, RUNNING, WAITING
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.verdicts.hold_messages import degraded_in_words, in_words
from services.gang_planner.core.verdicts.member_messages import evicted_words
from services.gang_planner.core.verdicts.provisioning_messages import failure, provisioned_message
from services.gang_planner.core.verdicts.reservation_messages import reserved, run_in_words
from shared.contracts import reasons
from shared.contracts.annotations import SCHEDULE
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.reasons import OtherScheduler
from shared.contracts.verdicts import Condition, Why
from shared.dialects.protocol import DEFAULT_SCHEDULER
from shared.model.bounded_text import SENTENCE_BYTES_MAX, shortened

SCHEDULED: Final = "tasks in gang are ready to be scheduled"
_WAITING_PHASES: Final = frozenset({"Pending", "Inqueue", "Starting", "Unknown"})
_NO_MEMBERS: Final = frozenset(
    {PendingReason.NOT_ENOUGH_PODS.value, PendingReason.NOT_ENOUGH_PODS_OF_TASK.value}
)
_RAN_PHASES: Final = frozenset({"Running", "Completed"})
_OF_REQUESTS: Final = frozenset({"Provisioned", "ProvisioningFailed"})
#: Conditions of gangs without holds, notes or evictions.
_USUAL: Final = frozenset({"Unschedulable", "Scheduled"})
#: Maximum number of pods named in a message; the rest are counted.
_NAMES_MAX: Final = 5


class _Claim(NamedTuple):
    """Whether a condition is True, with reason and message. A False one without a reason gets the
    phase as its reason.
    """

    type: str
    holds: bool
    reason: str = ""
    message: str = ""


_NOT_WAITING: Final = _Claim("Unschedulable", holds=False)
_IS_SCHEDULED: Final = _Claim("Scheduled", True, SCHEDULED)
_NOT_SCHEDULED: Final = _Claim("Scheduled", holds=False)


def conditions(
    state: State, gang: Gang, why: Why | None, before: Sequence[Condition], now_ms: int
) -> tuple[Condition, ...]:
    """The conditions of a gang; `before` are those of its last verdict, and `why` is None if it
    does not wait.
    """
    holds, names = state.holds.of(gang), state.resources.names
    known = {condition.type: condition for condition in before}
    if gang.group is not None and gang.group.scheduled_once and "Scheduled" not in known:
        # The last verdict is lost.
        known["Scheduled"] = Condition(type="Scheduled", status="False", reason="Scheduled")
    claims = [_unschedulable(gang, why), _scheduled(gang)]
    if _eventful(gang, holds) or not known.keys() <= _USUAL:
        claims += [
            _partly_bound(gang),
            _releasing(gang, known.get("Releasing")),
            _evicted(state, gang, known.get("Evicted")),
            _room_held(gang, holds, names),
            _degraded(gang, holds, names),
            _other_scheduler(gang),
            _reserved(gang),
            _run_limit(gang),
        ]
    if gang.group is not None and (gang.group.settings or "DurationShortened" in known):
        claims.append(_duration_shortened(gang, state.defaults))
    requested = requests_of(state.reference_objects, gang) or (
        gang.request is not None and gang.request.refusal
    )
    if requested or not known.keys().isdisjoint(_OF_REQUESTS):
        claims += [
            _provisioned(state.reference_objects, gang, known.get("Provisioned")),
            _provisioning_failed(state.reference_objects, gang),
        ]
    present = (
        _condition(claim, known.get(claim.type), gang.shown_phase, now_ms) for claim in claims
    )
    return tuple(condition for condition in present if condition is not None)


def meaning(gang: Gang) -> tuple[bool, ...]:
    """The parts of the conditions whose changes are published at once."""
    history = gang.history
    return history.releasing, history.repairing and partly_bound(gang)


def partly_bound(gang: Gang) -> bool:
    """Whether the gang is partly bound, and none of its bound members can be released."""
    return bool(gang.history.repairing and gang.bound and not release.worthwhile(gang))


def _eventful(gang: Gang, holds: Sequence[Hold]) -> bool:
    """Whether conditions other than the usual ones may be True; for most gangs they are not."""
    misdirected = gang.declarations.misdirected
    return bool(
        gang.history.notes.any_open
        or holds
        or gang.evicted
        or misdirected
        or gang.phase == "Unknown"
    )


def _unschedulable(gang: Gang, why: Why | None) -> _Claim:
    if why is None or gang.shown_phase not in _WAITING_PHASES:
        return _NOT_WAITING
    quorum, members = max(gang.min_member, 1), len(gang.members)
    # No more members can be unschedulable than exist.
    short = min(max(0, quorum - gang.have()), members)
    sentence = why.sentence
    if not members and why.reason in _NO_MEMBERS:
        # Usually short: the pods' controller waits for the group.
        sentence = f"pod group is not ready, {quorum} minAvailable"
    return _Claim(
        "Unschedulable",
        True,
        why.reason,
        f"{short}/{members} tasks in gang unschedulable: {sentence}",
    )


def _scheduled(gang: Gang) -> _Claim:
    return _IS_SCHEDULED if gang.shown_phase in _RAN_PHASES else _NOT_SCHEDULED


def _partly_bound(gang: Gang) -> _Claim:
    note = gang.history.notes.repair
    if note is None or not partly_bound(gang):
        return _Claim("PartlyBound", holds=False)
    return _Claim(
        "PartlyBound",
        True,
        note.reason,
        f"{gang.bound} of {max(gang.min_member, 1)} members are bound, and no controller would "
        f"create them again if they were released: {_names(gang)}",
    )


def _releasing(gang: Gang, last: Condition | None) -> _Claim:
    note = gang.history.notes.release
    if note is None:
        # A release may end before its beginning was read, so the message keeps its cause.
        return _Claim("Releasing", False, "Released", last.message if last is not None else "")
    return _Claim("Releasing", True, note.reason, f"{note.reason}: {note.message}")


def _evicted(state: State, gang: Gang, last: Condition | None) -> _Claim:
    if gang.evicted is not None:
        words = evicted_words(state, gang, gang.evicted)
        return _Claim("Evicted", True, gang.evicted.reason, words)
    if last is not None and last.status == "True" and gang.counts[WAITING] and not gang.bound:
        # An earlier planner published it, and no member has been placed since.
        return _Claim("Evicted", True, last.reason, last.message)
    return _Claim("Evicted", False, "Placed", last.message if last is not None else "")


def _room_held(gang: Gang, holds: Sequence[Hold], names: Sequence[str]) -> _Claim:
    if all(hold.reservation is None for hold in holds):
        return _Claim("RoomHeld", False, "NoRoom" if holds else gang.hold_ended)
    reason = "MembersLost"
    if all(hold.reserving for hold in holds):
        reason = "MinResources"
    elif all(hold.reserving or hold.announced for hold in holds):
        reason = "NodesLeaving"
    return _Claim("RoomHeld", True, reason, in_words(holds, names))


def _degraded(gang: Gang, holds: Sequence[Hold], names: Sequence[str]) -> _Claim:
    held = any(hold.reservation is not None for hold in holds)
    if gang.phase != "Unknown" or held or gang.history.releasing or growing(gang):
        return _Claim("Degraded", holds=False)
    return _Claim("Degraded", True, "BelowQuorum", degraded_in_words(gang, holds, names))


def _provisioned(reference_objects: ReferenceObjects, gang: Gang, last: Condition | None) -> _Claim:
    message = provisioned_message(reference_objects, gang)
    if message is None and gang.history.started and last is not None and last.status == "True":
        # The request by which it was placed has been deleted.
        message = last.message
    return _Claim(
        "Provisioned", message is not None, "Provisioned" if message else "", message or ""
    )


def _provisioning_failed(reference_objects: ReferenceObjects, gang: Gang) -> _Claim:
    reason, message = failure(reference_objects, gang) or ("", "")
    return _Claim("ProvisioningFailed", bool(reason), reason, message)


def _duration_shortened(gang: Gang, defaults: Defaults) -> _Claim:
    durations = shortened_durations(gang, defaults)
    if not durations:
        return _Claim("DurationShortened", holds=False)
    return _Claim("DurationShortened", True, "AboveCeiling", "; ".join(durations))


def _other_scheduler(gang: Gang) -> _Claim:
    if not gang.declarations.misdirected:
        return _Claim("OtherScheduler", holds=False)
    names = [member.pod.name for member in gang.members.values() if member.pod.misdirected]
    return _Claim(
        "OtherScheduler",
        True,
        "DefaultScheduler",
        f"{misdirected_words(gang)}, which binds them one by one: create them with a schedulerName "
        f"of Tutti, or after labelling the namespace {SCHEDULE}=true: {_listed(names)}",
    )


def misdirected_words(gang: Gang) -> str:
    """How many members name the default scheduler, which does not read their gang."""
    return reasons.in_words(OtherScheduler(DEFAULT_SCHEDULER, gang.declarations.misdirected))


def _reserved(gang: Gang) -> _Claim:
    note = reserved(gang)
    if note is None:
        return _Claim("Reserved", holds=False)
    return _Claim("Reserved", True, note.reason, note.message)


def _run_limit(gang: Gang) -> _Claim:
    note = gang.history.notes.run
    words = run_in_words(note) if note is not None else ""
    if note is None or not words:
        return _Claim("RunLimit", holds=False)
    return _Claim("RunLimit", True, note.reason, words)


def _names(gang: Gang) -> str:
    return _listed(
        member.pod.name for member in gang.members.values() if member.state in {PLACED, RUNNING}
    )


def _listed(pods: Iterable[str]) -> str:
    names = sorted(pods)
    more = len(names) - _NAMES_MAX
    listed = ", ".join(names[:_NAMES_MAX])
    return f"{listed} and {more} more" if more > 0 else listed


def _condition(claim: _Claim, last: Condition | None, phase: str, now_ms: int) -> Condition | None:
    """The condition after `last`; None: it was never True."""
    if not claim.holds and (last is None or last.status == "False"):
        return last
    status: Final = "True" if claim.holds else "False"
    return Condition(
        type=claim.type,
        status=status,
        reason=claim.reason if claim.holds else claim.reason or phase,
        message=shortened(claim.message, SENTENCE_BYTES_MAX),
        since_ms=last.since_ms if last is not None and last.status == status else now_ms,
    )
