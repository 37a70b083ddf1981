"""A pod's shape: all properties that determine where it may run.

Thousands of pods share a few shapes, so a shape is computed once per distinct source: the fields it
depends on are encoded (a microsecond), and a bounded cache maps that text to the finished msgpack
bytes. A pod's own name, namespace and labels are in the source only where a constraint of it reads
them: without any, the pods of one template are one source.

What the planner does not support is named in `Shape.unsupported`: parts of devices by resource,
malformed quantities by field path, and gang declarations that are not read by a sentence.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from shared.dialects import selectors
from shared.kube import objects as kube
from shared.kube.quantities import QuantityError
from shared.kube.requests import (
    Resize,
    effective_requests,
    extended_requests,
    host_ports,
    resize_of,
)
from shared.model import objects as model
from shared.model.bounds import ENTRIES_MAX, judged_shape
from shared.model.terms import PodAffinity, PodTerm, SpreadConstraint, WeightedTerm

#: Parts of devices: one scheduler and its agent on the node account for them, and their count does
#: not determine where they fit.
_SHARED_DEVICES: Final = frozenset(
    {
        "volcano.sh/gpu-memory",
        "volcano.sh/gpu-number",
        "huawei.com/Ascend310P-memory",
        "huawei.com/npu-core",
    }
)
_SHARED_DEVICES_PREFIX: Final = "volcano.sh/vgpu-"
#: Every monitor of an RBD image makes a name with it; Ceph's names are far shorter.
_DISK_CHARACTERS_MAX: Final = 1024
#: Sources longer than this are computed each time, so that 8,192 cached ones stay below 64 MiB.
_CACHED_SOURCE_BYTES_MAX: Final = 8 * 1024


class _Identity(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The pod's own fields that its constraints read; empty if no constraint does."""

    namespace: str = ""
    #: Only if volumes are created for the pod.
    name: str = ""
    #: Values of its labels that `matchLabelKeys` and `mismatchLabelKeys` name.
    labels: dict[str, str] = {}
    #: Claim created for each of `spec.resourceClaims`.
    device_claims: dict[str, str] = {}
    #: Like the name.
    uid: str = ""


class _ShapeSource(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields that a shape depends on; none differs between the pods of one template."""

    spec: kube.PodSpec
    resize: Resize
    identity: _Identity
    #: What the pod declares of its gang and is not read.
    unread: tuple[str, ...] = ()
    #: Annotations by which the pod requests parts of devices.
    device_parts: tuple[str, ...] = ()


_NO_IDENTITY: Final = _Identity()
_NO_STATUS: Final = kube.PodStatus()
_NO_METADATA: Final = kube.ObjectMeta()
_encode: Final = msgspec.msgpack.Encoder().encode
_decode_source: Final = msgspec.msgpack.Decoder(_ShapeSource).decode


def shape(
    spec: kube.PodSpec,
    status: kube.PodStatus = _NO_STATUS,
    metadata: kube.ObjectMeta = _NO_METADATA,
    *,
    unread: tuple[str, ...] = (),
    device_parts: tuple[str, ...] = (),
) -> tuple[bytes, tuple[model.ContainerDevices, ...]]:
    """The msgpack of the pod's `Shape`, and its containers' requests for extended resources. Never
    raises: what cannot be judged is in `Shape.unsupported`.

    Args:
        spec: The pod's spec, or a template's.
        status: Read for in-place resizes, and for claims that were created for the pod.
        metadata: Read for constraints on namespace, name or labels; empty for a template.
        unread: Sentences about what it declares of its gang and cannot be read.
        device_parts: Annotations by which it requests parts of devices, as messages name them.
    """
    source = _encode(
        _ShapeSource(
            msgspec.structs.replace(
                spec,
                scheduler_name="",
                node_name="",
                priority=0,
                priority_class_name="",
                preemption_policy="",
                scheduling_gates=(),
                scheduling_group=None,
                workload_ref=None,
                active_deadline_seconds=0,
                # Other volumes differ from pod to pod, and do not restrict its node.
                volumes=tuple(volume for volume in spec.volumes if _restricts_node(volume)),
            ),
            resize_of(status),
            _identity(spec, status, metadata),
            unread,
            device_parts,
        )
    )
    on_node = bool(spec.node_name)
    if len(source) > _CACHED_SOURCE_BYTES_MAX:
        return _shape(source, on_node)
    return _cached_shape(source, on_node)


def _restricts_node(volume: kube.Volume) -> bool:
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.iscsi is not None
        or volume.rbd is not None
    )


def unjudged(why: str) -> bytes:
    """The msgpack of the shape of a pod that cannot be placed, for this reason."""
    return _encode(_unjudged(why))


def _identity(spec: kube.PodSpec, status: kube.PodStatus, metadata: kube.ObjectMeta) -> _Identity:
    affinity = spec.affinity
    about_pods = affinity is not None and (
        affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    )
    ephemeral = claims = False
    for volume in spec.volumes:
        ephemeral = ephemeral or volume.ephemeral is not None
        claims = claims or volume.persistent_volume_claim is not None
    spread = spec.topology_spread_constraints
    if not (about_pods or spread or ephemeral or claims or spec.resource_claims):
        return _NO_IDENTITY
    labels = metadata.labels
    keys = sorted({key for key in _label_keys(spec) if key in labels})
    return _Identity(
        namespace=metadata.namespace,
        name=metadata.name if ephemeral else "",
        labels={key: labels[key] for key in keys},
        device_claims={
            claim.name: claim.resource_claim_name for claim in status.resource_claim_statuses
        },
        uid=metadata.uid if ephemeral else "",
    )


def _label_keys(spec: kube.PodSpec) -> Iterator[str]:
    for term in _pod_terms(spec):
        yield from term.match_label_keys
        yield from term.mismatch_label_keys
    for constraint in spec.topology_spread_constraints:
        yield from constraint.match_label_keys


def _pod_terms(spec: kube.PodSpec) -> Iterator[kube.PodAffinityTerm]:
    affinity = spec.affinity if spec.affinity is not None else kube.Affinity()
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if terms is not None:
            yield from terms.required
            yield from (weighted.pod_affinity_term for weighted in terms.preferred)


def _shape(source: bytes, on_node: bool) -> tuple[bytes, tuple[model.ContainerDevices, ...]]:
    read = _decode_source(source)  # a key of the cache, as `on_node`
    encoded = judged_shape(_encode(_computed_shape(read)), on_node=on_node)
    return encoded, extended_requests(read.spec)


_cached_shape: Final = lru_cache(maxsize=8192)(_shape)


def _computed_shape(source: _ShapeSource) -> model.Shape:
    spec, identity = source.spec, source.identity
    try:
        requests = effective_requests(spec, source.resize)
    except QuantityError as error:
        return _unjudged(str(error))
    pod_affinity = _pod_affinity(spec, identity)
    spread = tuple(_spread(constraint, identity) for constraint in spec.topology_spread_constraints)
    claims = tuple(sorted(set(_claims(spec, identity))))
    device_claims = tuple(sorted(set(_device_claims(spec, identity))))
    reads_namespace = pod_affinity is not None or spread or claims or device_claims
    return model.Shape(
        requests=requests,
        node_selector=tuple(sorted(spec.node_selector.items())),
        node_affinity=_node_affinity(spec),
        tolerations=spec.tolerations,
        host_ports=host_ports(spec),
        preferred_node_affinity=_preferred_node_affinity(spec),
        pod_affinity=pod_affinity,
        spread=spread,
        images=_images(spec),
        claims=claims,
        own_claims=tuple((name, identity.uid) for name in sorted(_own_claims(spec, identity))),
        device_claims=device_claims,
        disks=tuple(
            sorted(
                islice(_disks(spec), ENTRIES_MAX + 1), key=lambda disk: (disk.name, disk.read_only)
            )
        ),
        namespace=identity.namespace if reads_namespace else "",
        unsupported=(
            *_shared_devices(requests),
            *(model.DEVICE_PREFIX + name for name in source.device_parts),
            *(model.GANG_PREFIX + sentence for sentence in source.unread),
        ),
    )


def _unjudged(why: str) -> model.Shape:
    return model.Shape(requests=(("pods", 1),), unsupported=(why[:1024],))


def _node_affinity(spec: kube.PodSpec) -> tuple[model.SelectorTerm, ...] | None:
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if node_affinity is None or node_affinity.required is None:
        return None
    return selectors.terms(node_affinity.required)


def _preferred_node_affinity(spec: kube.PodSpec) -> tuple[WeightedTerm, ...]:
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if node_affinity is None:
        return ()
    return tuple(
        WeightedTerm(weight=preferred.weight, term=selectors.term(preferred.preference))
        for preferred in node_affinity.preferred
    )


def _pod_affinity(spec: kube.PodSpec, identity: _Identity) -> PodAffinity | None:
    affinity = spec.affinity if spec.affinity is not None else kube.Affinity()
    together = affinity.pod_affinity or kube.PodAffinity()
    apart = affinity.pod_anti_affinity or kube.PodAffinity()
    terms = PodAffinity(
        affinity=tuple(_pod_term(term, identity) for term in together.required),
        anti_affinity=tuple(_pod_term(term, identity) for term in apart.required),
        preferred=_preferred_pod_terms(together, identity),
        preferred_anti=_preferred_pod_terms(apart, identity),
    )
    return terms if terms != PodAffinity() else None


def _preferred_pod_terms(terms: kube.PodAffinity, identity: _Identity) -> tuple[PodTerm, ...]:
    return tuple(
        _pod_term(weighted.pod_affinity_term, identity, weighted.weight)
        for weighted in terms.preferred
    )


def _pod_term(term: kube.PodAffinityTerm, identity: _Identity, weight: int = 0) -> PodTerm:
    """The term, with the pod's own labels merged in unless the API server has done so."""
    selector = selectors.selector(term.label_selector)
    if selector is not None:
        named = {requirement.key for requirement in selector.requirements}
        match = [key for key in term.match_label_keys if key not in named]
        mismatch = [key for key in term.mismatch_label_keys if key not in named]
        selector = selectors.merged(selector, match, "In", identity.labels)
        selector = selectors.merged(selector, mismatch, "NotIn", identity.labels)
    namespaces = tuple(sorted(set(term.namespaces)))
    if not namespaces and term.namespace_selector is None:
        namespaces = (identity.namespace,)
    return PodTerm(
        selector=selector,
        namespaces=namespaces,
        namespace_selector=selectors.selector(term.namespace_selector),
        topology_key=term.topology_key,
        weight=weight,
    )


def _spread(constraint: kube.TopologySpreadConstraint, identity: _Identity) -> SpreadConstraint:
    """The constraint, with the pod's labels as they are now merged in, as kube-scheduler does."""
    selector = selectors.selector(constraint.label_selector)
    if selector is not None:
        selector = selectors.merged(selector, constraint.match_label_keys, "In", identity.labels)
    is_soft = constraint.when_unsatisfiable == "ScheduleAnyway"
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        when_unsatisfiable="ScheduleAnyway" if is_soft else "DoNotSchedule",
        selector=selector,
        min_domains=constraint.min_domains,
        node_affinity_policy="Ignore" if constraint.node_affinity_policy == "Ignore" else "Honor",
        node_taints_policy="Honor" if constraint.node_taints_policy == "Honor" else "Ignore",
    )


def _images(spec: kube.PodSpec) -> tuple[str, ...]:
    """As kube-scheduler looks them up: with a tag."""
    names = [
        container.image
        for container in (*spec.containers, *spec.init_containers)
        if container.image
    ]
    return tuple(
        sorted(name if name.rfind(":") > name.rfind("/") else f"{name}:latest" for name in names)
    )


def _claims(spec: kube.PodSpec, identity: _Identity) -> Iterator[str]:
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
    yield from _own_claims(spec, identity)


def _own_claims(spec: kube.PodSpec, identity: _Identity) -> Iterator[str]:
    for volume in spec.volumes:
        if volume.persistent_volume_claim is None and volume.ephemeral is not None:
            yield f"{identity.name}-{volume.name}"


def _disks(spec: kube.PodSpec) -> Iterator[model.Disk]:
    for volume in spec.volumes:
        gce, aws = volume.gce_persistent_disk, volume.aws_elastic_block_store
        iscsi, rbd = volume.iscsi, volume.rbd
        if gce is not None:
            yield model.Disk(name=f"gce {gce.pd_name}", read_only=gce.read_only)
        if aws is not None:
            # A second pod is refused even if both only read.
            yield model.Disk(name=f"aws {aws.volume_id}")
        if iscsi is not None:
            yield model.Disk(name=f"iscsi {iscsi.iqn}", read_only=iscsi.read_only)
        if rbd is not None:
            # Two images are one if they share a monitor.
            for monitor in sorted(set(rbd.monitors)):
                name = f"rbd {monitor} {rbd.pool} {rbd.image}"[:_DISK_CHARACTERS_MAX]
                yield model.Disk(name=name, read_only=rbd.read_only)


def _device_claims(spec: kube.PodSpec, identity: _Identity) -> Iterator[str]:
    for claim in spec.resource_claims:
        made = claim.resource_claim_name or identity.device_claims.get(claim.name)
        if made is None:
            yield f"?{claim.name}"
        elif made:
            # "": the template needs no claim.
            yield made


def _shared_devices(requests: model.Resources) -> Iterator[str]:
    for name, _ in requests:
        if name in _SHARED_DEVICES or name.startswith(_SHARED_DEVICES_PREFIX):
            yield f"{model.DEVICE_PREFIX}{name}"
