"""What is read of, and written to, group objects of all APIs alike. Pure.

A dialect with group objects states the rest: how the spec is read, and what the status says of a
verdict (`group_kind`).
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeGuard

import msgspec

from shared.contracts.annotations import VERDICT
from shared.contracts.identity import gang_trace_id, job_trace_root, traceparent_of
from shared.dialects import requirements
from shared.dialects.pods import controller_owner, preemptable, traceparent
from shared.dialects.protocol import NAME_CHARACTERS_MAX, Kind, Status, identity
from shared.dialects.run_limits import run_limit_s
from shared.dialects.settings import read_settings, setting_errors
from shared.kinds.podgroup import PodGroupStatus
from shared.kube.decoding import Undecodable
from shared.kube.objects import ObjectMeta
from shared.kube.resources import Resource
from shared.model import objects as model
from shared.model.objects import Owner
from shared.model.terms import Struct

#: API group of the Jobs whose controller creates PodGroups.
_JOB_API: Final = "batch.volcano.sh/"


def trace_root(claimed: str, owner: Owner | None, namespace: str) -> str:
    """The root of the Job's trace that the group continues; "": the group has a trace of its own.

    The annotation `tutti.dev/trace-root` counts only if it names the Job that owns the group, so
    that no user can write into the trace of another user's gang.

    Args:
        claimed: The annotation's value.
        owner: The group's controller owner.
        namespace: The group's, and so its Job's.
    """
    return job_trace_root(namespace, claimed) if _is_job(owner) and claimed == owner.uid else ""


def link_of_job(owner: Owner | None, namespace: str) -> str:
    """Traceparent of the trace with the admission of the group's Job; "" if no Job owns the group.

    For groups that do not continue this trace: later groups of a Job, and those that Volcano's
    controllers create.
    """
    if not _is_job(owner):
        return ""
    return traceparent_of(gang_trace_id(job_trace_root(namespace, owner.uid), 1))


def _is_job(owner: Owner | None) -> TypeGuard[Owner]:
    return owner is not None and owner.kind == "Job" and owner.api_version.startswith(_JOB_API)


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


GroupReader: TypeAlias = Callable[[Any, model.PodGroup, list[str]], model.PodGroup]
"""Makes the neutral group of an object, and of a group with the fields that are read alike from
objects of all APIs. Violations of the spec are appended to the list, which becomes
`PodGroup.errors`. Texts are cut afterwards, and a group without a topology gets that of the
annotations.
"""


def group_kind(
    resource: Resource,
    decoded: type[msgspec.Struct],
    read: GroupReader,
    *,
    dialect: str,
    scope: str = model.GROUP_NAME_SCOPE,
    shared: bool = True,
    status: Status,
    undecoded: Mapping[str, Any] = MappingProxyType({}),
) -> Kind:
    """The kind of a dialect's group objects.

    Args:
        resource: As in `Kind`.
        decoded: Likewise.
        status: Likewise.
        read: Reads what is special to the API.
        dialect: Name of the dialect.
        scope: As in `Dialect`.
        shared: As in `PodGroup`.
        undecoded: Fields of the groups that do not fit `decoded`. Such a group is never planned,
            and its verdict names the field.
    """

    def identified(metadata: ObjectMeta) -> model.PodGroup:
        return model.PodGroup(
            **identity(metadata),
            dialect=dialect,
            scope=scope,
            shared=shared,
            created_ms=metadata.created_ms,
            owner=controller_owner(metadata),
            deleting=metadata.deletion_timestamp is not None,
        )

    def decodable(stored: Any) -> model.PodGroup:
        metadata: ObjectMeta = stored.metadata
        errors = annotation_errors(metadata)
        alike = msgspec.structs.replace(
            identified(metadata),
            settings=read_settings(metadata.annotations),
            run_limit_s=run_limit_s(metadata),
            traceparent=traceparent(metadata.annotations),
            sla_waiting_ms=requirements.sla_waiting_ms(metadata.annotations),
            preemptable=preemptable(metadata),
            notes=requirements.policy_annotations(metadata.annotations),
            last_run=last_run(metadata),
        )
        group = read(stored, alike, errors)
        return msgspec.structs.replace(
            group,
            queue=group.queue[:NAME_CHARACTERS_MAX],
            priority_class=group.priority_class[:NAME_CHARACTERS_MAX],
            phase=group.phase[:NAME_CHARACTERS_MAX],
            topology=group.topology or requirements.label_topology(metadata.annotations),
            errors=shown(errors),
        )

    def undecodable(unread: Undecodable) -> model.PodGroup:
        group = identified(unread.metadata)
        return msgspec.structs.replace(group, **undecoded, errors=shown([unread.error]))

    return Kind(
        resource=resource,
        neutral="podgroup",
        decoded=decoded,
        read=decodable,
        read_undecodable=undecodable,
        status=status,
        shared=shared,
        of_groups="min_groups" in undecoded,
    )


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
    verdict = written or _Written()
    if status is not None and status.phase == _COMPLETED:
        succeeded, failed = status.succeeded, status.failed
        verdict = msgspec.structs.replace(
            verdict,
            phase=_COMPLETED,
            succeeded=max(succeeded, verdict.succeeded),
            failed=max(failed, verdict.failed),
        )
    ended = verdict.phase == _COMPLETED
    if not (ended or verdict.succeeded > 0):
        return None
    return model.LastRun(
        ended=ended,
        attempt=_count(verdict.attempt),
        succeeded=_count(verdict.succeeded),
        failed=_count(verdict.failed),
        succeeded_by_role=_counts(verdict.succeeded_by_role),
        succeeded_by_part=_counts(verdict.succeeded_by_part),
        jobs=tuple(uid for uid in verdict.jobs[:_COUNTS_MAX] if len(uid) <= NAME_CHARACTERS_MAX),
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


def _counts(counts: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (name, _count(count))
        for name, count in counts[:_COUNTS_MAX]
        if len(name) <= NAME_CHARACTERS_MAX
    )


def _count(number: int) -> int:
    """A count as a user may have changed it, within what a gang can have."""
    return min(max(number, 0), _MEMBERS_MAX)


def annotation_errors(metadata: ObjectMeta) -> list[str]:
    """The violations in these annotations. A dialect appends those of the spec."""
    objections = [objection.text for objection in requirements.objections(metadata.annotations)]
    return [*setting_errors(metadata.annotations), *objections]


def not_negative(number: int, path: str, errors: list[str]) -> int:
    """The number; 0 if it is negative, which is appended to `errors`."""
    if number < 0:
        errors.append(f"{path}: {number} is negative")
    return max(0, number)


def shown(errors: Iterable[str]) -> tuple[str, ...]:
    """The first violations, as `PodGroup.errors` has them."""
    return tuple(error[:NAME_CHARACTERS_MAX] for error in list(errors)[:_ERRORS_MAX])
