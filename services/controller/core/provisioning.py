"""Manifests of ProvisioningRequests, and of the PodTemplates to which they refer (ADR 0087).
Pure.
"""

from typing import Final

from shared.contracts.provisioning import template_name
from shared.contracts.verdicts import Provisioning
from shared.dialects.protocol import JsonObject
from shared.kube.quantities import DIVISIBLE, format_quantity
from shared.kube.resources import POD_TEMPLATES, PODS, PROVISIONING_REQUESTS
from shared.model.objects import Resources

#: Fields of a pod's spec that a template cannot have, or that bind it to a node.
_OF_ONE_POD: Final = frozenset({"nodeName", "ephemeralContainers"})
#: Fields that pods of other roles have in common with a pod of their gang.
_OF_ALL_PODS: Final = ("schedulerName", "priorityClassName", "priority", "preemptionPolicy")
#: Annotations of `kubectl apply`, which repeat the manifest.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def request_manifest(wanted: Provisioning, namespace: str, owner: JsonObject) -> JsonObject:
    """The request, which belongs to `owner`, an owner reference."""
    spec: JsonObject = {
        "provisioningClassName": wanted.class_name,
        "podSets": [
            {
                "podTemplateRef": {"name": template_name(wanted.request, index)},
                "count": pod_set.count,
            }
            for index, pod_set in enumerate(wanted.pod_sets)
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


def template_manifest(
    request: str, index: int, pod: JsonObject, owner: JsonObject, requests: Resources = ()
) -> JsonObject:
    """The template of the request's set of this index, with the fields of one of its pods, or of
    later pods of its gang with these requests (`PodSet`). It exists before the request does, so it
    has the same `owner`.
    """
    of_pod = pod["metadata"]
    if requests:
        template: JsonObject = {"metadata": {}, "spec": _later_spec(pod["spec"], requests)}
    else:
        annotations = {
            key: text for key, text in of_pod.get("annotations", {}).items() if key != _LAST_APPLIED
        }
        template = {
            "metadata": {"labels": of_pod.get("labels", {}), "annotations": annotations},
            "spec": {key: value for key, value in pod["spec"].items() if key not in _OF_ONE_POD},
        }
    return {
        "apiVersion": POD_TEMPLATES.api_version,
        "kind": POD_TEMPLATES.kind,
        "metadata": {
            "name": template_name(request, index),
            "namespace": of_pod["namespace"],
            "ownerReferences": [owner],
        },
        "template": template,
    }


def _later_spec(spec: JsonObject, requests: Resources) -> JsonObject:
    """The spec of a pod that requests these amounts, and uses the nodes whose taints a pod of its
    gang tolerates, or that are named after a requested device. It has no node selector, because
    pods of another role often have another one (`min_resources` of the planner).
    """
    amounts = {name: format_quantity(name, amount) for name, amount in requests if name != "pods"}
    devices = [name for name in amounts if name not in DIVISIBLE]
    container = {
        "name": "later",
        "image": spec["containers"][0]["image"],
        # Kubernetes takes devices only with equal limits.
        "resources": {"requests": amounts, "limits": {name: amounts[name] for name in devices}},
    }
    tolerations = [
        *spec.get("tolerations", ()),
        *({"key": name, "operator": "Exists"} for name in devices),
    ]
    kept: JsonObject = {key: spec[key] for key in _OF_ALL_PODS if key in spec}
    return {**kept, "containers": [container], "tolerations": tolerations}


def pod_owner(pod: JsonObject) -> JsonObject:
    """An owner reference to the pod's controller, so that the request outlives the pod; without
    one, to the pod.
    """
    metadata = pod["metadata"]
    for owner in metadata.get("ownerReferences", ()):
        if owner.get("controller"):
            return {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
