"""Claims in decisions: what was chosen for members goes into the decision, and comes back out of a
decision that is read from the log.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from services.gang_planner.core.state.devices import ledger as devices
from services.gang_planner.core.state.devices.demand import claim_keys as device_keys
from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.members import Assignments
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.storage import ledger as storage
from services.gang_planner.core.state.storage.demand import Key, claim_keys
from services.gang_planner.core.state.storage.disks import Disks
from shared.contracts.decisions import DeviceChoice, GangDecision, VolumeChoice

#: Field names and numbers around the texts of a choice.
_CHOICE_OVERHEAD_BYTES = 96
_UID_BYTES = 40
_NAME_BYTES_MAX = 253
#: Names of a pool and of a device, with the numbers around them. Kubernetes allows longer pools;
#: drivers name them after nodes.
_DEVICE_BYTES_MAX = 253 + 63 + 16


class Choices(NamedTuple):
    """What a binder does for members before it binds them."""

    volumes: tuple[VolumeChoice, ...] = ()
    devices: tuple[DeviceChoice, ...] = ()


NOTHING: Final = Choices()


def choices_of(state: State, assignments: Assignments) -> Choices:
    """Volumes and devices chosen for the claims of these members, whose capacity is taken."""
    attached = [one for one in assignments.pairs() if one[0].shape.attached]
    return Choices(
        tuple(one for member, slot in attached for one in _volumes(state, member, slot)),
        tuple(one for member, slot in attached for one in _devices(state, member, slot)),
    )


def choice_bytes(node_capacity: NodeCapacity, member: Member, node_bytes: int) -> int:
    """Upper bound of what a member's claims add to a decision."""
    shape = member.shape.shape
    pod = member.pod
    each = len(pod.uid) + len(pod.namespace) + node_bytes + _UID_BYTES + _CHOICE_OVERHEAD_BYTES
    # What volume is chosen is not known yet, nor its name.
    volumes = sum(len(name) + each + _UID_BYTES + _NAME_BYTES_MAX for name in shape.claims)
    grants = sum(len(name) + each for name in shape.device_claims)
    for _, requests in node_capacity.devices.demand(member.shape).open:
        for one in requests:
            texts = len(one.request) + len(one.driver)
            grants += one.number * (texts + _DEVICE_BYTES_MAX)
    return volumes + grants


def recall(state: State, decision: GangDecision) -> None:
    """Restore the choices of a decision read from the log, before its reservations are made."""
    for one in decision.volumes:
        state.node_capacity.storage.pin(
            (one.namespace, one.claim),
            storage.VolumePin(one.node, one.claim_uid, one.volume, one.volume_uid),
        )
    for grant in decision.devices:
        if grant.devices:
            chosen = tuple(
                (request, (driver, pool, device)) for request, driver, pool, device in grant.devices
            )
            state.node_capacity.devices.pin(
                (grant.namespace, grant.claim),
                devices.DevicePin(grant.node, grant.claim_uid, chosen),
            )


def forget(state: State, decision: GangDecision) -> None:
    """Drop choices that no reservation of a decision read from the log has used: all are made."""
    for one in decision.volumes:
        state.node_capacity.storage.unpin((one.namespace, one.claim))
    for grant in decision.devices:
        state.node_capacity.devices.unpin((grant.namespace, grant.claim))


def unsupported_device(node_capacity: NodeCapacity, shapes: Iterable[ShapeEntry]) -> bool:
    """Whether a ResourceClaim of these shapes asks for what is not judged."""
    return any(
        bool(node_capacity.devices.demand(shape).unsupported)
        for shape in shapes
        if shape.shape.device_claims
    )


def contradiction(node_capacity: NodeCapacity, loads: Iterable[tuple[int, ShapeEntry]]) -> str:
    """What is wrong with the claims in use, given all pods on nodes and all reservations; "":
    nothing.
    """
    volumes: dict[Key, dict[int, int]] = {}
    claims: dict[Key, int] = {}
    mounted = Disks()
    for slot, shape in loads:
        if shape.shape.disks:
            mounted.take(slot, shape.shape.disks)
        for key in claim_keys(shape.shape):
            users = volumes.setdefault(key, {})
            users[slot] = users.get(slot, 0) + 1
        for key in device_keys(shape.shape):
            claims[key] = claims.get(key, 0) + 1
    if volumes != node_capacity.storage.uses:
        return f"{node_capacity.storage.uses} are in use, pods and reservations use {volumes}"
    if claims != node_capacity.devices.uses:
        return f"{node_capacity.devices.uses} are in use, pods and reservations use {claims}"
    if mounted.content() != node_capacity.disks.content():
        return f"disks {node_capacity.disks.content()} are mounted, by pods {mounted.content()}"
    return node_capacity.storage.contradiction() or node_capacity.devices.contradiction()


def _volumes(state: State, member: Member, slot: int) -> list[VolumeChoice]:
    found: list[VolumeChoice] = []
    for key in claim_keys(member.shape.shape):
        choice = state.node_capacity.storage.choice(key)
        if choice is not None:
            found.append(
                VolumeChoice(
                    pod_uid=member.pod.uid,
                    namespace=key[0],
                    claim=key[1],
                    claim_uid=choice.claim_uid,
                    node=state.nodes.names[slot],
                    volume=choice.volume,
                    volume_uid=choice.volume_uid,
                )
            )
    return found


def _devices(state: State, member: Member, slot: int) -> list[DeviceChoice]:
    """Every claim of the member: one that has devices already is still to be reserved for it, and
    one that seems reserved may have been given back by the decision before this one: CLUSTER does
    not show that yet, the binder looks.
    """
    found: list[DeviceChoice] = []
    claims = state.reference_objects.resource_claims.by_name
    for key in device_keys(member.shape.shape):
        claim, grant = claims.get(key), state.node_capacity.devices.grant(key)
        if claim is None:
            continue
        chosen = grant.devices if grant is not None else ()
        found.append(
            DeviceChoice(
                pod_uid=member.pod.uid,
                namespace=key[0],
                claim=key[1],
                claim_uid=claim.uid,
                node=state.nodes.names[slot],
                devices=tuple(
                    (request, driver, pool, device) for request, (driver, pool, device) in chosen
                ),
            )
        )
    return found
