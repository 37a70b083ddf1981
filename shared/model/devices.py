"""Reference objects of dynamic resource allocation (DRA): device classes, slices, taint rules and
claims.

Quantities are texts, because they may be larger or finer than any integer of a message.
"""

from typing import Final, Literal, TypeAlias

from shared.model.reference_objects import ClusterScoped, Namespaced
from shared.model.terms import SelectorTerm, Struct

CLASS_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""The extended resource that every DeviceClass has: this prefix and its name."""
TaintEffect: TypeAlias = Literal["NoSchedule", "NoExecute"]
"""The effects that keep devices from being allocated; others are ignored."""


class DeviceClass(ClusterScoped, frozen=True, kw_only=True):
    """A DeviceClass: the devices that all its selectors match."""

    #: The driver of all its devices, if its selectors require only that; "": they require something
    #: else.
    driver: str = ""
    #: Its CEL expressions; None: the sender's version reports none, and only `driver` is known.
    selectors: tuple[str, ...] | None = None
    #: Paths of its fields that are not supported; no device is allocated for such a class.
    unsupported: tuple[str, ...] = ()
    #: Whether it has configuration, which the binder copies into allocations.
    configured: bool = False
    #: The extended resource that its devices serve, beside the one with `CLASS_RESOURCE_PREFIX`.
    #: "": none.
    extended_resource: str = ""
    created_ms: int = 0


class DeviceAttribute(Struct, frozen=True, kw_only=True):
    """An attribute of a device, or several values of one."""

    #: "domain/name"; the domain is the driver's unless the attribute names another.
    name: str
    value: bool | int | str | tuple[bool | int | str, ...]
    #: Whether the texts are semantic versions.
    version: bool = False


class DeviceTaint(Struct, frozen=True, kw_only=True):
    """A taint that keeps away requests that do not tolerate it."""

    key: str
    value: str = ""
    effect: TaintEffect


class DeviceToleration(Struct, frozen=True, kw_only=True):
    """A toleration of a request: for all keys or effects where they are empty."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Counters(Struct, frozen=True, kw_only=True):
    """Counters of one set: what the set has, or what a device consumes of it."""

    counter_set: str
    #: Name and quantity.
    amounts: tuple[tuple[str, str], ...] = ()


class CapacityPolicy(Struct, frozen=True, kw_only=True):
    """How much of a capacity an allocation consumes, of a device that allows several.

    Without `values` and `minimum`, it consumes what was requested.
    """

    #: As the driver writes it.
    name: str
    value: str
    #: For a request that does not name the capacity; "": all of it.
    default: str = ""
    #: Requests are rounded up to one of these, in ascending order.
    values: tuple[str, ...] = ()
    #: Requests are rounded up to `minimum` and a multiple of `step` above it; "": not set.
    minimum: str = ""
    maximum: str = ""
    step: str = ""


class DeviceDetails(Struct, frozen=True, kw_only=True):
    """A device but its name."""

    attributes: tuple[DeviceAttribute, ...] = ()
    #: "domain/name" and the quantity, as the driver writes it.
    capacity: tuple[tuple[str, str], ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    #: Shared counters that the device consumes while it is allocated.
    consumes: tuple[Counters, ...] = ()
    #: Whether several claims may have the device; then `policies` has all its capacities.
    shareable: bool = False
    policies: tuple[CapacityPolicy, ...] = ()
    #: Where the device is, in a slice with `per_device_nodes`; as in `ResourceSlice`.
    node: str = ""
    node_affinity: tuple[SelectorTerm, ...] | None = None
    all_nodes: bool = False
    #: Whether a claim with the device can only be used on the node for which it was chosen.
    binds_to_node: bool = False
    #: Conditions that must be true before a pod is bound, and those that end the attempt.
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class ResourceSlice(ClusterScoped, frozen=True, kw_only=True):
    """A ResourceSlice: devices of one driver, on one node, on the nodes that match, or on all; or
    counters that devices of its pool share.
    """

    driver: str = ""
    pool: str = ""
    generation: int = 0
    #: Number of slices of the whole pool; 0: not known.
    pool_slices: int = 0
    node: str = ""
    node_affinity: tuple[SelectorTerm, ...] | None = None
    all_nodes: bool = False
    #: Whether each device says where it is.
    per_device_nodes: bool = False
    #: Names of the devices.
    devices: tuple[str, ...] = ()
    #: Details of the devices, in the order of `devices`; (): none has any.
    details: tuple[DeviceDetails, ...] = ()
    shared_counters: tuple[Counters, ...] = ()


class DeviceTaintRule(ClusterScoped, frozen=True, kw_only=True):
    """A taint of all devices that match; None: of any driver, pool or name."""

    taint: DeviceTaint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceRequest(Struct, frozen=True, kw_only=True):
    """A request of a claim: `count` devices of one class that all selectors match.

    A request with `alternatives` has nothing else but its name; the first of them that can be
    served counts.
    """

    name: str
    device_class: str = ""
    count: int = 1
    #: CEL expressions.
    selectors: tuple[str, ...] = ()
    #: All devices that match on the node, at least one, instead of `count`.
    all_devices: bool = False
    #: The devices may be in use by other claims, and others may get them.
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    #: Name and quantity of each requested capacity.
    capacity: tuple[tuple[str, str], ...] = ()
    alternatives: "tuple[DeviceRequest, ...]" = ()


class DeviceConstraint(Struct, frozen=True, kw_only=True):
    """All devices of some requests have an attribute, with one value in common, or each with
    another.
    """

    #: Names of requests, or "request/subrequest"; (): all of the claim.
    requests: tuple[str, ...] = ()
    #: "domain/name".
    attribute: str
    distinct: bool = False


class SharedDevice(Struct, frozen=True, kw_only=True):
    """A part of a shareable device that a claim has."""

    driver: str
    pool: str
    device: str
    #: Name and quantity of each consumed capacity.
    capacity: tuple[tuple[str, str], ...] = ()


class ResourceClaim(Namespaced, frozen=True, kw_only=True):
    """A ResourceClaim. `unsupported`: paths of its fields that are not supported."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    unsupported: tuple[str, ...] = ()
    #: Whether devices are allocated to it: also if it has none of them for itself.
    has_allocation: bool = False
    #: (driver, pool, device) triples that are allocated to it alone.
    allocated: tuple[tuple[str, str, str], ...] = ()
    #: Parts of shareable devices that are allocated to it.
    shares: tuple[SharedDevice, ...] = ()
    #: Where the allocation can be used; None: everywhere.
    node_affinity: tuple[SelectorTerm, ...] | None = None
    #: UIDs of pods that it is reserved for.
    reserved_for: tuple[str, ...] = ()
    #: Whether it is reserved for an object that is not a pod, such as a PodGroup.
    reserved_beyond_pods: bool = False
    owner_uid: str = ""
    deleting: bool = False
    #: A scheduler made it for extended resources that its owner, a pod, requests.
    extended: bool = False

    @property
    def is_allocated(self) -> bool:
        """Whether it has devices. Older senders report only `allocated`."""
        return self.has_allocation or bool(self.allocated)
