"""PodGroup and Queue as kube-batch defined them and its successors kept them: shared by three
dialects.

Reads the typed objects, collects violations instead of raising (`PodGroup.errors`: such a group is
never planned, and its verdict lists them), and builds the status that all of them have.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, get_args

import msgspec

from shared.contracts import annotations
from shared.contracts.verdicts import GangPhase, Verdict
from shared.dialects import requirements
from shared.dialects.conditions import conditions_of
from shared.dialects.field_checks import Findings, quantity
from shared.dialects.group_metadata import (
    group_kind,
    last_run,
    link_of_job,
    not_negative,
    trace_root,
)
from shared.dialects.owned_gangs import is_made_for_pods, is_of_whole_owner
from shared.dialects.protocol import (
    NAME_CHARACTERS_MAX,
    JsonObject,
    Kind,
    Status,
    cluster_identity,
)
from shared.dialects.run_limits import limits_of_queue
from shared.dialects.settings import check_settings, read_settings, setting_errors
from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import Queue
from shared.kube.decoding import Undecodable
from shared.kube.objects import ResourceList
from shared.kube.quantities import QuantityError, amount
from shared.kube.resources import Resource
from shared.model import objects as model

#: Limits of the roles or resources that an object names, so that it fits into a message.
NAMES_MAX: Final = 1000
_NAMES_CHARACTERS_MAX: Final = 32 * 1024
#: Annotations of a queue for hierarchical DRF: its path from the root, and the weight of each step.
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
_PATH_CHARACTERS_MAX: Final = 2048
_QUEUE_STATES: Final[dict[str, model.QueueState]] = {
    state: state for state in get_args(model.QueueState)
}
#: Parts of quota-style lists (`requests.cpu`, `count/pods`) that name no resource of a node.
_QUOTA_PREFIXES: Final = ("requests.", "limits.", "count/")


def kinds_of_groups(
    dialect: str,
    pod_groups: Resource,
    queues: Resource,
    *,
    with_volcano_fields: bool,
    status: Status,
) -> tuple[Kind, Kind]:
    """The kinds of an API group with PodGroups and Queues.

    Args:
        dialect: Name of its dialect.
        pod_groups: PodGroups of the API group.
        queues: Its Queues.
        with_volcano_fields: Whether to read the fields that Volcano added; kube-batch ignores
            minTaskMember and minResources.
        status: How a verdict is written on a PodGroup.
    """
    return (
        group_kind(
            pod_groups,
            PodGroup,
            _volcano_group if with_volcano_fields else _kube_batch_group,
            dialect=dialect,
            shared=False,
            status=status,
            undecoded={"waits_for_inqueue": with_volcano_fields},
        ),
        Kind(
            resource=queues,
            neutral="queue",
            decoded=Queue,
            read=partial(read_queue, dialect=dialect),
            read_undecodable=partial(read_undecodable_queue, dialect=dialect),
        ),
    )


def _kube_batch_group(stored: PodGroup, given: model.PodGroup, errors: list[str]) -> model.PodGroup:
    """The fields that all PodGroups have."""
    metadata, spec = stored.metadata, stored.spec
    minimum = not_negative(spec.min_member, "spec.minMember", errors)
    owner, namespace = given.owner, metadata.namespace
    root = trace_root(metadata.annotations.get(annotations.TRACE_ROOT, ""), owner, namespace)
    return msgspec.structs.replace(
        given,
        min_member=minimum,
        queue=spec.queue,
        priority_class=spec.priority_class_name,
        phase=stored.status.phase,
        traceparent=given.traceparent or ("" if root else link_of_job(owner, namespace)),
        trace_root=root,
        last_run=last_run(metadata, stored.status),
    )


def _volcano_group(stored: PodGroup, given: model.PodGroup, errors: list[str]) -> model.PodGroup:
    """The same with the fields that Volcano added."""
    metadata, spec = stored.metadata, stored.spec
    group = _kube_batch_group(stored, given, errors)
    min_task_member = _min_task_member(spec.min_task_member, errors)
    min_resources, resource_errors = read_min_resources(spec.min_resources)
    errors.extend(resource_errors)
    made = is_made_for_pods(metadata)
    is_declared = not made or is_of_whole_owner(metadata)
    return msgspec.structs.replace(
        group,
        min_task_member=min_task_member,
        # Made of the requests of the pods that there were first: the pods that exist count.
        min_resources=min_resources if is_declared else None,
        priority_class="" if made else group.priority_class,
        waits_for_inqueue=True,
        made_for_pods=made,
        one_by_one=not is_declared and spec.min_member <= 1,
        workload_ended=made and annotations.WORKLOAD_ENDED in metadata.annotations,
        topology=requirements.label_topology(metadata.annotations)
        or requirements.topology(spec.network_topology),
        sub_groups=requirements.sub_groups(spec.sub_group_policy, errors),
    )


def read_queue(queue: Queue, *, dialect: str) -> model.Queue:
    """The neutral queue. One with a malformed amount is in state Unknown: a limit that cannot be
    read must not be dropped.
    """
    metadata, spec = queue.metadata, queue.spec
    errors = list(setting_errors(metadata.annotations, on_queue=True))
    amounts = {
        name: _amounts(resources or {}, f"spec.{name}", errors)
        for name, resources in (
            ("capability", spec.capability),
            ("deserved", spec.deserved),
            ("guarantee.resource", spec.guarantee and spec.guarantee.resource),
        )
    }
    weight = not_negative(1 if spec.weight is None else spec.weight, "spec.weight", errors)
    node_groups = requirements.node_groups(spec.affinity, errors)
    state = _QUEUE_STATES.get(queue.status.state, "Unknown")
    return model.Queue(
        **cluster_identity(metadata),
        dialect=dialect,
        created_ms=metadata.created_ms,
        weight=weight,
        capability=amounts["capability"],
        deserved=amounts["deserved"],
        guarantee=amounts["guarantee.resource"],
        reclaimable=spec.reclaimable is not False,
        parent=spec.parent[:NAME_CHARACTERS_MAX],
        priority=spec.priority,
        state="Unknown" if errors else state,
        settings=(*_queue_errors(errors), *read_settings(metadata.annotations)),
        hierarchy=metadata.annotations.get(HIERARCHY, "")[:_PATH_CHARACTERS_MAX],
        hierarchy_weights=metadata.annotations.get(HIERARCHY_WEIGHTS, "")[:_PATH_CHARACTERS_MAX],
        dequeue_strategy=spec.dequeue_strategy[:NAME_CHARACTERS_MAX],
        node_groups=node_groups,
        run_limits=limits_of_queue(metadata.annotations),
    )


def read_undecodable_queue(undecodable: Undecodable, *, dialect: str) -> model.Queue:
    """A queue that does not fit its type takes no gangs."""
    metadata = undecodable.metadata
    return model.Queue(
        **cluster_identity(metadata),
        dialect=dialect,
        created_ms=metadata.created_ms,
        state="Unknown",
        settings=_queue_errors([undecodable.error]),
    )


def group_status(phases: Mapping[GangPhase, str], verdict: Verdict) -> JsonObject:
    """Phase, counts and conditions, in the vocabulary of `phases`; counts of 0 are left out, as Go
    does.
    """
    return {
        "phase": phases[verdict.phase],
        "members": verdict.members or None,
        "running": verdict.running or None,
        "succeeded": verdict.succeeded or None,
        "failed": verdict.failed or None,
        "conditions": conditions_of(verdict),
    }


def check_pod_group(candidate: JsonObject) -> tuple[Findings, JsonObject]:
    """The violations of rules common to all PodGroups, and the spec for a dialect's own checks."""
    findings = Findings()
    spec = findings.section(candidate, "spec")
    findings.integer(spec, "spec.minMember", minimum=0)
    findings.text(spec, "spec.queue")
    findings.text(spec, "spec.priorityClassName")
    findings.quantities(spec, "spec.minResources", quantity)
    findings.errors.extend(requirements.objections(check_settings(findings, candidate)))
    return findings, spec


def _min_task_member(minima: dict[str, int], errors: list[str]) -> tuple[tuple[str, int], ...]:
    if _too_many(minima):
        errors.append(f"spec.minTaskMember: {len(minima)} roles, more than are supported")
        return ()
    errors.extend(
        f"spec.minTaskMember.{role}: {least} is negative"
        for role, least in sorted(minima.items())
        if least < 0
    )
    return tuple(sorted(minima.items()))


def _too_many(named: Mapping[str, object]) -> bool:
    return len(named) > NAMES_MAX or sum(map(len, named)) > _NAMES_CHARACTERS_MAX


def read_min_resources(
    resources: ResourceList | None,
) -> tuple[model.Resources | None, list[str]]:
    """Amounts of the resources that nodes have, and violations; keys of quotas repeat them."""
    if resources is None:
        return None, []
    errors: list[str] = []
    of_nodes = {
        name: text for name, text in resources.items() if not name.startswith(_QUOTA_PREFIXES)
    }
    return _amounts(of_nodes, "spec.minResources", errors), errors


def _amounts(resources: ResourceList, path: str, errors: list[str]) -> model.Resources:
    good: list[tuple[str, int]] = []
    if _too_many(resources):
        errors.append(f"{path}: {len(resources)} resources, more than are supported")
        return ()
    for name, text in sorted(resources.items()):
        try:
            good.append((name, amount(name, text)))
        except QuantityError as error:
            errors.append(f"{path}.{name}: {error}")
    return tuple(good)


def _queue_errors(errors: list[str]) -> model.Labels:
    return ((model.QUEUE_ERRORS, "; ".join(errors)[:1024]),) if errors else ()
