"""The PodGroup of a Job: its manifest, and updates of it. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from services.controller.core.jobs.pods import Manifest
from shared.contracts.annotations import TRACE_ROOT
from shared.dialects.job_groups import group_spec
from shared.kinds.job import Job
from shared.kinds.job_shape import group_name
from shared.kinds.metadata import controlled_by
from shared.kinds.podgroup import PodGroup
from shared.kube.resources import PODGROUPS_VOLCANO

#: Fields that are updated when the job changes; the queue cannot change.
_FOLLOWS: Final = (
    "minMember",
    "minTaskMember",
    "minResources",
    "priorityClassName",
    "subGroupPolicy",
)
_MAPS: Final = frozenset({"minTaskMember", "minResources"})


def group_for(job: Job, waiting: frozenset[str], priorities: Mapping[str, int]) -> Manifest:
    """The manifest of the job's PodGroup.

    Args:
        job: The job with its defaults.
        waiting: Tasks whose pods may not be created yet.
        priorities: Value of each PriorityClass.
    """
    return {
        "apiVersion": PODGROUPS_VOLCANO.api_version,
        "kind": PODGROUPS_VOLCANO.kind,
        "metadata": {
            "name": group_name(job),
            "namespace": job.metadata.namespace,
            "labels": job.metadata.labels,
            "annotations": _annotations(job),
            "ownerReferences": [controlled_by(job).manifest],
        },
        "spec": group_spec(job, waiting, priorities),
    }


def _annotations(job: Job) -> dict[str, str]:
    """The job's annotations. The first group continues the job's trace; a group created after a
    restart is a new gang with a trace of its own.
    """
    own = {key: value for key, value in job.metadata.annotations.items() if key != TRACE_ROOT}
    return own | ({} if job.status.version else {TRACE_ROOT: job.metadata.uid})


def change_of(group: PodGroup, wanted: Manifest) -> Manifest | None:
    """The merge patch that updates a group's spec; None when it is current."""
    have: dict[str, Any] = msgspec.to_builtins(group.spec)
    want = wanted["spec"]
    change: Manifest = {}
    for field in _FOLLOWS:
        old, new = have.get(field), want.get(field)
        if _plain(old) == _plain(new):
            continue
        # A merge patch merges maps: removed members are set to null.
        if field in _MAPS:
            change[field] = _map_change(old or {}, new or {})
        else:
            change[field] = new
    return {"spec": change} if change else None


def _map_change(old: Manifest, new: Manifest) -> Manifest:
    return {key: None for key in old if key not in new} | new


def _plain(value: Any) -> Any:
    """Absent, zero and empty are the same on the wire."""
    return value or None
