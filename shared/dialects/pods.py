"""Reads a v1 Pod into the neutral model: its gang, its role, and its shape.

The shape is what decides where a pod may run. Thousands of pods share a few shapes, so a shape is
computed once per distinct source: the fields it depends on are encoded (a microsecond), and a
bounded cache maps that text to the finished msgpack bytes. What Tutti cannot judge yet is named in
`Shape.unsupported` by field path; so are quantities that are none. Texts that users choose freely
are bounded here, so that no pod can outgrow a message.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from sys import intern
from typing import Final, get_args

import msgspec

from shared.contracts import annotations
from shared.dialects.protocol import ReadingContext
from shared.kube import objects as kube
from shared.kube.decoding import Undecodable
from shared.kube.quantities import QuantityError
from shared.kube.requests import effective_requests, host_ports
from shared.model import objects as model

#: Bare pods of this scheduler get no PodGroup object: kube-batch kept their groups in memory only.
SHADOWING_SCHEDULER: Final = "kube-batch"
#: Labels that say a pod's role, most specific first: Volcano, training-operator, its predecessors,
#: KubeRay.
ROLE_LABELS: Final = (
    annotations.TASK_SPEC,
    "training.kubeflow.org/replica-type",
    "tf-replica-type",
    "pytorch-replica-type",
    "mpi-replica-type",
    "replica-type",
    "ray.io/node-type",
)
#: Labels that say a pod's rank in its role.
INDEX_LABELS: Final = (
    annotations.TASK_INDEX,
    "training.kubeflow.org/replica-index",
    "tf-replica-index",
    "pytorch-replica-index",
    "mpi-replica-index",
    "replica-index",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
)
#: A shape's encoding is at most this long; real ones take a few hundred bytes.
SHAPE_BYTES_MAX: Final = 64 * 1024
#: Names in Kubernetes are at most this long: more of a text cannot name anything.
_NAME_CHARACTERS_MAX: Final = 253
_REASON_CHARACTERS_MAX: Final = 256
#: One is enough to hold a pod back; the others are for people to read.
_GATES_MAX: Final = 20
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_PHASES: Final[dict[str, model.PodPhase]] = {
    "": "Pending",
    **{phase: phase for phase in get_args(model.PodPhase)},
}
#: Reasons of a container that waits as every container does for a moment.
_STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})

#: Sources longer than this are computed each time, so that 8,192 cached ones stay below 64 MiB.
_CACHED_SOURCE_BYTES_MAX: Final = 8 * 1024


class _ShapeSource(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a shape depends on, and nothing that differs between the pods of one template."""

    spec: kube.PodSpec
    statuses: tuple[kube.ContainerStatus, ...]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_source: Final = msgspec.msgpack.Decoder(_ShapeSource).decode


def read_pod(found: kube.Pod, context: ReadingContext) -> model.Pod:
    """The neutral model of a pod, whoever its scheduler is."""
    metadata, spec, status = found.metadata, found.spec, found.status
    notes = metadata.annotations
    ours = spec.scheduler_name in context.scheduler_names
    owner = _owner(metadata)
    group_name, implied = _group(found, owner, context) if ours or notes else ("", False)
    return model.Pod(
        uid=metadata.uid,
        namespace=intern(metadata.namespace),
        name=metadata.name,
        resource_version=metadata.version,
        created_ms=metadata.created_ms,
        shape=shape(spec, (*status.container_statuses, *status.init_container_statuses)),
        ours=ours,
        scheduler_name=intern(spec.scheduler_name),
        group_name=intern(group_name),
        group_implied=implied,
        group_min_member=_count(notes.get(annotations.GROUP_MIN_MEMBER, ""), 0) if notes else 0,
        role=_role(metadata),
        index=_index(metadata),
        priority=spec.priority,
        queue=intern(notes.get(annotations.QUEUE_NAME, "")[:_NAME_CHARACTERS_MAX]),
        owner=owner,
        node=intern(spec.node_name),
        phase=_PHASES.get(status.phase, "Unknown"),
        reason=status.reason[:_REASON_CHARACTERS_MAX],
        waiting=_waiting(status) if status.container_statuses else "",
        deleting=metadata.deletion_timestamp is not None,
        disrupted=_disrupted(status.conditions) if status.conditions else False,
        gates=tuple(gate.name for gate in spec.scheduling_gates[:_GATES_MAX]),
        decision_seq=_decision(notes),
        traceparent=traceparent(notes),
    )


def read_undecodable_pod(found: Undecodable, context: ReadingContext) -> model.Pod | None:
    """A pod that does not fit its type: as a member that cannot be judged if it names a group, else
    None.
    """
    del context  # whose pod it is was in the part that cannot be read
    metadata = found.metadata
    group_name = metadata.annotations.get(annotations.GROUP_NAME, "")
    if not group_name:
        return None
    return model.Pod(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        resource_version=metadata.version,
        created_ms=metadata.created_ms,
        shape=_encode(_unjudged(f"unreadable: {found.error}")),
        ours=True,
        group_name=group_name[:_NAME_CHARACTERS_MAX],
        owner=_owner(metadata),
        deleting=metadata.deletion_timestamp is not None,
    )


def shape(spec: kube.PodSpec, statuses: tuple[kube.ContainerStatus, ...] = ()) -> bytes:
    """The msgpack of the pod's `Shape`; statuses matter only while a pod is resized in place. Never
    raises.
    """
    source = _encode(
        _ShapeSource(
            msgspec.structs.replace(
                spec,
                scheduler_name="",
                node_name="",
                priority=0,
                priority_class_name="",
                scheduling_gates=(),
                # Names and tokens of other volumes differ from pod to pod and tie it to no node.
                volumes=tuple(
                    volume
                    for volume in spec.volumes
                    if volume.persistent_volume_claim is not None or volume.ephemeral is not None
                ),
            ),
            tuple(status for status in statuses if status.allocated_resources or status.resources),
        )
    )
    if len(source) > _CACHED_SOURCE_BYTES_MAX:
        return _shape(source)
    return _cached_shape(source)


def traceparent(notes: dict[str, str]) -> str:
    """The W3C traceparent that a submitter left in the annotations; "" when there is none, or none
    that is valid.
    """
    found = notes.get(annotations.TRACEPARENT, "")
    return found if _TRACEPARENT.fullmatch(found) else ""


def controller_owner(metadata: kube.ObjectMeta) -> model.Owner | None:
    """The controller owner of any object."""
    return _owner(metadata)


def _shape(source: bytes) -> bytes:
    decoded = _decode_source(source)
    encoded = _encode(_computed_shape(decoded.spec, decoded.statuses))
    if len(encoded) <= SHAPE_BYTES_MAX:
        return encoded
    return _encode(
        _unjudged(
            f"spec: constraints take {len(encoded)} bytes, at most {SHAPE_BYTES_MAX} are judged"
        )
    )


_cached_shape: Final = lru_cache(maxsize=8192)(_shape)


def _computed_shape(spec: kube.PodSpec, statuses: tuple[kube.ContainerStatus, ...]) -> model.Shape:
    try:
        requests = effective_requests(spec, statuses)
    except QuantityError as error:
        return _unjudged(str(error))
    return model.Shape(
        requests=requests,
        node_selector=tuple(sorted(spec.node_selector.items())),
        node_affinity=_node_affinity(spec),
        tolerations=tuple(
            model.Toleration(
                key=toleration.key,
                operator=toleration.operator,
                value=toleration.value,
                effect=toleration.effect,
            )
            for toleration in spec.tolerations
        ),
        host_ports=host_ports(spec),
        unsupported=tuple(_unsupported(spec)),
    )


def _unjudged(why: str) -> model.Shape:
    return model.Shape(requests=(("pods", 1),), unsupported=(why[:1024],))


def _node_affinity(spec: kube.PodSpec) -> tuple[model.SelectorTerm, ...] | None:
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if node_affinity is None or node_affinity.required is None:
        return None
    return tuple(
        model.SelectorTerm(
            expressions=_requirements(term.match_expressions),
            fields=_requirements(term.match_fields),
        )
        for term in node_affinity.required.node_selector_terms
    )


def _requirements(found: tuple[kube.SelectorRequirement, ...]) -> tuple[model.Requirement, ...]:
    return tuple(
        model.Requirement(key=one.key, operator=one.operator, values=one.values) for one in found
    )


def _unsupported(spec: kube.PodSpec) -> Iterator[str]:
    """Paths of required constraints that no filter of ours judges; preferred ones are wishes."""
    affinity = spec.affinity if spec.affinity is not None else kube.Affinity()
    for name, terms in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if terms is not None and terms.required:
            yield f"spec.affinity.{name}.requiredDuringSchedulingIgnoredDuringExecution"
    for index, constraint in enumerate(spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != "ScheduleAnyway":
            yield f"spec.topologySpreadConstraints[{index}]"
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"spec.volumes[{volume.name}].persistentVolumeClaim"
        if volume.ephemeral is not None:
            yield f"spec.volumes[{volume.name}].ephemeral"
    if spec.resource_claims:
        yield "spec.resourceClaims"


def _group(found: kube.Pod, owner: model.Owner | None, context: ReadingContext) -> tuple[str, bool]:
    named = found.metadata.annotations.get(annotations.GROUP_NAME, "")
    if named:
        return named[:_NAME_CHARACTERS_MAX], False
    scheduler = found.spec.scheduler_name
    if (
        not context.implied_groups
        or scheduler == SHADOWING_SCHEDULER
        or scheduler not in context.scheduler_names
    ):
        return "", False
    return f"podgroup-{owner.uid if owner is not None else found.metadata.uid}", True


def _owner(metadata: kube.ObjectMeta) -> model.Owner | None:
    owner = metadata.controller
    if owner is None:
        return None
    return _same_owner(owner.api_version, owner.kind, owner.name, owner.uid)


@lru_cache(maxsize=4096)
def _same_owner(api_version: str, kind: str, name: str, uid: str) -> model.Owner:
    """One object for all pods of an owner: they are many, and the picture keeps them all."""
    most = _NAME_CHARACTERS_MAX
    return model.Owner(
        api_version=api_version[:most], kind=kind[:most], name=name[:most], uid=uid[:most]
    )


def _role(metadata: kube.ObjectMeta) -> str:
    role = metadata.annotations.get(annotations.TASK_SPEC)
    if role is None:
        role = next((metadata.labels[key] for key in ROLE_LABELS if key in metadata.labels), "")
    return intern(role[:_NAME_CHARACTERS_MAX])


def _index(metadata: kube.ObjectMeta) -> int:
    index = metadata.annotations.get(annotations.TASK_INDEX)
    if index is None:
        index = next((metadata.labels[key] for key in INDEX_LABELS if key in metadata.labels), "")
    return _count(index, -1)


def _count(text: str, otherwise: int) -> int:
    """A small number that somebody wrote as text; `otherwise` when it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


def _decision(notes: dict[str, str]) -> int:
    """Sequence out of "<incarnation>/<sequence>"."""
    text = notes.get(annotations.DECISION, "").rpartition("/")[2]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _waiting(status: kube.PodStatus) -> str:
    """What the kubelet says of the first container that waits for more than its turn."""
    for container in (*status.init_container_statuses, *status.container_statuses):
        waiting = container.state.waiting
        if waiting is not None and waiting.reason not in _STARTING:
            text = f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
            return text[:_REASON_CHARACTERS_MAX]
    return ""


def _disrupted(conditions: tuple[kube.Condition, ...]) -> bool:
    return any(one.type == "DisruptionTarget" and one.status == "True" for one in conditions)
