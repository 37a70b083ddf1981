"""The needs of a shape's PersistentVolumeClaims, from the current tables."""

from typing import Final, NamedTuple

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.objects import Shape
from shared.model.reference_objects import Claim, StorageClass, Volume

#: Access mode of claims that only one pod at a time may use.
EXCLUSIVE: Final = "ReadWriteOncePod"
UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"


class VolumeDemand(NamedTuple):
    """Needs of one shape; with a refusal, the other fields are empty."""

    #: Why no node is possible, in kube-scheduler's words; "": some may be.
    refusal: str = ""
    #: Whether a claim is bound to a volume that does not exist.
    astray: bool = False
    #: Volumes to which its claims are bound.
    bound: tuple[Volume, ...] = ()
    #: Claims that wait for their first consumer, smallest first.
    delayed: tuple[Claim, ...] = ()
    #: Claims that only one pod at a time may use.
    exclusive: tuple[Key, ...] = ()


def claim_keys(shape: Shape) -> list[Key]:
    return [(shape.namespace, name) for name in shape.claims]


def fully_bound(claim: Claim) -> bool:
    """Whether the binding of the claim to its volume is complete."""
    return bool(claim.volume_name) and claim.bind_completed


def class_of(claim: Claim, tables: ReferenceObjects) -> StorageClass | None:
    """The class that the claim names; None: it names none, or the class does not exist."""
    name = claim.storage_class
    return tables.storage_classes.by_name.get(("", name)) if name else None


def demand_of(shape: Shape, tables: ReferenceObjects) -> VolumeDemand:
    """Read the shape's claims. The first claim that cannot be satisfied determines the refusal."""
    claims: list[Claim] = []
    owners = dict(shape.own_claims)
    for key in claim_keys(shape):
        claim = tables.claims.by_name.get(key)
        refusal = _refusal(claim, key[1])
        if claim is None or refusal:
            return VolumeDemand(refusal=refusal)
        if claim.owner_uid != owners.get(key[1], claim.owner_uid):
            # It belongs to an earlier pod of the same name; it will be deleted and created again.
            return VolumeDemand(
                refusal=f'persistentvolumeclaim "{key[1]}" was not created for the pod'
            )
        claims.append(claim)
    bound: list[Volume] = []
    delayed: list[Claim] = []
    astray = False
    for claim in claims:
        if not fully_bound(claim):
            storage_class = class_of(claim, tables)
            if storage_class is not None and storage_class.too_large is not None:
                return VolumeDemand(
                    refusal=f'storageclass "{storage_class.name}": {storage_class.too_large.text}'
                )
            if (
                claim.volume_name
                or storage_class is None
                or not storage_class.wait_for_first_consumer
            ):
                return VolumeDemand(refusal=UNBOUND_IMMEDIATE)
            delayed.append(claim)
            continue
        volume = tables.volumes.by_name.get(("", claim.volume_name))
        if volume is None:
            astray = True
        elif volume.too_large is not None:
            return VolumeDemand(
                refusal=f'persistentvolume "{volume.name}": {volume.too_large.text}'
            )
        else:
            bound.append(volume)
    return VolumeDemand(
        astray=astray,
        bound=tuple(bound),
        delayed=tuple(sorted(delayed, key=_size)),
        exclusive=tuple(
            (claim.namespace, claim.name) for claim in claims if EXCLUSIVE in claim.access_modes
        ),
    )


def _refusal(claim: Claim | None, name: str) -> str:
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if claim.phase == "Lost":
        gone = claim.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{gone}"'
    if claim.too_large is not None and not fully_bound(claim):
        return f'persistentvolumeclaim "{name}": {claim.too_large.text}'
    return f'persistentvolumeclaim "{name}" is being deleted' if claim.deleting else ""


def _size(claim: Claim) -> tuple[int, str]:
    return claim.request_bytes, claim.name
