"""Bounds of neutral objects: the one place that decides which object is too large to be judged.

The API server stores objects of more than a megabyte, and some grow when they are read. Every
message and page must hold the largest object, and the planner's time grows with the entries of its
lists. An object within the bounds is left as it is. Of one beyond them, the fields that break a
rule are dropped, and a `TooLarge` names the first of them. What is left is small, has its identity,
and is never less strict than the whole object:

* a pod or a group waits, and its message names the field. A pod on a node still takes its
  resources, host ports and claims there;
* a PodDisruptionBudget protects every pod of its namespace;
* a ResourceQuota admits no further gang of its namespace (`policies.resourcequota`);
* claims, and what volumes and devices are chosen by, serve no pod that is not bound yet;
* a queue takes no gangs, and a node has no capacity, unless only its images were dropped;
* labels of a namespace and members of a HyperNode are missing. Only an administrator writes these.

Pure.
"""

from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

from shared.model.devices import DeviceClass, ResourceClaim, ResourceSlice
from shared.model.objects import (
    QUEUE_ERRORS,
    ClusterObject,
    Node,
    Pod,
    PodGroup,
    Queue,
    Shape,
)
from shared.model.reference_objects import (
    Budget,
    Claim,
    ClusterScoped,
    Namespace,
    Namespaced,
    ResourceQuota,
    StorageCapacity,
    StorageClass,
    Volume,
)
from shared.model.terms import Selector, Struct, TooLarge

#: Of one encoded object. A message of CLUSTER has at most 256 KiB, and a page of a snapshot twice
#: as much. The largest objects of real clusters are groups with 5,000 pods by name.
OBJECT_BYTES_MAX: Final = 248 * 1024
#: Of one encoded shape; real ones take a few hundred bytes. The planner keeps every shape.
SHAPE_BYTES_MAX: Final = 64 * 1024
#: Entries of all lists of one field together. Selectors are compared with every pod, entry by
#: entry: this many take half a millisecond. A HyperNode may name 10,000 nodes.
ENTRIES_MAX: Final = 10_000
#: The same of what users select pods and volumes by: each selector is compared with every pod of
#: its namespace in a search for victims, or with every free volume of the cluster. Real ones have a
#: few.
SELECTOR_ENTRIES_MAX: Final = 64
#: Requirements of a pod's affinity to nodes: each is compared with all nodes. A list of nodes to
#: avoid is one requirement.
NODE_REQUIREMENTS_MAX: Final = 256
#: Resources of one pod, node, group, queue or quota: each is a row of the planner's tables. Nodes
#: have about ten, quotas with counts of all kinds about a hundred.
RESOURCES_MAX: Final = 256
#: Resources of one pod. A name takes a row of all nodes for as long as a pod has it, and a user
#: makes up others for every pod. Real pods have about five.
POD_RESOURCES_MAX: Final = 32
#: Characters of one text; the longest that is read whole, a CEL expression, has 10,240.
TEXT_CHARACTERS_MAX: Final = 16 * 1024
#: Terms of a pod's affinity and anti-affinity, and its spread constraints. Each of them is compared
#: with pods of all namespaces, and each costs other gangs time on every node. Real pods have a few.
TERMS_MAX: Final = 32
#: Of all that makes a pod on a node take from it (ports, claims, disks), if it is not judged.
_KEPT_MAX: Final = 256

#: A shorter encoding has not so many resources, of at least four bytes each. One shorter than
#: ENTRIES_MAX has neither so many entries nor so long a text, so its lists are not walked through.
_UNSEEN_BYTES_MAX: Final = 4 * RESOURCES_MAX
#: The same of a shape, whose terms are longer than its resources.
_UNSEEN_SHAPE_BYTES_MAX: Final = 4 * POD_RESOURCES_MAX
#: Fields of the type `Resources`, which counts of roles and images have, too.
_RESOURCES: Final[dict[type, frozenset[str]]] = {
    Shape: frozenset({"requests"}),
    Node: frozenset({"allocatable"}),
    PodGroup: frozenset({"min_resources"}),
    Queue: frozenset({"capability", "deserved", "guarantee"}),
    ResourceQuota: frozenset({"hard", "used"}),
}
#: Resources of every pod. The kubelet counts them before all others.
_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
#: Kinds for which `ENTRIES_MAX` is not the bound.
_ENTRIES_MAX: Final[dict[type, int]] = {Budget: SELECTOR_ENTRIES_MAX, Claim: SELECTOR_ENTRIES_MAX}
#: Where users find fields, if not at "spec." and the field's name.
_PATHS: Final[dict[type, dict[str, str]]] = {
    Shape: {
        "requests": "spec.containers.resources.requests",
        "node_affinity": "spec.affinity.nodeAffinity",
        "preferred_node_affinity": "spec.affinity.nodeAffinity",
        "pod_affinity": "spec.affinity",
        "spread": "spec.topologySpreadConstraints",
        "host_ports": "spec.containers.ports",
        "images": "spec.containers",
        "claims": "spec.volumes",
        "own_claims": "spec.volumes",
        "disks": "spec.volumes",
        "device_claims": "spec.resourceClaims",
        "unsupported": "metadata.annotations",
    },
    Pod: {
        "labels": "metadata.labels",
        "role": "metadata",
        "extended": "spec.containers.resources.requests",
        "gates": "spec.schedulingGates",
    },
    PodGroup: {"settings": "metadata.annotations", "notes": "metadata.annotations"},
    Queue: {"settings": "metadata.annotations", "guarantee": "spec.guarantee.resource"},
    Node: {
        "labels": "metadata.labels",
        "allocatable": "status.allocatable",
        "images": "status.images",
    },
    Namespace: {"labels": "metadata.labels"},
    ResourceQuota: {"used": "status.used"},
    Volume: {"labels": "metadata.labels"},
    StorageClass: {"allowed_topologies": "allowedTopologies"},
    StorageCapacity: {"node_topology": "nodeTopology"},
    DeviceClass: {"unsupported": "spec.selectors"},
    ResourceClaim: {
        "requests": "spec.devices.requests",
        "constraints": "spec.devices.constraints",
        "unsupported": "spec.devices",
        "allocated": "status.allocation",
        "shares": "status.allocation",
        "node_affinity": "status.allocation.nodeSelector",
        "reserved_for": "status.reservedFor",
    },
    ResourceSlice: {"details": "spec.devices", "node_affinity": "spec.nodeSelector"},
}
#: Fields that are dropped to something else than their default, with what else then changes. A
#: slice keeps no devices, because these without their details would look plain.
_DROPPED: Final[dict[tuple[type, str], dict[str, Any]]] = {
    (Budget, "selector"): {"selector": Selector(), "disruptions_allowed": 0},
    (Node, "labels"): {"labels": (), "allocatable": ()},
    (Node, "taints"): {"taints": (), "allocatable": ()},
    # Terms of which none matches: nowhere, and not everywhere.
    (Volume, "node_affinity"): {"node_affinity": ()},
    (ResourceClaim, "node_affinity"): {"node_affinity": ()},
    **{
        (ResourceSlice, field): {
            "devices": (),
            "details": (),
            "shared_counters": (),
            "node_affinity": None,
        }
        for field in ("devices", "details", "shared_counters", "node_affinity")
    },
}

_Bounded = TypeVar("_Bounded", bound=Struct)
_encode: Final = msgspec.msgpack.Encoder().encode
_decode_shape: Final = msgspec.msgpack.Decoder(Shape).decode


def bounded(neutral: ClusterObject) -> ClusterObject:
    """The same object if it is within the bounds; else without the fields that are not, with a
    marker (`marker_of`) of the first of them.

    The bounds of a pod's shape are those of `judged_shape`.
    """
    size = len(_encode(neutral))
    if size <= _UNSEEN_BYTES_MAX:
        return neutral
    if isinstance(neutral, Pod) and neutral.declared_group is not None:
        group = bounded(neutral.declared_group)
        if isinstance(group, PodGroup) and group is not neutral.declared_group:
            neutral = msgspec.structs.replace(neutral, declared_group=group)
    left, violation = _within(neutral, size, OBJECT_BYTES_MAX)
    return left if violation is None else _marked(left, violation)


def marker_of(neutral: ClusterObject) -> str:
    """What is too large in an object, as messages show it; "": nothing is."""
    match neutral:
        case Pod():
            if TooLarge.MARK.encode() not in neutral.shape:
                return (
                    marker_of(neutral.declared_group) if neutral.declared_group is not None else ""
                )
            texts: tuple[str, ...] = _decode_shape(neutral.shape).unsupported
        case PodGroup():
            texts = neutral.errors
        case Queue():
            texts = tuple(text for key, text in neutral.settings if key == QUEUE_ERRORS)
        case DeviceClass() | ResourceClaim():
            texts = neutral.unsupported
        case ClusterScoped() | Namespaced() | Node():
            return "" if neutral.too_large is None else neutral.too_large.text
        case _:
            return ""
    return next((text for text in texts if text.startswith(TooLarge.MARK)), "")


def judged_shape(encoded: bytes, *, on_node: bool) -> bytes:
    """The same shape if it is within the bounds, else one that is not judged.

    Args:
        encoded: The shape.
        on_node: Whether its pod has a node, and takes resources there.
    """
    if len(encoded) <= _UNSEEN_SHAPE_BYTES_MAX:
        return encoded
    shape = _decode_shape(encoded)
    _, violation = _within(shape, len(encoded), SHAPE_BYTES_MAX)
    violation = violation or _too_many_parts(shape)
    return (
        encoded if violation is None else _encode(_unjudged(shape, violation.text, on_node=on_node))
    )


def unjudged_shape(encoded: bytes, why: str, *, on_node: bool) -> bytes:
    """The shape of a pod that is not judged, because of another part than its shape."""
    return _encode(_unjudged(_decode_shape(encoded), why, on_node=on_node))


def _unjudged(shape: Shape, why: str, *, on_node: bool) -> Shape:
    if not on_node:
        return Shape(requests=(("pods", 1),), unsupported=(why,))
    # Native ones first, and as many extended ones as the shape holds.
    requests = sorted(shape.requests, key=lambda pair: (pair[0] not in _NATIVE, pair))
    left = SHAPE_BYTES_MAX // 2
    kept: list[tuple[str, int]] = []
    for name, amount in requests:
        left -= len(name.encode()) + 16
        if left < 0:
            break
        kept.append((name, amount))
    # Names of claims and disks have at most 1,024 bytes, or the pod would not be on a node.
    most = _KEPT_MAX
    reduced = Shape(
        requests=tuple(sorted(kept)),
        host_ports=shape.host_ports[:most],
        claims=shape.claims[:most],
        device_claims=shape.device_claims[:most],
        disks=shape.disks[:most],
        namespace=shape.namespace,
        unsupported=(why,),
    )
    if len(_encode(reduced)) <= SHAPE_BYTES_MAX:
        return reduced
    return Shape(requests=reduced.requests, unsupported=(why,))


def _too_many_parts(shape: Shape) -> TooLarge | None:
    if len(shape.requests) > POD_RESOURCES_MAX:
        rule = f"has {len(shape.requests)} resources, and Tutti judges at most {POD_RESOURCES_MAX}"
        return TooLarge(field=_path(Shape, "requests"), rule=rule)
    counts = {
        "pod_affinity": sum(len(_parts(terms)) for terms in _parts(shape.pod_affinity)),
        "spread": len(shape.spread),
    }
    for field, count in counts.items():
        if count > TERMS_MAX:
            rule = f"has {count} terms, and Tutti judges at most {TERMS_MAX}"
            return TooLarge(field=_path(Shape, field), rule=rule)
    terms = [
        *(shape.node_affinity or ()),
        *(preferred.term for preferred in shape.preferred_node_affinity),
    ]
    count = sum(len(term.expressions) + len(term.fields) for term in terms)
    if count > NODE_REQUIREMENTS_MAX:
        rule = f"has {count} requirements, and Tutti judges at most {NODE_REQUIREMENTS_MAX}"
        return TooLarge(field=_path(Shape, "node_affinity"), rule=rule)
    return None


def _within(kept: _Bounded, size: int, bytes_max: int) -> tuple[_Bounded, TooLarge | None]:
    """The object without the fields that break a rule, and the first violation.

    Args:
        kept: The object.
        size: Bytes of its encoding, at least.
        bytes_max: How many it may have.
    """
    kind = type(kept)
    entries_max = _ENTRIES_MAX.get(kind, ENTRIES_MAX)
    first: TooLarge | None = None
    for field in _fields(kind):
        resources = field.name in _RESOURCES.get(kind, ())
        rule = _broken_rule(
            getattr(kept, field.name),
            resources=resources,
            # A shorter encoding has not so many entries.
            entries_max=entries_max if size > entries_max else None,
        )
        if rule:
            first = first or TooLarge(field=_path(kind, field.name), rule=rule)
            kept = _without(kept, field)
    if size <= bytes_max or len(_encode(kept)) <= bytes_max:
        return kept, first
    by_size = sorted(
        (field for field in _fields(kind) if not field.required),
        key=lambda field: len(_encode(getattr(kept, field.name))),
        reverse=True,
    )
    for field in by_size:
        length = len(_encode(getattr(kept, field.name)))
        rule = f"takes {length} bytes, and Tutti judges objects of at most {bytes_max}"
        first = first or TooLarge(field=_path(kind, field.name), rule=rule)
        kept = _without(kept, field)
        if len(_encode(kept)) <= bytes_max:
            break
    return kept, first


def _broken_rule(value: Any, *, resources: bool, entries_max: int | None) -> str:
    """The rule that a field's value breaks; "": none."""
    if resources and len(value or ()) > RESOURCES_MAX:
        return f"has {len(value)} resources, and Tutti judges at most {RESOURCES_MAX}"
    if entries_max is None:
        return ""
    entries, characters = _size(value)
    if entries > entries_max:
        return f"has {entries} entries, and Tutti judges at most {entries_max}"
    if characters > TEXT_CHARACTERS_MAX:
        return f"has a text of {characters} characters, and Tutti reads {TEXT_CHARACTERS_MAX}"
    return ""


def _size(value: object) -> tuple[int, int]:
    """The entries of all lists of a value, where a pair is one entry, and its longest text."""
    if isinstance(value, str):
        return 0, len(value)
    entries, longest = 0, 0
    parts = _parts(value)
    if isinstance(value, tuple):
        entries = len(parts)
        # A tuple in a tuple is a pair, which may contain a list.
        parts = tuple(part_of_pair for part in parts for part_of_pair in _pair(part))
    for part in parts:
        below, characters = _size(part)
        entries += below
        longest = max(longest, characters)
    return entries, longest


def _parts(value: object) -> tuple[object, ...]:
    """The items of a tuple or the fields of a struct."""
    if isinstance(value, msgspec.Struct):
        return cast("tuple[object, ...]", msgspec.structs.astuple(value))
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()


def _pair(value: object) -> tuple[object, ...]:
    items = _parts(value)
    return items if isinstance(value, tuple) else (value,)


def _without(whole: _Bounded, field: msgspec.structs.FieldInfo) -> _Bounded:
    """The object without one field; a text that it must have is cut."""
    kind = type(whole)
    instead = _DROPPED.get((kind, field.name))
    if instead is None:
        value = getattr(whole, field.name)[:_KEPT_MAX] if field.required else field.default
        instead = {field.name: value}
    return msgspec.structs.replace(whole, **instead)


def _marked(neutral: ClusterObject, violation: TooLarge) -> ClusterObject:
    replace = msgspec.structs.replace
    match neutral:
        case Pod():
            shape = unjudged_shape(neutral.shape, violation.text, on_node=bool(neutral.node))
            return replace(neutral, shape=shape)
        case PodGroup():
            return replace(neutral, errors=(violation.text, *neutral.errors))
        case Queue():
            return replace(neutral, state="Unknown", settings=((QUEUE_ERRORS, violation.text),))
        case DeviceClass():
            return replace(neutral, selectors=(), unsupported=(violation.text,))
        case ResourceClaim():
            return replace(neutral, requests=(), constraints=(), unsupported=(violation.text,))
        case ClusterScoped() | Namespaced() | Node():
            return replace(neutral, too_large=violation)
        case _:
            return neutral


@cache
def _fields(kind: type[Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _path(kind: type, field: str) -> str:
    """Where users find a field of the neutral model."""
    known = _PATHS.get(kind, {}).get(field)
    if known is not None:
        return known
    first, *more = field.split("_")
    return f"spec.{first}{''.join(word.capitalize() for word in more)}"
