"""The sentences of pending reasons that do not depend on a search for nodes."""

from collections.abc import Callable, Mapping
from typing import Final

from services.gang_planner.core.lifecycle.assessment import member_difference
from services.gang_planner.core.lifecycle.deadlines import not_running_words
from services.gang_planner.core.lifecycle.promises import PROMISED_MS
from services.gang_planner.core.state.gang_settings import placement_deadline_ms
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.sub_gangs import lacking_in_words
from services.gang_planner.core.verdicts.conditions import misdirected_words
from services.gang_planner.core.verdicts.member_messages import (
    gated_words,
    unsupported_words,
    waiting_words,
)
from services.gang_planner.core.verdicts.provisioning_messages import (
    awaits_words,
    failed_words,
    unavailable_words,
)
from services.gang_planner.core.verdicts.quota_messages import queue_refusal
from shared.contracts.decisions import NoteOpened
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.reasons import GroupMissing, in_words
from shared.model.bounded_text import joined
from shared.model.gang_keys import scope_of
from shared.model.invariants import required


def _placement_deadline_words(_: State, gang: Gang) -> str:
    lasts_s = placement_deadline_ms(gang) // 1000
    return (
        f"none of its pods was placed within {lasts_s} s, its placement deadline; none is placed "
        "any more: create the gang again"
    )


def _throttled_words(state: State, _: Gang) -> str:
    return (
        f"{state.reservations.pods_in_flight} pods are being bound, which is the in-flight limit; "
        "the gang is placed when some of them are bound"
    )


def _queue_words(_: State, gang: Gang) -> str:
    refusal = queue_refusal(gang.queue)
    return in_words(refusal) if refusal else f"queue {gang.queue.name} takes gangs again"


def _missing_members_words(_: State, gang: Gang) -> str:
    words = f"{gang.able()} of {max(gang.min_member, 1)} members exist that could run"
    if gang.promise.ended:
        words = (
            f"{words}; it was admitted more than {PROMISED_MS // 1000} s ago, so other groups are "
            "admitted without regard to it until its pods exist"
        )
    return f"{words}; {misdirected_words(gang)}" if gang.declarations.misdirected else words


def _missing_roles_words(_: State, gang: Gang) -> str:
    missing = (
        f"{gang.able(role)} of {count} members of {role} exist that could run"
        for role, count in gang.role_minima
        if gang.able(role) < count
    )
    return joined(missing, "; ")


def _backoff_words(_: State, gang: Gang) -> str:
    release, backoff = _notes(gang)
    if release:
        return release
    words = f": {backoff.message}" if backoff is not None and backoff.message else ""
    return f"its last decision could not be carried out{words}; Tutti retries it shortly"


def _binding_refused_words(_: State, gang: Gang) -> str:
    release, backoff = _notes(gang)
    if release:
        return release
    words = backoff.message if backoff is not None else gang.refusal
    return f"the API server refused to bind {words or 'members'}; Tutti retries it later"


def _released_words(_: State, gang: Gang) -> str:
    release, backoff = _notes(gang)
    if release:
        return release
    note = required(backoff, gang.full_name, "was released and has no backoff")
    return f"its bound pods were released: {note.message}; Tutti retries it later"


def _notes(gang: Gang) -> tuple[str, NoteOpened | None]:
    """A message about the gang's release, "" if there is none, and the note of its backoff."""
    notes = gang.history.notes
    release = notes.release
    words = f"its bound pods are being released: {release.message}" if release is not None else ""
    return words, notes.backoff


def _missing_words(_: State, gang: Gang) -> str:
    if gang.traits.implied:
        return (
            "Tutti has not created its PodGroup yet; if that lasts, the API server refuses it: its "
            "queue is closed or does not exist, or a quota or a webhook forbids it"
        )
    return in_words(GroupMissing(scope_of(gang.key), gang.namespace, gang.name))


#: The other reasons are explained by `Explainer`, and DuplicateGroup by `book`: its object has no
#: gang.
SENTENCES: Final[Mapping[PendingReason, Callable[[State, Gang], str]]] = {
    PendingReason.GROUP_MISSING: _missing_words,
    PendingReason.GROUP_DELETING: lambda _, gang: f"PodGroup {gang.full_name} is being deleted",
    PendingReason.INVALID_GROUP: lambda _, gang: joined(
        gang.group.errors if gang.group else (), "; "
    ),
    PendingReason.MEMBERS_DIFFER: lambda _, gang: member_difference(gang),
    PendingReason.QUEUE_MISSING: _queue_words,
    PendingReason.QUEUE_NOT_OPEN: _queue_words,
    PendingReason.QUEUE_PARENT_MISSING: _queue_words,
    PendingReason.QUEUE_CYCLE: _queue_words,
    PendingReason.QUEUE_NOT_LEAF: _queue_words,
    PendingReason.NOT_ENOUGH_PODS: _missing_members_words,
    PendingReason.NOT_ENOUGH_PODS_OF_TASK: _missing_roles_words,
    PendingReason.NOT_ENOUGH_PODS_OF_SUB_GROUP: lambda _, gang: lacking_in_words(gang),
    PendingReason.GATED: lambda _, gang: gated_words(gang),
    PendingReason.UNSUPPORTED: lambda _, gang: unsupported_words(gang),
    PendingReason.UNSUPPORTED_DEVICE: lambda _, gang: unsupported_words(gang),
    PendingReason.UNSUPPORTED_GANG: lambda _, gang: unsupported_words(gang),
    PendingReason.PREEMPTING: waiting_words,
    PendingReason.EVICTED: lambda _, __: (
        "all its pods are being evicted for another gang; it is placed again as a whole after that"
    ),
    PendingReason.AWAITS_PROVISIONING: awaits_words,
    PendingReason.PROVISIONING_FAILED: failed_words,
    PendingReason.PROVISIONING_UNAVAILABLE: unavailable_words,
    PendingReason.PLACEMENT_DEADLINE: _placement_deadline_words,
    PendingReason.CLUSTER_VIEW_STALE: lambda _, __: (
        "the planner's cluster state is stale: no watcher has updated it"
    ),
    PendingReason.BINDING_THROTTLED: _throttled_words,
    PendingReason.ACTION_MISSING: lambda _, __: (
        "the configuration names no action that places such pods"
    ),
    PendingReason.GANG_TOO_LARGE: lambda _, gang: (
        f"a quorum of {gang.min_member} members does not fit into one decision"
    ),
    PendingReason.AWAITS_OUTCOME: lambda _, __: (
        "the API server has not answered its bindings in flight; its other members depend on them"
    ),
    PendingReason.BACKOFF: _backoff_words,
    PendingReason.BINDING_REFUSED: _binding_refused_words,
    PendingReason.REPAIR_DEADLINE: _released_words,
    PendingReason.REPAIRS_BLOCKED: _released_words,
    PendingReason.START_DEADLINE: _released_words,
    PendingReason.DEGRADED_GRACE: _released_words,
    PendingReason.RUN_LIMIT: _released_words,
    PendingReason.NOT_STARTING: lambda _, gang: not_running_words(gang),
}
