"""Manifests of ProvisioningRequests, and of the PodTemplates to which they refer (ADR 0087).
Pure.
"""

from typing import Any, Final, TypeAlias

from shared.contracts.provisioning import template_name
from shared.contracts.verdicts import Provisioning
from shared.kube.resources import POD_TEMPLATES, PODS, PROVISIONING_REQUESTS

JsonObject: TypeAlias = dict[str, Any]

#: Fields of a pod's spec that a template cannot have, or that bind it to a node.
_OF_ONE_POD: Final = frozenset({"nodeName", "ephemeralContainers"})
#: Annotations of `kubectl apply`, which repeat the manifest.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def request_manifest(wanted: Provisioning, namespace: str, owner: JsonObject) -> JsonObject:
    """The request, which belongs to `owner`, an owner reference."""
    spec: JsonObject = {
        "provisioningClassName": wanted.class_name,
        "podSets": [
            {"podTemplateRef": {"name": template_name(wanted.request, index)}, "count": one.count}
            for index, one in enumerate(wanted.pod_sets)
        ],
    }
    if wanted.parameters:
        spec["parameters"] = dict(wanted.parameters)
    return {
        "apiVersion": PROVISIONING_REQUESTS.api_version,
        "kind": PROVISIONING_REQUESTS.kind,
        "metadata": {
            "name": wanted.request,
            "namespace": namespace,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def template_manifest(request: str, index: int, pod: JsonObject, owner: JsonObject) -> JsonObject:
    """The template of the request's set of this index, with the fields of one of its pods. It
    exists before the request does, so it has the same `owner`.
    """
    of_pod = pod["metadata"]
    annotations = {
        key: text for key, text in of_pod.get("annotations", {}).items() if key != _LAST_APPLIED
    }
    return {
        "apiVersion": POD_TEMPLATES.api_version,
        "kind": POD_TEMPLATES.kind,
        "metadata": {
            "name": template_name(request, index),
            "namespace": of_pod["namespace"],
            "ownerReferences": [owner],
        },
        "template": {
            "metadata": {"labels": of_pod.get("labels", {}), "annotations": annotations},
            "spec": {key: value for key, value in pod["spec"].items() if key not in _OF_ONE_POD},
        },
    }


def pod_owner(pod: JsonObject) -> JsonObject:
    """An owner reference to the pod's controller, so that the request outlives the pod; without
    one, to the pod.
    """
    metadata = pod["metadata"]
    for one in metadata.get("ownerReferences", ()):
        if one.get("controller"):
            return {key: one[key] for key in ("apiVersion", "kind", "name", "uid")}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
