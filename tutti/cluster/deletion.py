"""What a DELETE makes of an object: gone, or marked and waiting for a kubelet, for finalizers or for its dependents."""

from datetime import timedelta

from tutti.cluster.errors import conflict, invalid, wrong
from tutti.cluster.objects import Obj, clone, dig, instant_of, now_text
from tutti.cluster.resources import NAMESPACES, PODS, Resource

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_FINALIZER_OF = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": None}


def must_go(obj: Obj) -> bool:
    """Whether nothing keeps a deleted object any more."""
    metadata = obj["metadata"]
    if (
        not metadata.get("deletionTimestamp")
        or metadata.get("deletionGracePeriodSeconds")
        or metadata.get("finalizers")
    ):
        return False
    return obj["kind"] != "Namespace" or not dig(obj, "spec.finalizers")


def deleted(resource: Resource, obj: Obj, options: Obj) -> tuple[Obj, bool]:
    """The object after a DELETE by these options, and whether it is gone. The object given is left as it was.

    Raises:
        ApiError: 409 for a precondition, 422 for an unknown propagation policy.
    """
    _check_preconditions(resource, obj, options)
    new = clone(obj)
    metadata: Obj = new["metadata"]
    _set_finalizers(resource, metadata, options)
    grace_s = _grace_s(obj, options) if resource.key == PODS else 0
    going_since = metadata.get("deletionTimestamp")
    if going_since is None:
        metadata |= {"deletionTimestamp": now_text(grace_s), "deletionGracePeriodSeconds": grace_s}
        if metadata.get("generation"):
            metadata["generation"] += 1
        if resource.key == NAMESPACES:
            new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    elif resource.key == PODS:
        before_s = metadata.get("deletionGracePeriodSeconds", 0)
        asked = options.get("gracePeriodSeconds")
        if asked is None or grace_s >= before_s:
            return (obj, False)  # a deletion can only become shorter
        sooner = instant_of(going_since) - timedelta(seconds=before_s - grace_s)
        metadata |= {
            "deletionTimestamp": sooner.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "deletionGracePeriodSeconds": grace_s,
        }
    return new, must_go(new)


def _check_preconditions(resource: Resource, obj: Obj, options: Obj) -> None:
    preconditions: Obj = options.get("preconditions") or {}
    for key, label, end in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        wanted, present = preconditions.get(key), obj["metadata"][key]
        if wanted and wanted != present:
            text = (
                f"the {label} in the precondition ({wanted}) does not match the {label} in record "
            )
            text += f"({present}). The object might have been {end}"
            raise conflict(resource, obj["metadata"]["name"], text, kind=resource.kind)


def _set_finalizers(resource: Resource, metadata: Obj, options: Obj) -> None:
    """What the garbage collector is asked to do first."""
    policy = options.get("propagationPolicy")
    if policy is None and options.get("orphanDependents") is not None:
        policy = "Orphan" if options["orphanDependents"] else "Background"
    if policy is None:
        return
    if policy not in _FINALIZER_OF:
        rule = 'supported values: "Foreground", "Background", "Orphan"'
        raise invalid(resource, metadata["name"], [wrong("propagationPolicy", policy, rule)])
    finalizers = [
        item for item in metadata.get("finalizers") or () if item not in (ORPHAN, FOREGROUND)
    ]
    wanted = _FINALIZER_OF[policy]
    metadata["finalizers"] = [*finalizers, wanted] if wanted else finalizers
    if not metadata["finalizers"]:
        del metadata["finalizers"]


def _grace_s(pod: Obj, options: Obj) -> int:
    """How long a pod's kubelet may take; nothing where no kubelet has it or its processes have ended."""
    asked = options.get("gracePeriodSeconds")
    grace_s = dig(pod, "spec.terminationGracePeriodSeconds") if asked is None else asked
    if not dig(pod, "spec.nodeName") or dig(pod, "status.phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if grace_s < 0 else int(grace_s)
