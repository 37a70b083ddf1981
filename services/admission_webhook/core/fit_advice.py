"""The planner's advice on a gang that is being created: the question, and the warnings made of it.

A PodGroup is created before its pods, so only its `minResources` can be evaluated; a workload has
pod templates. A dry run (`--dry-run=server`) gets more warnings, and gets them also for pods and
for workloads of other controllers.
"""

from typing import Final

import msgspec

from shared.admission.admission import Subject
from shared.admission.parts import as_object, member
from shared.admission.review import AdmissionRequest, plain_object
from shared.admission.rules import Case
from shared.contracts.questions import FitAnswer, FitRequest, impossible_words
from shared.dialects.discovery import dialect_of
from shared.dialects.protocol import ReadingContext
from shared.dialects.workloads import declared, template_pod
from shared.kinds.podgroup import PodGroup as StoredPodGroup
from shared.kube.decoding import KindDecoder, Undecodable
from shared.kube.resources import JOBS_VOLCANO, PODS
from shared.model.objects import PodGroup

#: The most nodes and gangs in one warning, which the API server cuts at 256 characters.
_NAMED_MAX: Final = 3
_VERBS: Final = {"preempt": "preempt", "reclaim": "reclaim from other queues"}

_encode: Final = msgspec.json.Encoder().encode
_decode_pod_group: Final = KindDecoder(StoredPodGroup).object


def fit_request(subject: Subject, review: AdmissionRequest) -> FitRequest | None:
    """The question about a valid object that is being created; None if the planner cannot evaluate
    any part of it. It contains the review's UID, since the object may have no UID yet.
    """
    rules, case = subject
    dry_run = bool(review.dry_run)
    if case.operation != "CREATE" or (rules.is_advisory and not dry_run):
        return None
    if rules.resource == PODS:
        return _of_pod(case, review) if dry_run else None
    if rules.resource.kind == "PodGroup":
        return _of_pod_group(subject, review.uid)
    if rules.is_advisory or rules.resource == JOBS_VOLCANO:
        return _of_workload(case, review.uid)
    return None


def advice_warnings(answer: FitAnswer, *, namespace: str, dry_run: bool) -> tuple[str, ...]:
    """Warnings for a user of `namespace`. A dry run also gets whether the gang would run now, on
    which nodes, and which pods would be evicted; gangs of other namespaces are not named.
    """
    if not answer.ever:
        reason = answer.sentence or "no set of nodes of this cluster could hold it"
        words = impossible_words(needs_nodes=answer.needs_nodes)
        return (_warning(f"this gang {words}: {reason}"),)
    if not dry_run:
        return ()
    if answer.fits:
        places = [f"{count} on {node}" for node, count in answer.where[:_NAMED_MAX]]
        more = len(answer.where) - len(places)
        if more:
            places.append(f"more on {more} other nodes")
        where = f": {', '.join(places)}" if places else ""
        return (_warning(f"this gang would fit now{where}"),)
    reason = answer.sentence or "not enough free capacity now"
    waits = _warning(f"this gang would have to wait: {reason}")
    return (_warning(_evictions(answer, namespace)), waits) if answer.displaces else (waits,)


def _evictions(answer: FitAnswer, namespace: str) -> str:
    pods = sum(count for _, count in answer.displaces)
    gangs = len(answer.displaces)
    own = [
        name.partition("/")[2]
        for name, _ in answer.displaces
        if name.partition("/")[0] == namespace
    ]
    named = f" ({', '.join(own[:_NAMED_MAX])})" if own else ""
    counts = f"{pods} pod{'s' if pods > 1 else ''} of {gangs} gang{'s' if gangs > 1 else ''}"
    return f"this gang would {_VERBS[answer.displaces_by]}: {counts}{named} would be evicted for it"


def _warning(sentence: str) -> str:
    return f"tutti: {sentence}"


def _context(case: Case) -> ReadingContext:
    return ReadingContext(scheduler_names=frozenset(case.known.scheduler_names))


def _of_pod_group(subject: Subject, uid: str) -> FitRequest | None:
    rules, case = subject
    if not member(case.candidate, "spec", "minResources"):
        return None  # only a number of pods, without a size: any cluster could hold them
    dialect = dialect_of(rules.resource)
    if dialect is None:
        return None
    decoded = _decode_pod_group(_encode(case.candidate))
    if isinstance(decoded, Undecodable):
        return None
    (kind,) = (kind for kind in dialect.kinds if kind.resource == rules.resource)
    group = kind.neutral_object(decoded, _context(case))
    if not isinstance(group, PodGroup) or not group.min_resources:
        return None  # its dialect reads no resources from it
    return FitRequest(
        group=msgspec.structs.replace(group, uid=uid, namespace=case.namespace, name=case.name)
    )


def _of_workload(case: Case, uid: str) -> FitRequest | None:
    """None when its pod templates are invalid (the API server will refuse the pods), or when it has
    so many pods that the answer would take too long.
    """
    annotations = member(case.candidate, "metadata", "annotations")
    named = {"name": case.name, "namespace": case.namespace, "annotations": annotations}
    try:
        workload = declared({**case.candidate, "metadata": named}, uid=uid, context=_context(case))
    except ValueError:
        return None
    return workload if workload is not None and workload.pods else None


def _of_pod(case: Case, review: AdmissionRequest) -> FitRequest | None:
    """One pod; the planner knows the other members of the group that the pod names, and the tree of
    groups that it is in.
    """
    whole = plain_object(review.object)
    given = as_object(whole.get("metadata")) or {}
    metadata = {**given, "namespace": case.namespace, "name": case.name}
    try:
        pod = template_pod({**whole, "metadata": metadata}, _context(case))
    except ValueError:
        return None
    if pod.misdirected:
        return None
    group = PodGroup(
        uid=review.uid,
        dialect="",
        namespace=case.namespace,
        name=pod.group_name or case.name,
        scope=pod.group_scope,
        resource_version=0,
        min_member=1,
        queue=pod.queue,
        priority_class=pod.priority_class,
    )
    return FitRequest(group=group, pods=(msgspec.structs.replace(pod, uid=review.uid),))
