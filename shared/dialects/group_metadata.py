"""What a group object says in its metadata, whatever its API. Pure."""

from collections.abc import Iterable
from typing import Final, TypedDict

import msgspec

from shared.contracts.annotations import VERDICT
from shared.dialects import requirements
from shared.dialects.pods import controller_owner, preemptable, traceparent
from shared.dialects.protocol import Identity, identity
from shared.dialects.settings import read_settings, setting_errors
from shared.kube.decoding import Undecodable
from shared.kube.objects import ObjectMeta, PodGroupStatus
from shared.model import objects as model
from shared.model.terms import Struct

#: Characters of a text that a user chose freely.
TEXT_CHARACTERS_MAX: Final = 253
_ERRORS_MAX: Final = 10
#: Roles, and sub-gangs, that a verdict counts.
_COUNTS_MAX: Final = 32
_COMPLETED: Final = "Completed"
#: More members than any gang has.
_MEMBERS_MAX: Final = 1_000_000


class _Written(Struct, frozen=True, kw_only=True):
    """The part of a `Verdict` in an annotation that names members that have ended."""

    uid: str = ""
    phase: str = ""
    attempt: int = 0
    succeeded: int = 0
    failed: int = 0
    succeeded_by_role: tuple[tuple[str, int], ...] = ()
    succeeded_by_part: tuple[tuple[str, int], ...] = ()
    jobs: tuple[str, ...] = ()


_decode_written: Final = msgspec.json.Decoder(_Written).decode


class GroupIdentity(Identity):
    """The first fields of a neutral group."""

    dialect: str
    scope: str
    shared: bool
    created_ms: int
    owner: model.Owner | None
    deleting: bool


class GroupAnnotations(TypedDict):
    """The fields of a neutral group that its annotations and labels determine."""

    settings: model.Labels
    traceparent: str
    sla_waiting_ms: int
    preemptable: str
    notes: model.Labels


def group_identity(
    metadata: ObjectMeta,
    *,
    dialect: str,
    scope: str = model.GROUP_NAME_SCOPE,
    shared: bool = False,
) -> GroupIdentity:
    """Which group it is, and of which queue and owner.

    Args:
        metadata: The object's.
        dialect: Name of its dialect.
        scope: As in `Dialect`.
        shared: As in `PodGroup`.
    """
    return {
        **identity(metadata),
        "dialect": dialect,
        "scope": scope,
        "shared": shared,
        "created_ms": metadata.created_ms,
        "owner": controller_owner(metadata),
        "deleting": metadata.deletion_timestamp is not None,
    }


def group_annotations(metadata: ObjectMeta) -> GroupAnnotations:
    """What Tutti's and Volcano's annotations and labels say of any group."""
    return {
        "settings": read_settings(metadata.annotations),
        "traceparent": traceparent(metadata.annotations),
        "sla_waiting_ms": requirements.sla_waiting_ms(metadata.annotations),
        "preemptable": preemptable(metadata),
        "notes": requirements.policy_annotations(metadata.annotations),
    }


def last_run(metadata: ObjectMeta, status: PodGroupStatus | None = None) -> model.LastRun | None:
    """What is stored with a group of members that have ended; None: nothing.

    Args:
        metadata: The group's. The verdict on it counts if it is about this object. One that a user
            copied from another object does not count, and neither does a status copied with it.
        status: The status, in an API of which all groups are Tutti's; in all others, only a verdict
            shows that a group is.
    """
    written = _verdict_on(metadata)
    if written is not None and written.uid != metadata.uid:
        return None
    found = written or _Written()
    if status is not None and status.phase == _COMPLETED:
        succeeded, failed = status.succeeded, status.failed
        found = msgspec.structs.replace(
            found,
            phase=_COMPLETED,
            succeeded=max(succeeded, found.succeeded),
            failed=max(failed, found.failed),
        )
    ended = found.phase == _COMPLETED
    if not (ended or found.succeeded > 0):
        return None
    return model.LastRun(
        ended=ended,
        attempt=_count(found.attempt),
        succeeded=_count(found.succeeded),
        failed=_count(found.failed),
        succeeded_by_role=_counts(found.succeeded_by_role),
        succeeded_by_part=_counts(found.succeeded_by_part),
        jobs=tuple(uid for uid in found.jobs[:_COUNTS_MAX] if len(uid) <= TEXT_CHARACTERS_MAX),
    )


def _verdict_on(metadata: ObjectMeta) -> _Written | None:
    """The verdict that is written on a group; None: there is none, or a user replaced it."""
    text = metadata.annotations.get(VERDICT)
    if not text:
        return None
    try:
        return _decode_written(text)
    except msgspec.MsgspecError:
        return None


def _counts(found: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (name, _count(count))
        for name, count in found[:_COUNTS_MAX]
        if len(name) <= TEXT_CHARACTERS_MAX
    )


def _count(number: int) -> int:
    """A count as a user may have changed it, within what a gang can have."""
    return min(max(number, 0), _MEMBERS_MAX)


def annotation_errors(metadata: ObjectMeta) -> list[str]:
    """The violations in these annotations. A dialect appends those of the spec."""
    found = [one.text for one in requirements.objections(metadata.annotations)]
    return [*setting_errors(metadata.annotations), *found]


def shown(errors: Iterable[str]) -> tuple[str, ...]:
    """The first violations, as `PodGroup.errors` has them."""
    return tuple(error[:TEXT_CHARACTERS_MAX] for error in list(errors)[:_ERRORS_MAX])


def undecodable_group(found: Undecodable, of_group: GroupIdentity) -> model.PodGroup:
    """A group that does not fit its type: never planned, and its verdict names the field."""
    return model.PodGroup(**of_group, errors=shown([found.error]))
