"""Grove's gangs: PodGang of scheduler.grove.io, which pods name in the label `grove.io/podgang`.

Each of its pod groups needs `minReplicas` of the pods that it references. Grove's operator creates
the pods with a scheduling gate, references them, and then removes its gate; the gang waits for
that. A constraint names keys of node labels.

The status has the phase, and the conditions Scheduled and DisruptionTarget. Conditions of other
types (Initialized, Ready) are the operator's, and stay. `placementScore` is not written.

The API has no node pools: KAI's label names one, as on a group of KAI. It has no queue, either: the
annotation of Volcano's pods names one on the PodGang, or KAI's label.
"""

from typing import Final

import msgspec

from shared.contracts.annotations import QUEUE_NAME
from shared.contracts.verdicts import Verdict
from shared.dialects import requirements
from shared.dialects.conditions import condition_of, disruption_target, written_condition
from shared.dialects.group_metadata import group_kind
from shared.dialects.ignored_fields import ignored
from shared.dialects.protocol import (
    Dialect,
    GroupReference,
    JsonObject,
    PodKeys,
    Scheduler,
    Status,
)
from shared.dialects.sub_group_tree import Part, Tree, sub_group_tree
from shared.kube.group_objects import PodGang, PodGangGroup, PodGangSpec, PodGangTopology
from shared.kube.objects import ObjectMeta
from shared.kube.resources import POD_GANGS
from shared.model import objects as model

NAME: Final = "grove"
SCOPE: Final = POD_GANGS.title

_QUEUE: Final = "kai.scheduler/queue"
#: Names the object Topology of KAI that Grove's operator makes.
_TOPOLOGY: Final = "grove.io/topology-name"


def _read(pod_gang: PodGang, given: model.PodGroup, errors: list[str]) -> model.PodGroup:
    metadata, spec = pod_gang.metadata, pod_gang.spec
    tree = _tree(metadata, spec, errors)
    return msgspec.structs.replace(
        given,
        min_member=max(1, tree.minimum),
        queue=metadata.annotations.get(QUEUE_NAME) or metadata.labels.get(_QUEUE, ""),
        priority_class=spec.priority_class_name,
        nodes=requirements.node_pool(metadata.labels),
        topology=_packed(metadata, spec.topology_constraint),
        sets=tree.sets,
        sub_groups=tree.sub_groups,
    )


def _tree(metadata: ObjectMeta, spec: PodGangSpec, errors: list[str]) -> Tree:
    """The pod groups, and the sets of them that have a constraint together."""
    sets: list[Part] = []
    #: Name of a pod group -> the set that contains it.
    set_of: dict[str, str] = {}
    known = {group.name for group in spec.podgroups}
    for index, config in enumerate(spec.topology_constraint_group_configs):
        path = f"spec.topologyConstraintGroupConfigs[{index}]"
        title = f"set {config.name}"
        for name in config.pod_group_names:
            if name not in known:
                errors.append(f"{path}.podGroupNames: there is no pod group {name}")
            elif set_of.setdefault(name, title) != title:
                errors.append(f"{path}.podGroupNames: {name} is in {set_of[name]}, too")
        if title in set_of.values():
            sets.append(
                Part(path=path, name=title, topology=_packed(metadata, config.topology_constraint))
            )
    #: Name of a pod -> the pod group that references it.
    group_of: dict[str, str] = {}
    groups: list[Part] = []
    for index, group in enumerate(spec.podgroups):
        path = f"spec.podgroups[{index}]"
        errors += _reference_errors(metadata.namespace, group, path, group_of)
        if group.min_replicas < 1:
            errors.append(f"{path}.minReplicas: {group.min_replicas} is less than 1")
        groups.append(
            Part(
                path=path,
                name=group.name,
                parent=set_of.get(group.name, ""),
                size=group.min_replicas,
                topology=_packed(metadata, group.topology_constraint),
                pods=tuple(sorted(pod.name for pod in group.pod_references)),
            )
        )
    title = f"PodGang {metadata.name}"
    return sub_group_tree(title, [*sets, *groups], errors, path="spec.podgroups")


def _reference_errors(
    namespace: str, group: PodGangGroup, path: str, group_of: dict[str, str]
) -> list[str]:
    """The references of a pod group to pods of other namespaces or of other pod groups. The pods of
    correct references are added to `group_of`.
    """
    errors: list[str] = []
    for number, pod in enumerate(group.pod_references):
        here = f"{path}.podReferences[{number}]"
        if pod.namespace not in {namespace, ""}:
            errors.append(f"{here}: {pod.name} is in the namespace {pod.namespace}")
        elif group_of.setdefault(pod.name, group.name) != group.name:
            errors.append(f"{here}: {pod.name} is in the pod group {group_of[pod.name]}, too")
    return errors


def _packed(metadata: ObjectMeta, topology: PodGangTopology | None) -> model.NetworkTopology | None:
    if topology is None or topology.pack_constraint is None:
        return None
    return requirements.packed(
        topology.pack_constraint.required or "",
        topology.pack_constraint.preferred or "",
        metadata.annotations.get(_TOPOLOGY, ""),
    )


def _status(verdict: Verdict) -> JsonObject:
    conditions = (_scheduled(verdict), disruption_target(verdict))
    return {
        "phase": _phase(verdict),
        "conditions": [condition for condition in conditions if condition is not None],
    }


def _phase(verdict: Verdict) -> str:
    """Running means that the pods run, not only that they are bound."""
    match verdict.phase:
        case "Pending" | "Inqueue":
            return "Pending"
        case "Running" | "Completed":
            ran = verdict.running + verdict.succeeded
            return "Running" if ran >= max(verdict.min_member, 1) else "Starting"
        case _:
            return "Starting"


def _scheduled(verdict: Verdict) -> JsonObject:
    scheduled = condition_of(verdict, "Scheduled")
    if scheduled is not None and scheduled.status == "True":
        return written_condition(
            "Scheduled", "True", "MinReplicasScheduled", scheduled.message, scheduled.since_ms
        )
    why = verdict.why
    reason, message = ("Scheduling", "") if why is None else (why.reason, why.sentence)
    since_ms = why.since_ms if why is not None else 0
    # The API refuses a condition without a time.
    return written_condition(
        "Scheduled", "False", reason, message, since_ms or verdict.first_seen_ms or verdict.at_ms
    )


DIALECT: Final = Dialect(
    name=NAME,
    precedence=91,
    kinds=(
        group_kind(
            POD_GANGS,
            PodGang,
            _read,
            dialect=NAME,
            scope=SCOPE,
            status=Status(body=_status, keeps_conditions=True),
        ),
    ),
    # The name that Grove's profile for KAI gives the pods.
    schedulers=(Scheduler(name="kai-scheduler", implies_groups=False, by_default=False),),
    references=(
        GroupReference(
            place="label",
            key="grove.io/podgang",
            declared_by="Grove",
            remedy="install the CRD of scheduler.grove.io",
        ),
    ),
    scope=SCOPE,
    role=PodKeys(labels=("grove.io/podclique",)),
    ignored=ignored(
        "PodGang",
        "it is a suggestion to use the nodes of an earlier PodGang",
        "spec.reuseReservationRef",
    ),
)
