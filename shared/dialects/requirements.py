"""Reads requirements of a group or a queue: topology, sub-groups, node groups, and the annotations
that Volcano's policies read.

Collections of unlimited size are bounded: an object beyond the bounds is not planned, and its
errors name the bound.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from shared.contracts import annotations
from shared.dialects import selectors
from shared.dialects.protocol import NAME_CHARACTERS_MAX, FieldError
from shared.kinds.durations import duration_ms
from shared.kinds.fields import NetworkTopology
from shared.kinds.podgroup import SubGroupPolicy
from shared.kinds.queue import NodeGroups, QueueAffinity
from shared.model import objects as model

#: Passed on unchanged to the policies that read them.
_POLICY_ANNOTATIONS: Final = (
    "volcano.sh/cooldown-time",
    "volcano.sh/jdb-max-unavailable",
    "volcano.sh/jdb-min-available",
    "volcano.sh/job-allocated-hypernode",
    "volcano.sh/revocable-zone",
    "volcano.sh/task-topology-affinity",
    "volcano.sh/task-topology-anti-affinity",
    "volcano.sh/task-topology-task-order",
)
#: Both spellings are Volcano's.
_SLA: Final = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
_TOPOLOGIES: Final = (annotations.REQUIRED_TOPOLOGY, annotations.PREFERRED_TOPOLOGY)
_NODE_POOL: Final = "kai.scheduler/node-pool"
_ANNOTATION_CHARACTERS_MAX: Final = 4096
_BYTES_MAX: Final = 64 * 1024
_T = TypeVar("_T")
_encode: Final = msgspec.msgpack.Encoder().encode


def policy_annotations(given: Mapping[str, str]) -> model.Labels:
    """The annotations that policies read, sorted."""
    if not given:
        return ()
    return tuple(
        (key, given[key])
        for key in _POLICY_ANNOTATIONS
        if key in given and len(given[key]) <= _ANNOTATION_CHARACTERS_MAX
    )


def sla_waiting_ms(given: Mapping[str, str]) -> int:
    """Longest time that the group should wait, in milliseconds; 0 if none is given, or it cannot be
    read: Volcano ignores what it cannot read.
    """
    text = next((given[key] for key in _SLA if key in given), "")
    return duration_ms(text) or 0


def topology(given: NetworkTopology | None) -> model.NetworkTopology | None:
    """`networkTopology`; anything but "soft" is a limit."""
    if given is None:
        return None
    return model.NetworkTopology(
        mode="soft" if given.mode == "soft" else "hard",
        highest_tier=max(0, given.highest_tier_allowed or 0),
        highest_tier_name=given.highest_tier_name[:NAME_CHARACTERS_MAX],
    )


def label_topology(given: Mapping[str, str]) -> model.NetworkTopology | None:
    """The topology by node labels that `tutti.dev/` annotations require: one key, or several
    separated by commas; None if they require none.
    """
    for key in _TOPOLOGIES:
        if given.get(key):
            return model.NetworkTopology(
                mode="hard" if key == annotations.REQUIRED_TOPOLOGY else "soft",
                label_key=given[key][:_ANNOTATION_CHARACTERS_MAX],
            )
    return None


def packed(required: str, preferred: str, levels_of: str = "") -> model.NetworkTopology | None:
    """The topology of pods that must be in one domain of a node label, and should be in one of
    another label inside that domain; "": no such label.

    `levels_of` names the object `Topology` that has the levels between these; "": none is named.
    """
    keys = [key[:NAME_CHARACTERS_MAX] for key in (preferred, required) if key]
    if not keys:
        return None
    return model.NetworkTopology(
        mode="hard" if required else "soft",
        label_key=",".join(keys),
        levels_of=levels_of[:NAME_CHARACTERS_MAX],
    )


def node_pool(labels: Mapping[str, str]) -> tuple[model.Requirement, ...]:
    """The nodes that a group with these labels may use, by KAI's label of node pools. A group
    without it is in the default pool: the nodes without it.
    """
    name = labels.get(_NODE_POOL)
    if name:
        values = (name[:NAME_CHARACTERS_MAX],)
        return (model.Requirement(key=_NODE_POOL, operator="In", values=values),)
    return (model.Requirement(key=_NODE_POOL, operator="DoesNotExist"),)


def objections(given: Mapping[str, object]) -> Iterator[FieldError]:
    """Violations in a group's annotations."""
    if all(given.get(key) for key in _TOPOLOGIES):
        path = f"metadata.annotations[{_TOPOLOGIES[1]}]"
        yield FieldError(path=path, message=f"excludes {_TOPOLOGIES[0]}")
    for key in (*_POLICY_ANNOTATIONS, *_TOPOLOGIES):
        if len(str(given.get(key, ""))) > _ANNOTATION_CHARACTERS_MAX:
            path = f"metadata.annotations[{key}]"
            yield FieldError(
                path=path, message=f"longer than {_ANNOTATION_CHARACTERS_MAX} characters"
            )


def sub_groups(
    policies: tuple[SubGroupPolicy, ...], errors: list[str]
) -> tuple[model.SubGroup, ...]:
    """`subGroupPolicy`, in the order given: a pod belongs to the first policy that it matches.

    Violations are appended to `errors`.
    """
    errors.extend(
        f"spec.subGroupPolicy[{index}].subGroupSize: {policy.sub_group_size} is less than 1"
        for index, policy in enumerate(policies)
        if policy.sub_group_size is not None and policy.sub_group_size < 1
    )
    read = tuple(
        model.SubGroup(
            name=policy.name,
            selector=selectors.selector(policy.label_selector),
            match_label_keys=policy.match_label_keys,
            size=max(1, policy.sub_group_size or 1),
            min_sub_groups=max(0, policy.min_sub_groups or 0),
            topology=topology(policy.network_topology),
        )
        for policy in policies
    )
    return bounded(read, "spec.subGroupPolicy", errors)


def node_groups(
    stated: QueueAffinity | None, errors: list[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`spec.affinity` of a queue: (kind, names of node groups) for each kind that names any.

    Violations are appended to `errors`.
    """
    affinity = stated or QueueAffinity()
    near = affinity.node_group_affinity or NodeGroups()
    far = affinity.node_group_anti_affinity or NodeGroups()
    given = (
        ("required", near.required),
        ("preferred", near.preferred),
        ("antiRequired", far.required),
        ("antiPreferred", far.preferred),
    )
    return bounded(tuple(names for names in given if names[1]), "spec.affinity", errors)


def bounded(
    collection: tuple[_T, ...], path: str, errors: list[str], bytes_max: int = _BYTES_MAX
) -> tuple[_T, ...]:
    """The collection, or () with an error if it is too large for the group's message."""
    if collection and len(_encode(collection)) > bytes_max:
        errors.append(f"{path}: takes more than the {bytes_max} bytes that are supported")
        return ()
    return collection
