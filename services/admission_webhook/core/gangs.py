"""What the planner is asked about an object that is being created: the gang that it declares.

A PodGroup comes before its pods, so only what it declares can be judged; a workload brings its
pods' templates with it. A dry run (`--dry-run=server`) gets more warnings, and also of pods and
of other controllers' workloads.
"""

from typing import Final

import msgspec

from services.admission_webhook.core.judge import Subject
from services.admission_webhook.core.parts import as_object, member
from services.admission_webhook.core.review import AdmissionRequest, plain_object
from shared.contracts.questions import FitAnswer, FitRequest
from shared.dialects.discovery import dialect_of
from shared.dialects.protocol import ReadingContext
from shared.dialects.workloads import declared, template_pod
from shared.kube import objects as kube
from shared.kube.decoding import KindDecoder, Undecodable
from shared.kube.resources import JOBS_VOLCANO, PODS
from shared.model.objects import PodGroup

#: Nodes and gangs that a warning names: it is cut at 256 characters.
_NAMED_MAX: Final = 3
_VERBS: Final = {"preempt": "preempt", "reclaim": "reclaim from other queues"}

_encode: Final = msgspec.json.Encoder().encode
_decode_pod_group: Final = KindDecoder(kube.PodGroup).object


def question(asked: Subject, review: AdmissionRequest) -> FitRequest | None:
    """What to ask about a valid object that is being created; None when there is nothing that can
    be judged.
    """
    guarded, case = asked
    tried = bool(review.dry_run)
    if case.operation != "CREATE" or (guarded.only_tried and not tried):
        return None
    # An object has no UID of its own before it exists.
    if guarded.resource == PODS:
        return _of_pod(asked, review) if tried else None
    if guarded.resource.kind == "PodGroup":
        return _of_pod_group(asked, review.uid)
    if guarded.only_tried or guarded.resource == JOBS_VOLCANO:
        return _of_workload(asked, review.uid)
    return None


def advice(answer: FitAnswer, *, namespace: str, dry_run: bool) -> tuple[str, ...]:
    """Warnings for the user of a namespace. A dry run gets more: would the gang run
    now, where, and which pods would be evicted? Gangs of other namespaces are not named.
    """
    if not answer.ever:
        why = answer.sentence or "no set of nodes of this cluster could hold it"
        return (_warning(f"this gang can never run here: {why}"),)
    if not dry_run:
        return ()
    if answer.fits:
        places = [f"{count} on {node}" for node, count in answer.where[:_NAMED_MAX]]
        more = len(answer.where) - len(places)
        if more:
            places.append(f"more on {more} other nodes")
        where = f": {', '.join(places)}" if places else ""
        return (_warning(f"this gang would fit now{where}"),)
    waits = _warning(f"this gang would have to wait: {answer.sentence or 'no room now'}")
    return (_warning(_displacing(answer, namespace)), waits) if answer.displaces else (waits,)


def _displacing(answer: FitAnswer, namespace: str) -> str:
    pods = sum(count for _, count in answer.displaces)
    gangs = len(answer.displaces)
    own = [
        name.partition("/")[2]
        for name, _ in answer.displaces
        if name.partition("/")[0] == namespace
    ]
    named = f" ({', '.join(own[:_NAMED_MAX])})" if own else ""
    words = f"{pods} pod{'s' if pods > 1 else ''} of {gangs} gang{'s' if gangs > 1 else ''}"
    return f"this gang would {_VERBS[answer.displaces_by]}: {words}{named} would be evicted for it"


def _warning(sentence: str) -> str:
    return f"tutti: {sentence}"


def _context(asked: Subject) -> ReadingContext:
    return ReadingContext(scheduler_names=frozenset(asked.case.known.scheduler_names))


def _of_pod_group(asked: Subject, uid: str) -> FitRequest | None:
    guarded, case = asked
    if not member(case.candidate, "spec", "minResources"):
        return None  # nothing but a number: any cluster could hold that many pods of no size
    dialect = dialect_of(guarded.resource)
    if dialect is None:
        return None
    found = _decode_pod_group(_encode(case.candidate))
    if isinstance(found, Undecodable):
        return None
    (kind,) = (kind for kind in dialect.KINDS if kind.resource == guarded.resource)
    group = kind.read(found, _context(asked))
    if not isinstance(group, PodGroup) or not group.min_resources:
        return None  # what it says is nothing to its dialect
    return FitRequest(
        group=msgspec.structs.replace(group, uid=uid, namespace=case.namespace, name=case.name)
    )


def _of_workload(asked: Subject, uid: str) -> FitRequest | None:
    """None when its templates are none (the API server will say so of the pods), or they are too
    many: the question would take longer than the answer may.
    """
    case = asked.case
    notes = member(case.candidate, "metadata", "annotations")
    named = {"name": case.name, "namespace": case.namespace, "annotations": notes}
    try:
        found = declared({**case.candidate, "metadata": named}, uid=uid, context=_context(asked))
    except ValueError:
        return None
    return found if found is not None and found.pods else None


def _of_pod(asked: Subject, review: AdmissionRequest) -> FitRequest | None:
    """One pod; the planner knows the other members of the group that it names."""
    case = asked.case
    whole = plain_object(review.object)
    given = as_object(whole.get("metadata")) or {}
    metadata = {**given, "namespace": case.namespace, "name": case.name}
    try:
        pod = template_pod({**whole, "metadata": metadata}, _context(asked))
    except ValueError:
        return None
    group = PodGroup(
        uid=review.uid,
        dialect="",
        namespace=case.namespace,
        name=pod.group_name or case.name,
        resource_version=0,
        min_member=1,
        queue=pod.queue,
        priority_class=pod.priority_class,
    )
    return FitRequest(group=group, pods=(msgspec.structs.replace(pod, uid=review.uid),))
