"""CompositePodGroup of scheduling.k8s.io: a group of PodGroups, or of other such groups.

`gang.minGroupCount` of its groups are placed together; with `basic` it is one. Pods name only
PodGroups, and groups name their parent, so a tree is known when all its objects are. The API
prescribes that a tree with a cycle, with more than four levels, or made from several Workloads is
not scheduled, and that all its groups have a condition with the reason Invalid.
"""

from typing import Final

import msgspec

from shared.contracts.verdicts import Verdict
from shared.dialects.group_metadata import (
    GroupIdentity,
    annotation_errors,
    group_annotations,
    group_identity,
    last_run,
    shown,
    undecodable_group,
)
from shared.dialects.ignored_fields import ignored
from shared.dialects.kubernetes import conditions_body, conditions_patch, has_been, spec_fields
from shared.dialects.protocol import Dialect, Kind, StatusPatch, by_object_alone
from shared.kube.decoding import Undecodable
from shared.kube.group_objects import CompositePodGroup
from shared.kube.objects import ObjectMeta
from shared.kube.resources import COMPOSITE_PODGROUPS
from shared.model import objects as model

NAME: Final = "kubernetes_composite"
SCOPE: Final = COMPOSITE_PODGROUPS.title

_SCHEDULED: Final = "CompositePodGroupInitiallyScheduled"


def read_composite(found: CompositePodGroup) -> model.PodGroup:
    """The neutral group of groups."""
    metadata, spec = found.metadata, found.spec
    errors = annotation_errors(metadata)
    of_spec = spec_fields(metadata, spec, errors)
    gang = spec.scheduling_policy.gang
    return model.PodGroup(
        **_identity(metadata),
        **group_annotations(metadata),
        **of_spec,
        min_groups=max(1, gang.min_group_count) if gang is not None else 1,
        scheduled_once=has_been(found.status, _SCHEDULED),
        last_run=last_run(metadata),
        errors=shown(errors),
    )


def read_undecodable_composite(found: Undecodable) -> model.PodGroup:
    """A group that does not fit its type: its tree is never planned, and the verdict names the
    field.
    """
    group = undecodable_group(found, _identity(found.metadata))
    return msgspec.structs.replace(group, min_groups=1)


def _identity(metadata: ObjectMeta) -> GroupIdentity:
    return group_identity(metadata, dialect=NAME, scope=SCOPE, shared=True)


def status(verdict: Verdict) -> StatusPatch | None:
    """The conditions that the API prescribes; None once the group is gone."""
    if verdict.phase == "Gone" or not verdict.uid:
        return None
    body = conditions_body(verdict, _SCHEDULED, invalid="Invalid")
    return conditions_patch(verdict, COMPOSITE_PODGROUPS, body, {})


DIALECT: Final = Dialect(
    name=NAME,
    precedence=-9,
    kinds=(
        Kind(
            resource=COMPOSITE_PODGROUPS,
            neutral="podgroup",
            decoded=CompositePodGroup,
            read=by_object_alone(read_composite),
            read_undecodable=by_object_alone(read_undecodable_composite),
            status_at="status",
            shared=True,
            of_groups=True,
        ),
    ),
    status=status,
    scope=SCOPE,
    ignored=(
        *ignored(
            "CompositePodGroup",
            "the template is copied into the group, whose fields count",
            "spec.workloadRef.templateName",
        ),
    ),
)
