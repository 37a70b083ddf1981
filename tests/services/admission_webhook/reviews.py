"""Reviews, queues and cases as tests need them."""

import base64
from typing import Any

import jsonpatch
import msgspec

from shared.admission.admission import Subject, apply_defaults, subject_of, validate
from shared.admission.queue_tree import QueueTree
from shared.admission.review import Verdict, decode_review
from shared.admission.rules import ReferenceObjects
from shared.kube.resources import (
    COMMANDS,
    CRONJOBS_VOLCANO,
    HYPERNODES,
    JOBFLOWS,
    JOBS_VOLCANO,
    JOBTEMPLATES,
    PODGROUPS_INCUBATOR,
    PODGROUPS_SIGS,
    PODGROUPS_VOLCANO,
    PODS,
    QUEUES_INCUBATOR,
    QUEUES_SIGS,
    QUEUES_VOLCANO,
    Resource,
)
from shared.model.objects import Queue

RESOURCES = {
    (resource.api_version, resource.kind): resource
    for resource in (
        COMMANDS,
        CRONJOBS_VOLCANO,
        HYPERNODES,
        JOBFLOWS,
        JOBS_VOLCANO,
        JOBTEMPLATES,
        PODGROUPS_INCUBATOR,
        PODGROUPS_SIGS,
        PODGROUPS_VOLCANO,
        PODS,
        QUEUES_INCUBATOR,
        QUEUES_SIGS,
        QUEUES_VOLCANO,
    )
}
NAMES = ("tutti", "kube-batch", "volcano")
Object = dict[str, Any]


def volcano_queue(name: str, *, version: int = 1, **fields: Any) -> Queue:
    """A queue of Volcano's dialect; its UID is made from its name."""
    return Queue(uid=f"u-{name}", dialect="volcano", name=name, resource_version=version, **fields)


def reference_objects(
    *queues: Queue, names: tuple[str, ...] = NAMES, known: bool = True
) -> ReferenceObjects:
    """What is known: these queues, or with `known` False none."""
    return ReferenceObjects(scheduler_names=names, queues=QueueTree(queues) if known else None)


def a_job(*tasks: Object, name: str = "trial", **spec: Any) -> Object:
    """A Volcano Job."""
    return {
        "apiVersion": JOBS_VOLCANO.api_version,
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": list(tasks), **spec},
    }


def a_task(name: str = "work", replicas: object = 1, **fields: Any) -> Object:
    """A task of a Job."""
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def a_pod_group(resource: Resource = PODGROUPS_VOLCANO, **spec: Any) -> Object:
    """A PodGroup."""
    return {
        "apiVersion": resource.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "trial"},
        "spec": spec,
    }


def a_queue(name: str = "trial", resource: Resource = QUEUES_VOLCANO, **spec: Any) -> Object:
    """A Queue."""
    return {
        "apiVersion": resource.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def a_pod(scheduler: str = "tutti", annotations: dict[str, Any] | None = None) -> Object:
    """A pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trial", "annotations": annotations or {}},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "main", "image": "busybox"}]},
    }


def review(
    candidate: Object | None,
    *,
    old: Object | None = None,
    operation: str = "",
    uid: str = "r-1",
    namespace: str = "team",
    resource: Resource | None = None,
    **request: Any,
) -> bytes:
    """An AdmissionReview as an API server sends it."""
    shown = candidate or old or {}
    found = resource or RESOURCES[shown["apiVersion"], shown["kind"]]
    if not operation:
        operation = "CREATE" if old is None else ("UPDATE" if candidate else "DELETE")
    return msgspec.json.encode(
        {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": uid,
                "kind": {"group": found.group, "version": found.version, "kind": found.kind},
                "resource": {
                    "group": found.group,
                    "version": found.version,
                    "resource": found.plural,
                },
                "name": _name(shown),
                "namespace": namespace if found.namespaced else "",
                "operation": operation,
                "userInfo": {"username": "ann"},
                "object": candidate,
                "oldObject": old,
                "dryRun": False,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
                **request,
            },
        }
    )


def _name(shown: Object) -> str:
    metadata = shown.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def asked(body: bytes, known: ReferenceObjects | None = None) -> Subject | None:
    """What the review is about."""
    return subject_of(decode_review(body), known or reference_objects())


def judged(body: bytes, known: ReferenceObjects | None = None) -> Verdict:
    """The verdict of validation; the review must be for us."""
    found = asked(body, known)
    assert found is not None, "not ours"
    return validate(found)


def texts(
    candidate: Object, known: ReferenceObjects | None = None, **review_fields: Any
) -> list[str]:
    """Every violation, as "path: message"."""
    return [error.text for error in judged(review(candidate, **review_fields), known).errors]


def defaulted(candidate: Object, known: ReferenceObjects | None = None) -> Object:
    """The object with its defaults."""
    found = asked(review(candidate), known)
    assert found is not None, "not ours"
    operations = msgspec.to_builtins(apply_defaults(found).patch)
    result: Object = jsonpatch.apply_patch(candidate, list(operations))
    return result


def decoded_patch(response: Object) -> list[Object]:
    """The JSON patch of an answer."""
    patch: list[Object] = msgspec.json.decode(base64.b64decode(response["patch"]))
    return patch
