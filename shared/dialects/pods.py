"""Reads a v1 Pod into the neutral model; `shapes` reads its shape.

Texts of unlimited length are cut here: the cluster state keeps all pods.
"""

import re
from functools import lru_cache
from sys import intern
from typing import Final, get_args

import msgspec

from shared.contracts import annotations
from shared.contracts.identity import safe_token
from shared.dialects.group_references import implied_group
from shared.dialects.pod_vocabulary import PodVocabulary, pod_vocabulary
from shared.dialects.protocol import (
    DEFAULT_SCHEDULER,
    NAME_CHARACTERS_MAX,
    Membership,
    ReadingContext,
)
from shared.dialects.run_limits import KUEUE, NOTES, run_limit_errors, run_limit_s
from shared.dialects.shapes import shape, unjudged
from shared.kinds.durations import duration_ms
from shared.kube import objects as kube
from shared.kube.decoding import Undecodable
from shared.model import objects as model
from shared.model.bounds import unjudged_shape
from shared.model.terms import TooLarge

#: Whether a pod may be evicted (Volcano), and for how long after its start it may not.
_PREEMPTABLE: Final = "volcano.sh/preemptable"
#: As Go's strconv.ParseBool reads them; what it cannot read protects, as in Volcano.
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
#: Labels of a pod, encoded, are at most this long; real ones take a hundred bytes.
_LABEL_BYTES_MAX: Final = 32 * 1024
_LABELS_TOO_LARGE: Final = TooLarge(
    field="metadata.labels",
    rule=f"takes too many bytes, and Tutti judges at most {_LABEL_BYTES_MAX} of them",
)
_REASON_CHARACTERS_MAX: Final = 256
#: Number of owners, and of sets of labels, that are cached, so that equal pods share one object.
_SHARED_MAX: Final = 1024
#: One gate is enough to keep a pod from being placed; more are only shown to users.
_GATES_MAX: Final = 20
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_PHASES: Final[dict[str, model.PodPhase]] = {
    "": "Pending",
    **{phase: phase for phase in get_args(model.PodPhase)},
}
#: Reasons of a container that is starting normally.
_STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
#: The reason with which binders mark the pods of a released gang.
_RELEASED: Final = "GangReleased"
_INT32_MAX: Final = 2**31 - 1
_encode: Final = msgspec.msgpack.Encoder().encode


def read_pod(pod: kube.Pod, context: ReadingContext) -> model.Pod:
    """The neutral model of a pod, whatever its scheduler is.

    Args:
        pod: The pod, decoded.
        context: Which scheduler names are ours, and which dialects are served.

    Returns:
        The pod as the dialects read it. What cannot be judged is named in its encoded shape.
    """
    metadata, spec, status, given = pod.metadata, pod.spec, pod.status, pod.metadata.annotations
    vocabulary = pod_vocabulary()
    ours = spec.scheduler_name in context.scheduler_names
    owner = controller_owner(metadata)
    joined, objections = vocabulary.references.read(metadata, spec, context.served)
    if joined is None and not objections:
        objections = vocabulary.group_to_come(spec.scheduler_name, context.served)
    group_name, implied = _group(pod, joined, context, vocabulary)
    min_member = _min_member(metadata, joined, vocabulary)
    labels = _labels(metadata.labels) if metadata.labels else b""
    workload, part = vocabulary.workload(metadata.labels) if metadata.labels else ("", "")
    reported = status.conditions
    disrupted, released, scheduled_ms = _conditions(reported) if reported else (False, False, 0)
    parts = vocabulary.device_parts(given) if ours and given else ()
    limit_errors = run_limit_errors(given) if annotations.RUN_LIMIT in given else ()
    unread = (*objections, *limit_errors) if ours else ()
    encoded, extended = shape(spec, status, metadata, unread=unread, device_parts=parts)
    if len(labels) > _LABEL_BYTES_MAX:
        labels = b""
        encoded = unjudged_shape(encoded, _LABELS_TOO_LARGE.text, on_node=bool(spec.node_name))
    return model.Pod(
        uid=metadata.uid,
        namespace=intern(metadata.namespace),
        name=metadata.name,
        resource_version=metadata.version,
        created_ms=metadata.created_ms,
        shape=encoded,
        ours=ours,
        scheduler_name=intern(spec.scheduler_name),
        group_name=intern(group_name),
        group_scope=model.GROUP_NAME_SCOPE if joined is None else joined.scope,
        group_implied=implied,
        group_self_declared=joined is not None and joined.self_declared,
        group_min_member=min_member,
        one_by_one=ours and owner is not None and not group_name and not min_member,
        declared_group=_shared(joined.group) if joined is not None and joined.group else None,
        role=(joined.role if joined is not None else "") or vocabulary.role(metadata),
        index=_count(vocabulary.index.read(metadata) or "", -1),
        priority=spec.priority,
        queue=intern((vocabulary.queue.read(metadata) or "")[:NAME_CHARACTERS_MAX]),
        owner=owner,
        node=intern(spec.node_name),
        phase=_PHASES.get(status.phase, "Unknown"),
        reason=status.reason[:_REASON_CHARACTERS_MAX],
        waiting=_waiting(status) if status.container_statuses else "",
        deleting=metadata.deletion_timestamp is not None,
        disrupted=disrupted,
        released=released,
        scheduled_ms=scheduled_ms,
        gates=tuple(gate.name for gate in spec.scheduling_gates[:_GATES_MAX]),
        decision_seq=_decision(given),
        traceparent=traceparent(given),
        labels=labels,
        nominated_node=intern(status.nominated_node_name[:NAME_CHARACTERS_MAX]),
        preempts=spec.preemption_policy != "Never",
        priority_class=intern(spec.priority_class_name[:NAME_CHARACTERS_MAX]),
        preemptable=preemptable(metadata),
        task_priority=_task_priority(given) if given else None,
        cooldown_ms=_cooldown_ms(metadata),
        started_ms=kube.instant_ms(status.start_time) if status.start_time is not None else 0,
        restarts=_restarts(status) if status.container_statuses else 0,
        workload=workload,
        part=part,
        misdirected=joined is not None
        and not ours
        and spec.scheduler_name == DEFAULT_SCHEDULER
        and vocabulary.references.is_ignored_by_kube_scheduler(metadata, spec, context.served),
        extended=extended if ours else (),
        run_limit_s=_limit_s(metadata, spec.active_deadline_seconds),
    )


def read_undecodable_pod(undecodable: Undecodable, context: ReadingContext) -> model.Pod | None:
    """A pod that does not fit its type: a member that cannot be judged if its metadata declares a
    gang, else None. Its scheduler is in the part that cannot be read, so it counts as ours.
    """
    metadata = undecodable.metadata
    joined, _ = pod_vocabulary().references.read(metadata, kube.PodSpec(), context.served)
    if joined is None:
        return None
    return model.Pod(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        resource_version=metadata.version,
        created_ms=metadata.created_ms,
        shape=unjudged(f"unreadable: {undecodable.error}"),
        ours=True,
        group_name=joined.group_name[:NAME_CHARACTERS_MAX],
        group_scope=joined.scope,
        owner=controller_owner(metadata),
        deleting=metadata.deletion_timestamp is not None,
    )


def traceparent(given: dict[str, str]) -> str:
    """The W3C traceparent in the annotations; "" if there is none, or it is not valid."""
    text = given.get(annotations.TRACEPARENT, "")
    return text if _TRACEPARENT.fullmatch(text) else ""


def preemptable(metadata: kube.ObjectMeta) -> str:
    """Whether Volcano's annotation, else its label, allows to evict: "true", "false" or ""."""
    text = metadata.annotations.get(_PREEMPTABLE)
    if text is None:
        text = metadata.labels.get(_PREEMPTABLE)
        if text is None:
            return ""
    return "true" if text in _TRUE else "false"


def controller_owner(metadata: kube.ObjectMeta) -> model.Owner | None:
    """The owner reference with `controller: true` of any object; None without one."""
    owner = metadata.controller
    if owner is None:
        return None
    return _same_owner(owner.api_version, owner.kind, owner.name, owner.uid)


def _group(
    pod: kube.Pod,
    joined: Membership | None,
    context: ReadingContext,
    vocabulary: PodVocabulary,
) -> tuple[str, bool]:
    """The name of the pod's group, and whether the pod only implies it; "" when it has none."""
    if joined is not None:
        return joined.group_name[:NAME_CHARACTERS_MAX], False
    scheduler = pod.spec.scheduler_name
    if (
        not context.implied_groups
        or scheduler in vocabulary.without_implied_groups
        or scheduler not in context.scheduler_names
    ):
        return "", False
    return implied_group(pod.metadata), True


def _min_member(
    metadata: kube.ObjectMeta, joined: Membership | None, vocabulary: PodVocabulary
) -> int:
    """The gang's size in the pod's annotations; 0 without one."""
    if joined is not None and joined.min_member is not None:
        return joined.min_member
    text = vocabulary.min_member.read(metadata)
    return _count(text, 0) if text else 0


@lru_cache(maxsize=_SHARED_MAX)
def _shared(group: model.PodGroup) -> model.PodGroup:
    """One object for all pods that declare an equal group, to save memory."""
    return group


@lru_cache(maxsize=_SHARED_MAX)
def _same_owner(api_version: str, kind: str, name: str, uid: str) -> model.Owner:
    """One object for all pods of an owner, to save memory: the cluster state keeps all pods."""
    most = NAME_CHARACTERS_MAX
    return model.Owner(
        api_version=api_version[:most],
        kind=kind[:most],
        name=name[:most],
        # A UID that is too long is hashed, not cut: two of them may begin alike.
        uid=uid if len(uid) <= most else safe_token(uid),
    )


def _count(text: str, otherwise: int) -> int:
    """A number of at most nine digits in a text; `otherwise` if the text is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


def _limit_s(metadata: kube.ObjectMeta, deadline_s: int) -> int:
    """The pod's run limit. Called for every change of a pod, and few state one."""
    if deadline_s <= 0 and KUEUE not in metadata.labels and NOTES.isdisjoint(metadata.annotations):
        return 0
    return run_limit_s(metadata, deadline_s)


def _decision(given: dict[str, str]) -> int:
    """Sequence out of "<generation>/<sequence>"."""
    text = given.get(annotations.DECISION, "").rpartition("/")[2]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _waiting(status: kube.PodStatus) -> str:
    """Reason and message of the first container that waits and is not starting normally."""
    for container in (*status.init_container_statuses, *status.container_statuses):
        waiting = container.state.waiting
        if waiting is not None and waiting.reason not in _STARTING:
            text = f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
            return text[:_REASON_CHARACTERS_MAX]
    return ""


def _conditions(conditions: tuple[kube.Condition, ...]) -> tuple[bool, bool, int]:
    """Whether the pod is disrupted, whether by a release, and when it was bound (0: unknown)."""
    disrupted = released = False
    scheduled_ms = 0
    for condition in conditions:
        if condition.status != "True":
            continue
        if condition.type == "DisruptionTarget":
            disrupted, released = True, condition.reason == _RELEASED
        elif condition.type == "PodScheduled":
            scheduled_ms = kube.instant_ms(condition.last_transition_time)
    return disrupted, released, scheduled_ms


def _labels(labels: dict[str, str]) -> bytes:
    """The labels' msgpack.

    Not cached by the labels: a gang's members differ in their index, and a look-up costs more than
    the encoding.
    """
    return _one_of_equal(_encode(tuple(sorted(labels.items()))))


@lru_cache(maxsize=_SHARED_MAX)
def _one_of_equal(encoded: bytes) -> bytes:
    """One object for equal encodings, to save memory: the cluster state keeps all pods."""
    return encoded


def _task_priority(given: dict[str, str]) -> int | None:
    """Volcano's priority of a pod within its gang; None when absent or no int32."""
    text = given.get(annotations.TASK_PRIORITY, "")
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and len(text) <= 11):
        return None
    number = int(text)
    return number if -_INT32_MAX - 1 <= number <= _INT32_MAX else None


def _cooldown_ms(metadata: kube.ObjectMeta) -> int:
    """Time after its start in which Volcano's cdp protects the pod; 0 when none is given."""
    key = annotations.COOLDOWN_TIME
    text = metadata.annotations.get(key) or metadata.labels.get(key)
    return (duration_ms(text) or 0) if text else 0


def _restarts(status: kube.PodStatus) -> int:
    return sum(
        container.restart_count
        for container in (*status.container_statuses, *status.init_container_statuses)
    )
