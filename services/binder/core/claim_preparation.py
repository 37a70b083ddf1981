"""The writes that claims need before their pods are bound, given the claims as they were read.
Pure.

`volume_step` and `device_step` return the next write, or how far the claim is prepared. Called
again after the write, after a crash or by another binder, they continue from the claim's state.
Every write has the UID of its object as a precondition, and but for the finalizer the
resourceVersion that was read.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from services.binder.core import extended_claim
from services.binder.core.device_allocation import Object, allocation_of
from shared.contracts.decisions import Binding, DeviceChoice, GangDecision, VolumeChoice


class Attachment(msgspec.Struct, frozen=True, gc=False):
    """The state of a claim's devices. Pods may be bound if it has neither text."""

    #: The first condition that is not true yet, with its device.
    missing: str = ""
    #: The first failure, with its device, reason and message.
    failed: str = ""


def attachment_of(claim: Object) -> Attachment:
    """The state of the devices that a claim has."""
    status: Object = claim.get("status") or {}
    missing = ""
    for result in _results(status):
        name = result["device"]
        conditions = {condition["type"]: condition for condition in _conditions(status, result)}
        for kind in result.get("bindingFailureConditions") or ():
            condition = conditions.get(kind, {})
            if condition.get("status") == "True":
                words = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
                return Attachment(failed=f"device {name} has the condition {kind} ({words})")
        for kind in result.get("bindingConditions") or ():
            if conditions.get(kind, {}).get("status") != "True":
                missing = missing or f"device {name} waits for the condition {kind}"
    return Attachment(missing=missing)


def is_attached(claim: Object) -> bool:
    """Whether the claim has devices with conditions, and all of them are attached."""
    results = _results(claim.get("status") or {})
    return (
        any(result.get("bindingConditions") for result in results)
        and attachment_of(claim) == Attachment()
    )


def _results(status: Object) -> list[Object]:
    allocation: Object = status.get("allocation") or {}
    devices: Object = allocation.get("devices") or {}
    results: list[Object] = devices.get("results") or []
    return results


def _conditions(status: Object, result: Object) -> Iterator[Object]:
    """The conditions of a device of the claim."""
    for device in status.get("devices") or ():
        same = (device.get(field) == result.get(field) for field in ("driver", "pool", "device"))
        if all(same) and device.get("shareID") == result.get("shareID"):
            yield from device.get("conditions") or ()


BOUND_BY_US: Final = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
#: Keeps a claim with devices from being deleted; the claims' controller removes it.
FINALIZER: Final = "resource.kubernetes.io/delete-protection"

NO_CLASSES: Final[Mapping[str, Object]] = {}


class Preparation(msgspec.Struct, frozen=True, gc=False):
    """The claim of one member, with the volume or devices decided for it."""

    choice: VolumeChoice | DeviceChoice
    pod_name: str


class Progress(msgspec.Struct, frozen=True, gc=False):
    """How far a preparation is: done; waiting for a controller to complete it; failed, for this
    node at least; or again, because the API server did not decide.
    """

    state: Literal["done", "waiting", "failed", "again"]
    message: str = ""
    #: It waits for devices to be attached, which may take longer than anything else.
    attaching: bool = False
    retry_after_ms: int = 0
    #: A write of devices was not answered: they may still be allocated.
    in_doubt: bool = False


class Write(msgspec.Struct, frozen=True, gc=False):
    """A merge patch to send; of `devices` a strategic one, of `devices/create` an object."""

    kind: Literal["claim", "volume", "devices", "devices/create", "devices/status", "pod/status"]
    patch: Object


DONE: Final = Progress("done")
WAITING: Final = Progress("waiting")
POD_IS_GONE: Final = Progress("failed", "the pod is gone")
#: By an earlier delivery: its claims were prepared then.
POD_IS_BOUND: Final = Progress("done", "the pod is bound")


def preparations_of(decision: GangDecision) -> tuple[Preparation, ...]:
    """The preparations that a decision needs before its members are bound."""
    if not decision.volumes and not decision.devices:
        return ()
    names = {binding.uid: binding.name for binding in decision.bindings}
    choices: list[VolumeChoice | DeviceChoice] = [*decision.volumes, *decision.devices]
    return tuple(Preparation(choice, names[choice.pod_uid]) for choice in choices)


def needs_volume(claim: Object | None, choice: VolumeChoice) -> bool:
    """Whether `volume_step` needs the volume, too."""
    return claim is not None and bool(choice.volume) and not _volume_of(claim)


def volume_step(
    claim: Object | None, volume: Object | None, choice: VolumeChoice, *, again: bool
) -> Progress | Write:
    """The next step for a claim that waited for its first consumer; None: no such object was read.
    `again`: this preparation has been written to the claim before.
    """
    if claim is None or _uid(claim) != choice.claim_uid or _leaving(claim):
        return Progress("failed", f'persistentvolumeclaim "{choice.claim}" is gone')
    notes = _annotations(claim)
    name = _volume_of(claim)
    if name:
        if choice.volume and name != choice.volume:
            other = f'persistentvolumeclaim "{choice.claim}" is bound to volume "{name}"'
            return Progress("failed", f'{other}, not to "{choice.volume}"')
        if not choice.volume and notes.get(SELECTED_NODE) != choice.node:
            other = f'persistentvolumeclaim "{choice.claim}" was bound to volume "{name}"'
            return Progress("failed", f"{other}, which was not made for node {choice.node}")
        return DONE if BIND_COMPLETED in notes else WAITING
    if choice.volume:
        return _bind_step(volume, choice)
    selected = notes.get(SELECTED_NODE, "")
    if selected == choice.node:
        return WAITING
    if selected or again:
        # A provisioner that fails removes the annotation.
        return Progress("failed", f'provisioning failed for PVC "{choice.claim}"')
    return Write("claim", _patch(claim, {"annotations": {SELECTED_NODE: choice.node}}))


def volume_undo(claim: Object | None, volume: Object | None, choice: VolumeChoice) -> Write | None:
    """The write that undoes a preparation; None: none is needed, or a controller completed it.

    The node selected for a provisioner stays (ADR 0022): it may be creating the volume already,
    which would be bound to the claim after another node was selected.
    """
    if claim is None or _uid(claim) != choice.claim_uid or _volume_of(claim) or not choice.volume:
        return None
    if volume is None or _uid(volume) != choice.volume_uid:
        return None
    owner: Object = volume.get("spec", {}).get("claimRef") or {}
    unused = volume.get("status", {}).get("phase") == "Available"
    # A volume that a user bound to the claim stays bound.
    if (
        owner.get("uid") != choice.claim_uid
        or BOUND_BY_US not in _annotations(volume)
        or not unused
    ):
        return None
    patch = _patch(volume, {"annotations": {BOUND_BY_US: None}})
    return Write("volume", {**patch, "spec": {"claimRef": None}})


def protect(choice: DeviceChoice) -> Write | None:
    """The first write for a ResourceClaim, which needs no read: its answer is the claim. None: the
    claim has devices already, or the binder makes it.
    """
    if not choice.devices or choice.extended is not None:
        return None
    return _protection(choice.claim_uid)


def needs_classes(claim: Object | None, choice: DeviceChoice) -> bool:
    """Whether `device_step` needs the choice's classes, too."""
    if claim is None or not choice.classes or not choice.devices:
        return False
    status: Object = claim.get("status") or {}
    return status.get("allocation") is None and FINALIZER in _finalizers(claim)


def device_step(
    claim: Object | None,
    choice: DeviceChoice,
    pod_name: str,
    classes: Mapping[str, Object] = NO_CLASSES,
) -> Progress | Write:
    """The next step for a ResourceClaim: the finalizer, then devices and reservation together. One
    for extended resources is made first, unless it exists.
    `classes`: by name, those of the choice that exist, if `needs_classes`.
    """
    if claim is None and choice.extended is not None and choice.devices:
        manifest = extended_claim.manifest_of(choice, choice.extended, pod_name, FINALIZER)
        return Write("devices/create", manifest)
    if claim is None or not _is_chosen(claim, choice) or _leaving(claim):
        return Progress("failed", f'resourceclaim "{choice.claim}" is gone')
    objection = extended_claim.objection_to(claim, choice) if choice.extended is not None else ""
    if objection:
        return Progress("failed", objection)
    status: Object = claim.get("status") or {}
    allocation = status.get("allocation")
    if allocation is None and not choice.devices:
        return Progress("failed", f'resourceclaim "{choice.claim}" has lost its devices')
    if allocation is not None and choice.devices and _devices(allocation) != set(choice.devices):
        return Progress("failed", f'resourceclaim "{choice.claim}" got allocated elsewhere')
    reserved: list[Object] = list(status.get("reservedFor") or ())
    if allocation is not None and any(
        consumer.get("uid") == choice.pod_uid for consumer in reserved
    ):
        return _attached(claim)
    if allocation is None and FINALIZER not in _finalizers(claim):
        return _protection(_uid(claim))
    missing = [name for name in choice.classes if name not in classes]
    if needs_classes(claim, choice) and missing:
        return Progress("failed", f'deviceclass "{missing[0]}" is gone')
    reserved.append({"resource": "pods", "name": pod_name, "uid": choice.pod_uid})
    wanted: Object = {"reservedFor": reserved}
    if allocation is None:
        wanted["allocation"] = allocation_of(claim, choice, classes)
    return Write("devices/status", {**_patch(claim, {}), "status": wanted})


def _attached(claim: Object) -> Progress:
    """Whether the devices of a claim are attached, so that its pod may be bound."""
    attachment = attachment_of(claim)
    if attachment.failed:
        return Progress("failed", attachment.failed)
    return Progress("waiting", attachment.missing, attaching=True) if attachment.missing else DONE


def device_undo(claim: Object | None, choice: DeviceChoice) -> Write | None:
    """The write that removes the pod's reservation. With the last one it removes the devices, as
    Kubernetes' claims controller does, unless an earlier decision has chosen them and they are
    attached by now. None: none is needed.
    """
    if claim is None or not _is_chosen(claim, choice):
        return None
    status: Object = claim.get("status") or {}
    reserved: list[Object] = list(status.get("reservedFor") or ())
    left = [consumer for consumer in reserved if consumer.get("uid") != choice.pod_uid]
    if len(left) == len(reserved):
        return None
    wanted: Object = {"reservedFor": left or None}
    if not left and (choice.devices or not is_attached(claim)):
        wanted["allocation"] = None
    return Write("devices/status", {**_patch(claim, {}), "status": wanted})


def pod_step(pod: Object | None, choice: DeviceChoice) -> Progress | Write:
    """The next step for the pod whose claim for extended resources is prepared: its status names
    the claim. None: no such pod was read.
    """
    of = choice.extended
    if of is None:
        return DONE
    if pod is None or _uid(pod) != choice.pod_uid:
        return POD_IS_GONE
    if extended_claim.has_status(pod, choice, of):
        return DONE
    return Write("pod/status", extended_claim.status_patch(pod, choice, of))


def is_leaving(pod: Object, uid: str) -> bool:
    """Whether the pod with this UID is being deleted, or another one has its name."""
    return _uid(pod) != uid or _leaving(pod)


def failed_members(
    preparations: tuple[Preparation, ...], failures: dict[int, str], bindings: tuple[Binding, ...]
) -> dict[int, str]:
    """By index of the binding: why its member's claims could not be prepared."""
    places = {binding.uid: place for place, binding in enumerate(bindings)}
    return {
        places[preparations[index].choice.pod_uid]: text
        for index, text in sorted(failures.items(), reverse=True)
    }


def _bind_step(volume: Object | None, choice: VolumeChoice) -> Progress | Write:
    if volume is None or _uid(volume) != choice.volume_uid or _leaving(volume):
        return Progress("failed", f'persistentvolume "{choice.volume}" is gone')
    owner = volume.get("spec", {}).get("claimRef")
    if owner is not None:
        named = owner.get("namespace"), owner.get("name")
        if named != (choice.namespace, choice.claim) or owner.get("uid") not in {
            None,
            "",
            choice.claim_uid,
        }:
            return Progress("failed", f'persistentvolume "{choice.volume}" is another claim\'s')
        if owner.get("uid") == choice.claim_uid:
            return WAITING
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": choice.namespace,
        "name": choice.claim,
        "uid": choice.claim_uid,
    }
    notes = {} if owner is not None else {"annotations": {BOUND_BY_US: "yes"}}
    return Write("volume", {**_patch(volume, notes), "spec": {"claimRef": reference}})


def _devices(allocation: Object) -> set[tuple[str, str, str, str]]:
    given: Object = allocation.get("devices") or {}
    results: list[Object] = given.get("results") or []
    return {
        (result["request"], result["driver"], result["pool"], result["device"])
        for result in results
    }


def _protection(claim_uid: str) -> Write:
    """Adds the finalizer, unless the claim has it. The patch keeps all others, so it needs no
    resourceVersion.
    """
    return Write("devices", {"metadata": {"uid": claim_uid, "finalizers": [FINALIZER]}})


def _patch(stored: Object, metadata: Object) -> Object:
    was = stored["metadata"]
    stamp = {"uid": was["uid"], "resourceVersion": was["resourceVersion"]}
    return {"metadata": {**stamp, **metadata}}


def _finalizers(stored: Object) -> list[str]:
    return list(stored["metadata"].get("finalizers") or ())


def _is_chosen(claim: Object, choice: DeviceChoice) -> bool:
    """Whether the claim is the one of the choice; one that the binder makes has no UID in it."""
    return _uid(claim) == choice.claim_uid or (choice.extended is not None and not choice.claim_uid)


def _uid(stored: Object) -> str:
    return str(stored["metadata"]["uid"])


def _leaving(stored: Object) -> bool:
    return bool(stored["metadata"].get("deletionTimestamp"))


def _annotations(stored: Object) -> Object:
    return stored["metadata"].get("annotations") or {}


def _volume_of(claim: Object) -> str:
    return str(claim.get("spec", {}).get("volumeName") or "")
