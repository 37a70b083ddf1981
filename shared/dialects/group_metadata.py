"""What a group object says in its metadata, whatever its API. Pure."""

from collections.abc import Iterable
from typing import Final, TypedDict

from shared.dialects import requirements
from shared.dialects.pods import controller_owner, preemptable, traceparent
from shared.dialects.protocol import Identity, identity
from shared.dialects.settings import read_settings, setting_errors
from shared.kube.decoding import Undecodable
from shared.kube.objects import ObjectMeta
from shared.model import objects as model

#: Characters of a text that a user chose freely.
TEXT_CHARACTERS_MAX: Final = 253
_ERRORS_MAX: Final = 10


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
