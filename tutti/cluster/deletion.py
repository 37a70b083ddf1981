"""The effect of a DELETE: the object is gone, or marked and waits for a kubelet or finalizers."""

from tutti.cluster.errors import conflict, invalid, not_supported
from tutti.cluster.objects import Obj, clone, dig, now_text
from tutti.cluster.resources import CRDS, NAMESPACES, PODS, Resource

_PRECONDITIONS = (
    ("uid", "UID", "deleted and then recreated"),
    ("resourceVersion", "ResourceVersion", "modified"),
)
# The garbage collector removes these once they are empty.
EMPTIED_FIRST = (NAMESPACES, CRDS)


def must_go(resource: Resource, obj: Obj) -> bool:
    """Whether a deleted object can be removed: it waits for no finalizer and no kubelet."""
    metadata = obj["metadata"]
    waits = metadata.get("deletionGracePeriodSeconds") or metadata.get("finalizers")
    going = bool(metadata.get("deletionTimestamp")) and not waits
    return going and resource.key not in EMPTIED_FIRST


def deleted(resource: Resource, obj: Obj, options: Obj) -> tuple[Obj, bool]:
    """The object after a DELETE with these options, and whether it is gone; `obj` is not modified.

    Raises:
        ApiError: 409 for a precondition, 422 for a propagation policy other than Background.
    """
    for key, label, end in _PRECONDITIONS:
        wanted = (options.get("preconditions") or {}).get(key)
        present = obj["metadata"][key]
        if wanted and wanted != present:
            other = f"the {label} in record ({present}). The object might have been {end}"
            text = f"the {label} in the precondition ({wanted}) does not match {other}"
            raise conflict(resource, obj["metadata"]["name"], text, kind=resource.kind)
    policy = options.get("propagationPolicy")
    if policy not in (None, "Background"):
        error = not_supported("propagationPolicy", policy, ["Background"])
        raise invalid("DeleteOptions", "meta.k8s.io", "", [error])
    new = clone(obj)
    metadata: Obj = new["metadata"]
    grace_s = _grace_s(obj, options) if resource.key == PODS else 0
    if metadata.get("deletionTimestamp"):
        # A deletion can only become shorter.
        if grace_s >= metadata["deletionGracePeriodSeconds"]:
            return obj, False
    elif metadata.get("generation"):
        metadata["generation"] += 1
    if resource.key == NAMESPACES:
        new["status"] = {"phase": "Terminating"}
    metadata |= {
        "deletionTimestamp": now_text(grace_s),
        "deletionGracePeriodSeconds": grace_s,
    }
    return new, must_go(resource, new)


def _grace_s(pod: Obj, options: Obj) -> int:
    """The grace period of a pod; 0 if no kubelet has it, or its containers have ended."""
    if not dig(pod, "spec.nodeName") or dig(pod, "status.phase") in ("Failed", "Succeeded"):
        return 0
    given = options.get("gracePeriodSeconds")
    return int(dig(pod, "spec.terminationGracePeriodSeconds") if given is None else given)
