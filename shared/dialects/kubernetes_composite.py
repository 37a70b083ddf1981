"""CompositePodGroup of scheduling.k8s.io: a group of PodGroups, or of other such groups.

`gang.minGroupCount` of its groups are placed together; with `basic` it is one. Pods name only
PodGroups, and groups name their parent, so a tree is known when all its objects are. The API
prescribes that a tree with a cycle, with more than four levels, or made from several Workloads is
not scheduled, and that all its groups have a condition with the reason Invalid.
"""

from functools import partial
from typing import Final

import msgspec

from shared.dialects.group_metadata import group_kind
from shared.dialects.ignored_fields import ignored
from shared.dialects.kubernetes import conditions_status, has_been, with_spec
from shared.dialects.protocol import Dialect, Status
from shared.kube.group_objects import KubernetesPodGroup
from shared.kube.resources import COMPOSITE_PODGROUPS
from shared.model import objects as model

NAME: Final = "kubernetes_composite"
SCOPE: Final = COMPOSITE_PODGROUPS.title

_SCHEDULED: Final = "CompositePodGroupInitiallyScheduled"


def _read(group: KubernetesPodGroup, given: model.PodGroup, errors: list[str]) -> model.PodGroup:
    gang = group.spec.scheduling_policy.gang
    return msgspec.structs.replace(
        with_spec(given, group.metadata, group.spec, errors),
        min_groups=max(1, gang.min_group_count) if gang is not None else 1,
        scheduled_once=has_been(group.status, _SCHEDULED),
    )


DIALECT: Final = Dialect(
    name=NAME,
    precedence=-9,
    kinds=(
        # A tree with a group that does not fit its type is never planned.
        group_kind(
            COMPOSITE_PODGROUPS,
            KubernetesPodGroup,
            _read,
            dialect=NAME,
            scope=SCOPE,
            undecoded={"min_groups": 1},
            status=Status(
                body=partial(conditions_status, _SCHEDULED, "Invalid"), patch_type="strategic"
            ),
        ),
    ),
    scope=SCOPE,
    ignored=(
        *ignored(
            "CompositePodGroup",
            "the template is copied into the group, whose fields count",
            "spec.workloadRef.templateName",
        ),
    ),
)
