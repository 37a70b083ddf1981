"""The ResourceClaim for extended resources of a pod, and what the pod's status says of it. Pure.

Claim and status are those that kube-scheduler writes. The kubelet reads the claim's name and the
mappings from the status, and nothing else.
"""

from typing import Final

from services.binder.core.device_allocation import Object
from shared.contracts.decisions import DeviceChoice, ExtendedClaim
from shared.kube.requests import EXTENDED_CLAIM

_STATUS: Final = "extendedResourceClaimStatus"
#: What the answer of the API server means if the field is missing in it.
GATE_IS_OFF: Final = (
    f"the API server does not store the pod's {_STATUS}: "
    "its feature gate DRAExtendedResource is off"
)


def manifest_of(choice: DeviceChoice, of: ExtendedClaim, pod_name: str, finalizer: str) -> Object:
    """The claim to create."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod_name,
        "uid": choice.pod_uid,
        "controller": True,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": choice.claim,
            "namespace": choice.namespace,
            "annotations": {EXTENDED_CLAIM: "true"},
            "ownerReferences": [owner],
            "finalizers": [finalizer],
        },
        "spec": {"devices": {"requests": [_request(*request) for request in of.requests]}},
    }


def objection_to(claim: Object, choice: DeviceChoice) -> str:
    """Why a claim of this name is not the pod's; "": it is."""
    owners: list[Object] = claim["metadata"].get("ownerReferences") or []
    if any(owner.get("uid") == choice.pod_uid and owner.get("controller") for owner in owners):
        return ""
    return f'resourceclaim "{choice.claim}" is not owned by the pod'


def has_status(pod: Object, choice: DeviceChoice, of: ExtendedClaim) -> bool:
    """Whether the pod's status has the name and mappings of the claim."""
    return _found(pod) == _status(choice, of)


def status_patch(pod: Object, choice: DeviceChoice, of: ExtendedClaim) -> Object:
    """A merge patch that writes them, if the pod has not changed."""
    return {**_stamp(pod), "status": {_STATUS: _status(choice, of)}}


def status_undo(pod: Object | None, choice: DeviceChoice) -> Object | None:
    """A merge patch that removes them, if the pod has not changed; None: there is nothing to
    remove.
    """
    if pod is None or pod["metadata"]["uid"] != choice.pod_uid:
        return None
    if _found(pod).get("resourceClaimName") != choice.claim:
        return None
    return {**_stamp(pod), "status": {_STATUS: None}}


def _request(name: str, device_class: str, number: int) -> Object:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": number}
    return {"name": name, "exactly": exactly}


def _status(choice: DeviceChoice, of: ExtendedClaim) -> Object:
    return {
        "resourceClaimName": choice.claim,
        "requestMappings": [
            {"containerName": container, "resourceName": resource, "requestName": request}
            for container, resource, request in of.mappings
        ],
    }


def _found(pod: Object) -> Object:
    """What the pod's status has of a claim; {}: nothing."""
    status: Object = pod.get("status") or {}
    claim_status: Object = status.get(_STATUS) or {}
    return claim_status


def _stamp(pod: Object) -> Object:
    was = pod["metadata"]
    return {"metadata": {"uid": was["uid"], "resourceVersion": was["resourceVersion"]}}
