"""Volumes and devices of claims in decisions: written into a new decision, and restored from a
decision in the log.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.devices.capacity import quantity_text
from services.gang_planner.core.state.devices.demand import (
    DEVICES_MAX,
    Alternative,
    ClaimNeed,
    Pick,
)
from services.gang_planner.core.state.devices.extended import claim_name, name_of_pod
from services.gang_planner.core.state.devices.grants import Grant
from services.gang_planner.core.state.devices.selection import requests_of
from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.members import Assignments
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.storage.demand import claim_keys
from services.gang_planner.core.state.storage.ledger import Choice
from shared.contracts.decisions import (
    DeviceChoice,
    DeviceConditions,
    DeviceShare,
    ExtendedClaim,
    GangDecision,
    VolumeChoice,
)
from shared.kube.quantities import exact
from shared.model.devices import ResourceClaim
from shared.model.objects import PodDevices

#: Upper bound of the field names and numbers of a choice.
_CHOICE_OVERHEAD_BYTES = 96
_UID_BYTES = 40
_NAME_BYTES_MAX = 253
#: Upper bound of the names of a pool and a device. Kubernetes allows longer pool names; drivers use
#: node names.
_DRIVER_BYTES_MAX = 63
_DEVICE_BYTES_MAX = 253 + 63 + 16
#: Of a part of a shareable device: its capacities with their amounts.
_CAPACITY_BYTES_MAX = 512
#: Of a device with conditions: Kubernetes allows four of either kind, each with a prefix.
_CONDITIONS_BYTES_MAX = 8 * (253 + 1 + 63 + 8)


class Choices(NamedTuple):
    """Volumes and devices that the binder assigns to claims before it binds the members."""

    volumes: tuple[VolumeChoice, ...] = ()
    devices: tuple[DeviceChoice, ...] = ()


NOTHING: Final = Choices()


def choices_of(state: State, assignments: Assignments) -> Choices:
    """Volumes and devices chosen for the members' claims. The members' capacity must be taken."""
    writer = _DeviceWriter(state)
    volumes: list[VolumeChoice] = []
    devices: list[DeviceChoice] = []
    for member, slot in assignments.pairs():
        if member.shape.shape.claims:
            volumes += _volumes(state.node_capacity, state.nodes, member, slot)
        if member.shape.device_keys:
            devices += writer.choices(member, slot)
    return Choices(tuple(volumes), tuple(devices))


def choice_bytes(
    node_capacity: NodeCapacity, members: Iterable[Member], node_bytes: int
) -> Iterator[int]:
    """Upper bound of the bytes that the claims of each member add. `node_bytes`: the longest node
    name.
    """
    devices = node_capacity.devices
    each_device = _CONDITIONS_BYTES_MAX if devices.inventory().table.conditional else 0
    needs: tuple[ClaimNeed, ...] = ()
    needs_bytes = 0
    for member in members:
        entry, pod = member.shape, member.pod
        shape = entry.shape
        each = len(pod.uid) + len(pod.namespace) + node_bytes + _UID_BYTES + _CHOICE_OVERHEAD_BYTES
        # The volume of a claim and its name are not known yet.
        total = len(shape.claims) * (each + _UID_BYTES + _NAME_BYTES_MAX)
        total += len(shape.device_claims) * each + entry.claim_bytes
        for claim in shape.device_claims if entry.device_pods else ():
            total += _extended_bytes(claim) if isinstance(claim, PodDevices) else 0
        if shape.device_claims:
            of_member = devices.demand(entry).needs
            if of_member != needs:
                needs, needs_bytes = (
                    of_member,
                    sum(_need_bytes(need, each_device) for need in of_member),
                )
            total += needs_bytes
        yield total


@lru_cache(maxsize=1_024)
def _need_bytes(need: ClaimNeed, conditions_bytes: int) -> int:
    return sum(
        max(_devices_bytes(alternative, conditions_bytes) for alternative in request.alternatives)
        for request in need.requests
    )


def _extended_bytes(devices: PodDevices) -> int:
    """Of the claim for a pod's extended resources: its name, requests and mappings. A container
    that ends may use the devices of all containers after it.
    """
    containers = len(devices.containers)
    each = [
        len(container.container) + len(resource) + _NAME_BYTES_MAX + _CHOICE_OVERHEAD_BYTES
        for container in devices.containers
        for resource, _, _ in container.requests
    ]
    return _NAME_BYTES_MAX + sum(each) * (1 + containers)


def _devices_bytes(alternative: Alternative, conditions_bytes: int) -> int:
    texts = len(alternative.name) + (len(alternative.requirement.driver or "") or _DRIVER_BYTES_MAX)
    number = DEVICES_MAX if alternative.number is None else alternative.number
    texts += _DEVICE_BYTES_MAX + conditions_bytes + _CAPACITY_BYTES_MAX * bool(alternative.capacity)
    return number * texts


def recall(node_capacity: NodeCapacity, decision: GangDecision) -> None:
    """Restore the choices of a decision read from the log, before its reservations are made."""
    for volume in decision.volumes:
        node_capacity.storage.pin((volume.namespace, volume.claim), _volume(volume))
    for grant in decision.devices:
        if grant.devices:
            node_capacity.devices.grants.pin(_key_of(grant), _grant(grant))


def keep(node_capacity: NodeCapacity, decision: GangDecision, pod_uid: str) -> None:
    """Keep the devices of a decision from the log for a pod that is gone: a binder may have
    allocated them before it was deleted.
    """
    for grant in decision.devices:
        if grant.pod_uid == pod_uid:
            node_capacity.devices.grants.keep_pinned(_key_of(grant), _grant(grant))


def forget(node_capacity: NodeCapacity, decision: GangDecision) -> None:
    """Drop the unused choices of a decision from the log, after all its reservations are made."""
    for volume in decision.volumes:
        node_capacity.storage.unpin((volume.namespace, volume.claim), _volume(volume))
    for grant in decision.devices:
        node_capacity.devices.grants.unpin(_key_of(grant), _grant(grant))


def unsupported_device(node_capacity: NodeCapacity, shapes: Iterable[ShapeEntry]) -> bool:
    """Whether a ResourceClaim of these shapes has a request that the planner does not support."""
    return any(
        bool(node_capacity.devices.demand(shape).unsupported)
        for shape in shapes
        if shape.shape.device_claims
    )


def _volumes(
    node_capacity: NodeCapacity, nodes: NodeTable, member: Member, slot: int
) -> Iterator[VolumeChoice]:
    for key in claim_keys(member.shape.shape):
        choice = node_capacity.storage.find(key)
        if choice is not None:
            yield VolumeChoice(
                pod_uid=member.pod.uid,
                namespace=key[0],
                claim=key[1],
                claim_uid=choice.claim_uid,
                node=nodes.names[slot],
                volume=choice.volume,
                volume_uid=choice.volume_uid,
            )


class _DeviceWriter:
    """Writes down the devices of one decision's members."""

    def __init__(self, state: State) -> None:
        self._claims = state.reference_objects.resource_claims
        self._devices = state.node_capacity.devices
        self._nodes = state.nodes.names
        classes = state.reference_objects.device_classes.values()
        #: Device classes that have configuration.
        self._configured = frozenset(
            [device_class.name for device_class in classes if device_class.configured]
        )
        table = self._devices.inventory().table
        #: All devices, if pods wait for conditions of any.
        self._conditional = table.entries if table.conditional else {}

    def choices(self, member: Member, slot: int) -> Iterator[DeviceChoice]:
        """One for every ResourceClaim of the member. An allocated claim must still be reserved for
        the pod. A claim that appears reserved may have been released by the previous decision,
        which CLUSTER does not show yet; therefore the binder checks every claim.
        """
        keys = member.shape.device_keys
        for reference, key in zip(member.shape.shape.device_claims, keys, strict=True):
            if isinstance(reference, PodDevices):
                yield from self._extended(member, slot, reference, key)
            elif (claim := self._claims.by_name.get(key)) is not None:
                grant = self._devices.grants.find(key)
                classes = (request.device_class for request in requests_of(claim))
                yield self._choice(member, slot, claim, grant, classes)
        self._devices.grants.settle(keys)

    def _extended(
        self, member: Member, slot: int, devices: PodDevices, key: Key
    ) -> Iterator[DeviceChoice]:
        """The choice for extended resources; none: the node's device plugins have all of them."""
        need = self._devices.classes.need_of(devices.containers)
        made = self._claims.of_pod(key[0], devices.pod_uid)
        claim = next((existing for existing in made if existing.is_allocated), None)
        grant = None
        if claim is not None:
            need = need.only(request.name for request in claim.requests)
        elif (grant := self._devices.grants.find(key)) is not None:
            need = need.only(pick.request for pick in grant.picks)
            name = claim_name(member.pod.name, devices.pod_uid, need)
            claim = ResourceClaim(uid="", namespace=key[0], name=name, resource_version=0)
        else:
            return
        classes = (request.device_class for request in need.requests)
        choice = self._choice(member, slot, claim, grant, classes)
        made_as = ExtendedClaim(
            requests=tuple(
                (request.name, request.device_class, request.number) for request in need.requests
            ),
            mappings=tuple(
                (mapping.container, mapping.resource, mapping.request) for mapping in need.mappings
            ),
        )
        yield msgspec.structs.replace(choice, extended=made_as)

    def _choice(
        self,
        member: Member,
        slot: int,
        claim: ResourceClaim,
        grant: Grant | None,
        classes: Iterable[str],
    ) -> DeviceChoice:
        """`grant`: the devices chosen for the claim; None: it has some. `classes`: of all its
        requests.
        """
        picks = grant.picks if grant is not None else ()
        configured = self._configured.intersection(classes) if self._configured and picks else ()
        shares = [
            DeviceShare(
                index=index,
                capacity=tuple((name, quantity_text(amount)) for name, amount in pick.consumed),
            )
            for index, pick in enumerate(picks)
            if pick.consumed is not None
        ]
        return DeviceChoice(
            pod_uid=member.pod.uid,
            namespace=claim.namespace,
            claim=claim.name,
            claim_uid=claim.uid,
            node=self._nodes[slot],
            devices=tuple([(pick.request, *pick.device) for pick in picks]),
            shares=tuple(shares),
            admin=tuple(sorted({pick.request for pick in picks if pick.admin})),
            conditions=tuple(self._conditions(picks)) if self._conditional else (),
            node_affinity=grant.node_affinity if grant is not None else None,
            classes=tuple(sorted(configured)),
        )

    def _conditions(self, picks: Iterable[Pick]) -> Iterator[DeviceConditions]:
        for index, pick in enumerate(picks):
            entry = self._conditional.get(pick.device)
            if entry is not None and entry.details.binding_conditions:
                yield DeviceConditions(
                    index=index,
                    binding=entry.details.binding_conditions,
                    failure=entry.details.binding_failure_conditions,
                )


def _volume(choice: VolumeChoice) -> Choice:
    return Choice(choice.node, choice.claim_uid, choice.volume, choice.volume_uid)


def _key_of(choice: DeviceChoice) -> Key:
    """The name under which the devices of a choice are accounted."""
    if choice.extended is None:
        return choice.namespace, choice.claim
    return choice.namespace, name_of_pod(choice.pod_uid)


def _grant(choice: DeviceChoice) -> Grant:
    shares = {
        share.index: tuple((name, exact(text)) for name, text in share.capacity)
        for share in choice.shares
    }
    picks = [
        Pick(request, (driver, pool, device), request in choice.admin, shares.get(index))
        for index, (request, driver, pool, device) in enumerate(choice.devices)
    ]
    return Grant(choice.node, choice.claim_uid, tuple(picks), choice.node_affinity)
