"""What the planner is asked about an object that is being created: the gang that it declares.

A PodGroup comes before its pods, so only what it declares can be judged; a Job brings its pods'
templates with it.
"""

from typing import Final

import msgspec

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.judge import Subject
from services.admission_webhook.core.kinds import Guarded
from services.admission_webhook.core.mutate_job import task_minimum
from services.admission_webhook.core.parts import as_int, as_list, as_object, member, text_at
from shared.contracts.asking import FitAnswer, FitRequest
from shared.dialects.discovery import dialect_of
from shared.dialects.protocol import JsonObject, ReadingContext
from shared.dialects.shapes import shape
from shared.dialects.volcano import NAME as VOLCANO_DIALECT
from shared.kube import objects as kube
from shared.kube.decoding import KindDecoder, Undecodable, without_nulls
from shared.kube.resources import JOBS_VOLCANO
from shared.model.objects import Pod, PodGroup

#: A job with more pods is not asked about: the question would take longer than the answer may.
PODS_MAX: Final = 2000

_encode: Final = msgspec.json.Encoder().encode
_decode_pod_group: Final = KindDecoder(kube.PodGroup).object


def question(asked: Subject, uid: str) -> FitRequest | None:
    """What to ask about a valid object that is being created; None when there is nothing that can
    be judged.

    Args:
        asked: The object.
        uid: Of the request: an object has no UID of its own before it exists.
    """
    guarded, case = asked
    if case.operation != "CREATE":
        return None
    if guarded.resource == JOBS_VOLCANO:
        return _of_job(case, uid)
    if guarded.resource.kind == "PodGroup":
        return _of_pod_group(guarded, case, uid)
    return None


def advice(answer: FitAnswer, *, dry_run: bool) -> tuple[str, ...]:
    """What the user is told. Whoever only tries gets to know more: would it run now?"""
    if not answer.ever:
        why = answer.sentence or "no set of nodes of this cluster could hold it"
        return (_warning(f"this gang can never run here: {why}"),)
    if not dry_run:
        return ()
    if answer.fits:
        return (_warning("this gang would fit now"),)
    return (_warning(f"this gang would have to wait: {answer.sentence or 'no room now'}"),)


def _warning(sentence: str) -> str:
    return f"tutti: {sentence}"


def _of_pod_group(guarded: Guarded, case: Case, uid: str) -> FitRequest | None:
    if not member(case.candidate, "spec", "minResources"):
        return None  # nothing but a number: any cluster could hold that many pods of no size
    dialect = dialect_of(guarded.resource)
    if dialect is None:
        return None
    found = _decode_pod_group(_encode(case.candidate))
    if isinstance(found, Undecodable):
        return None
    (kind,) = (kind for kind in dialect.KINDS if kind.resource == guarded.resource)
    context = ReadingContext(scheduler_names=frozenset(case.known.scheduler_names))
    group = kind.read(found, context)
    if not isinstance(group, PodGroup) or not group.min_resources:
        return None  # what it says is nothing to its dialect
    return FitRequest(
        group=msgspec.structs.replace(group, uid=uid, namespace=case.namespace, name=case.name)
    )


def _of_job(case: Case, uid: str) -> FitRequest | None:
    spec = as_object(case.candidate.get("spec")) or {}
    tasks = [task for task in map(as_object, as_list(spec.get("tasks"))) if task is not None]
    replicas = [as_int(task.get("replicas")) or 0 for task in tasks]
    if not 0 < sum(replicas) <= PODS_MAX:
        return None
    group = PodGroup(
        uid=uid,
        dialect=VOLCANO_DIALECT,
        namespace=case.namespace,
        name=case.name,
        resource_version=0,
        min_member=as_int(spec.get("minAvailable")) or 0,
        min_task_member=tuple(
            sorted((text_at(task, "name"), task_minimum(task) or 0) for task in tasks)
        ),
        queue=text_at(spec, "queue"),
        priority_class=text_at(spec, "priorityClassName"),
    )
    pods: list[Pod] = []
    for task, count in zip(tasks, replicas, strict=True):
        template = _template_shape(task)
        if template is None:
            return None
        pods += _pods(group, text_at(task, "name"), count, template)
    return FitRequest(group=group, pods=tuple(pods))


def _template_shape(task: JsonObject) -> bytes | None:
    """The shape of a task's pods; None when its template is none. (The API server will say so of
    the pods.)
    """
    spec = as_object(member(task, "template", "spec"))
    if spec is None:
        return None
    try:
        return shape(_converted(spec))
    except msgspec.ValidationError:
        return None


def _converted(spec: JsonObject) -> kube.PodSpec:
    """The typed spec. Nulls, which mean absent, are rare: they are looked for only when one is in
    the way.
    """
    try:
        return msgspec.convert(spec, kube.PodSpec)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(spec), kube.PodSpec)


def _pods(group: PodGroup, role: str, count: int, template: bytes) -> list[Pod]:
    return [
        Pod(
            uid=f"{group.uid}/{role}/{index}",
            namespace=group.namespace,
            name=f"{group.name}-{role}-{index}",
            resource_version=0,
            shape=template,
            ours=True,
            group_name=group.name,
            role=role,
            index=index,
            queue=group.queue,
        )
        for index in range(count)
    ]
