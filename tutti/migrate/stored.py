"""Findings about stored objects: those that admission would refuse, annotations without effect,
groups of dialects that are not read.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from shared.contracts.annotations import GROUP_NAME
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.kube.resources import JOBS_VOLCANO, PODS
from tutti.api.objects import text
from tutti.migrate.cluster_facts import COSCHEDULING, GROUPS, ClusterFacts
from tutti.migrate.findings import Finding

#: Prefixes of annotation keys of gang schedulers.
_PREFIXES: Final = (
    "volcano.sh/",
    "scheduling.volcano.sh/",
    "scheduling.k8s.io/",
)
#: Gang declarations that keep pods of Tutti from being bound, by key.
_UNREAD_REFERENCES: Final = {
    reference.key: reference
    for reference in pod_vocabulary().references.unread
    if reference.place != "field"
}
#: Keys that Tutti ignores, with the component that acts upon them.
_WITHOUT_EFFECT: Final = {
    "volcano.sh/numa-topology-policy": "the kubelet's topology manager places pods on NUMA nodes",
    "volcano.sh/qos-level": "only Volcano's node agent reads it",
}
#: Kinds whose annotations and labels users set.
_ANNOTATED: Final = (PODS, *GROUPS, COSCHEDULING, JOBS_VOLCANO)
_ERRORS_MAX: Final = 3


def findings(facts: ClusterFacts) -> Iterator[Finding]:
    for refused in facts.refused:
        errors = "; ".join(refused.errors[:_ERRORS_MAX])
        more = len(refused.errors) - _ERRORS_MAX
        message = (
            "continues unchanged, and would be refused if it were created again: "
            f"{errors}{f' (and {more} more)' if more > 0 else ''}"
        )
        yield Finding("changes", "stored object", f"{refused.kind} {refused.name}", message)
    for group in facts.of(COSCHEDULING):
        message = (
            "belongs to coscheduling, which Tutti does not read: create a PodGroup of "
            "scheduling.volcano.sh with the same minMember, and name it in the pods' annotation "
            "scheduling.k8s.io/group-name"
        )
        yield Finding(
            "blocks",
            "dialect",
            f"PodGroup {text(group, 'metadata.namespace')}/{text(group, 'metadata.name')}",
            message,
        )
    yield from _keys(facts)


def _keys(facts: ClusterFacts) -> Iterator[Finding]:
    counts: Counter[str] = Counter()
    for resource in _ANNOTATED:
        for one in facts.of(resource):
            metadata = one.get("metadata") or {}
            keys = {*(metadata.get("annotations") or {}), *(metadata.get("labels") or {})}
            counts.update(
                key for key in keys if key.startswith(_PREFIXES) or key in _UNREAD_REFERENCES
            )
    for key, count in sorted(counts.items()):
        objects = "1 object" if count == 1 else f"{count} objects"
        why = _WITHOUT_EFFECT.get(key)
        reference = _UNREAD_REFERENCES.get(key)
        if reference is not None:
            message = (
                f"on {objects}; Tutti does not bind a pod that carries it, unless its "
                f"annotation {GROUP_NAME} gives the same name: it declares a gang of "
                f"{reference.declared_by}, which is not read"
            )
            yield Finding("changes", "annotation", key, message)
        elif why is None:
            yield Finding("tells", "annotation", key, f"on {objects}; Tutti reads it")
        else:
            yield Finding("changes", "annotation", key, f"on {objects}; without effect: {why}")
    for resource in GROUPS:
        if facts.of(resource):
            message = f"groups: {len(facts.of(resource))}; Tutti reads and writes their status"
            yield Finding("tells", "dialect", resource.title, message)
