"""Findings about pods and gangs: unsupported devices, and gangs that are bound in part now."""

from collections import defaultdict
from collections.abc import Iterator

from shared.contracts.codec import decode_shape
from shared.model.objects import DEVICE_PREFIX, GANG_PREFIX, Pod, PodGroup
from tutti.migrate.cluster_facts import ClusterFacts
from tutti.migrate.findings import Finding


def findings(facts: ClusterFacts) -> Iterator[Finding]:
    """Findings about devices, then about gangs."""
    yield from _unsupported(facts)
    yield from _claims(facts)
    yield from _partial(facts)


def _unsupported(facts: ClusterFacts) -> Iterator[Finding]:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for what, pod in _all_pods(facts):
        for field in decode_shape(pod.shape).unsupported:
            counts[what, field] += 1
    for (what, field), count in counts.items():
        asks = "a pod asks" if count == 1 else f"{count} pods ask"
        if field.startswith(GANG_PREFIX):
            message = (
                f"{'a pod is' if count == 1 else f'{count} pods are'} not bound: "
                f"{field.removeprefix(GANG_PREFIX)}"
            )
            yield Finding("blocks", "gang", what, message)
        elif field.startswith(DEVICE_PREFIX):
            name = field.removeprefix(DEVICE_PREFIX)
            message = (
                f"{asks} for {name}, a part of a device, which Tutti does not place "
                "by count: the gang would wait with UnsupportedDevice; request whole devices, or "
                "leave the gang with its scheduler"
            )
            yield Finding("blocks", "devices", what, message)
        else:
            message = (
                f"{asks} for an unsupported feature: {field}; the gang would wait with Unsupported"
            )
            yield Finding("blocks", "devices", what, message)


def _all_pods(facts: ClusterFacts) -> Iterator[tuple[str, Pod]]:
    for pod in facts.pods:
        if pod.ours and not pod.node:
            yield f"gang {_gang_of(pod)}", pod
    for name, pod in facts.templates:
        yield f"Job {name}", pod


def _claims(facts: ClusterFacts) -> Iterator[Finding]:
    by_name = {(one.namespace, one.name): one for one in facts.claims}
    for pod in facts.pods:
        if not pod.ours or pod.node:
            continue
        for name in decode_shape(pod.shape).device_claims:
            claim = by_name.get((pod.namespace, name))
            if claim is not None and claim.unsupported and not claim.allocated:
                message = (
                    f"pod {pod.name} needs it, and it requests more than whole devices of "
                    f"one driver: {', '.join(claim.unsupported)}; Tutti does not allocate it"
                )
                yield Finding(
                    "blocks", "devices", f"ResourceClaim {claim.namespace}/{claim.name}", message
                )


def _partial(facts: ClusterFacts) -> Iterator[Finding]:
    members: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in facts.pods:
        if pod.ours and pod.group_name and not pod.deleting:
            members[pod.namespace, pod.group_name].append(pod)
    for group in facts.groups:
        found = members.get((group.namespace, group.name), [])
        bound = [pod for pod in found if pod.node]
        needs = max(group.min_member, 1)
        if not bound or len(bound) >= needs:
            continue
        what = f"gang {group.namespace}/{group.name}"
        if any(pod.phase == "Running" for pod in bound):
            rest = (
                "some of its pods run, so Tutti treats it as started and below its quorum: the "
                "missing members are placed before other gangs, and nothing is released unless its "
                "group or its queue has the annotation tutti.dev/degraded-grace-seconds"
            )
        else:
            rest = _completion(group, found, bound)
        message = f"bound in part, {len(bound)} of the {needs} members that it needs: {rest}"
        yield Finding("changes", "gang", what, message)


def _completion(group: PodGroup, found: list[Pod], bound: list[Pod]) -> str:
    needs = max(group.min_member, 1)
    if len(found) < needs:
        return f"only {len(found)} of its pods exist; Tutti waits for the rest"
    alone = sum(1 for pod in bound if pod.owner is None)
    if alone:
        return (
            f"Tutti places the missing members; {alone} bound pods have no controller, so they "
            "stay bound if capacity is short (condition PartlyBound)"
        )
    return (
        "Tutti places the missing members when capacity is free, and releases no pod of the gang "
        "before it has decided about it"
    )


def _gang_of(pod: Pod) -> str:
    owner = pod.owner.name if pod.owner is not None else pod.name
    return f"{pod.namespace}/{pod.group_name or owner}"
