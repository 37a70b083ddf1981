"""What a DELETE makes of an object: gone, or marked and waiting for a kubelet or finalizers."""

from datetime import timedelta

from tutti.cluster.errors import conflict, invalid, not_supported
from tutti.cluster.objects import TIME_FORMAT, Obj, clone, dig, instant_of, now_text
from tutti.cluster.resources import NAMESPACES, PODS, Resource

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_FINALIZERS = {"Foreground": [FOREGROUND], "Background": [], "Orphan": [ORPHAN]}
_PRECONDITIONS = (
    ("uid", "UID", "deleted and then recreated"),
    ("resourceVersion", "ResourceVersion", "modified"),
)


def must_go(obj: Obj) -> bool:
    """Whether nothing keeps a deleted object any more."""
    metadata = obj["metadata"]
    waits = metadata.get("deletionGracePeriodSeconds") or metadata.get("finalizers")
    if waits or not metadata.get("deletionTimestamp"):
        return False
    return obj["kind"] != "Namespace" or not dig(obj, "spec.finalizers")


def deleted(resource: Resource, obj: Obj, options: Obj) -> tuple[Obj, bool]:
    """The object after a DELETE by these options, and whether it is gone; `obj` stays as it was.

    Raises:
        ApiError: 409 for a precondition, 422 for an unknown propagation policy.
    """
    for key, label, end in _PRECONDITIONS:
        wanted = (options.get("preconditions") or {}).get(key)
        present = obj["metadata"][key]
        if wanted and wanted != present:
            other = f"the {label} in record ({present}). The object might have been {end}"
            text = f"the {label} in the precondition ({wanted}) does not match {other}"
            raise conflict(resource, obj["metadata"]["name"], text, kind=resource.kind)
    new = clone(obj)
    metadata: Obj = new["metadata"]
    _set_finalizers(metadata, options)
    grace_s = _grace_s(obj, options) if resource.key == PODS else 0
    going_at = metadata.get("deletionTimestamp")
    if going_at is None:
        going_at = now_text(grace_s)
        if metadata.get("generation"):
            metadata["generation"] += 1
        if resource.key == NAMESPACES:
            new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    elif resource.key == PODS:
        before_s = metadata.get("deletionGracePeriodSeconds", 0)
        if options.get("gracePeriodSeconds") is None or grace_s >= before_s:
            return obj, False  # a deletion can only become shorter
        sooner = instant_of(going_at) - timedelta(seconds=before_s - grace_s)
        going_at = sooner.strftime(TIME_FORMAT)
    metadata |= {"deletionTimestamp": going_at, "deletionGracePeriodSeconds": grace_s}
    return new, must_go(new)


def _set_finalizers(metadata: Obj, options: Obj) -> None:
    """What the garbage collector is asked to do first."""
    policy = options.get("propagationPolicy")
    if policy is None:
        return
    if policy not in _FINALIZERS:
        error = not_supported("propagationPolicy", policy, list(_FINALIZERS))
        raise invalid("DeleteOptions", "meta.k8s.io", "", [error])
    others = [f for f in metadata.pop("finalizers", []) if f not in (ORPHAN, FOREGROUND)]
    if others or _FINALIZERS[policy]:
        metadata["finalizers"] = others + _FINALIZERS[policy]


def _grace_s(pod: Obj, options: Obj) -> int:
    """How long a pod's kubelet may take; 0 where none has it, or its processes have ended."""
    if not dig(pod, "spec.nodeName") or dig(pod, "status.phase") in ("Failed", "Succeeded"):
        return 0
    asked = options.get("gracePeriodSeconds")
    grace_s = int(dig(pod, "spec.terminationGracePeriodSeconds") if asked is None else asked)
    return 1 if grace_s < 0 else grace_s
