"""What every cluster has: pods, nodes and priority classes, and what surrounds them.

Pods that name a group, and bare pods of our schedulers, are read by `pods`, what the planner looks
up by `reference_objects`, `storage` and `devices`; this file adds nodes and priority classes. It
has no group object to write a status on.
"""

import re
from sys import intern
from typing import Any, Final

from shared.contracts import annotations
from shared.contracts.verdicts import Verdict
from shared.dialects import devices, pod_owners, reference_objects, storage
from shared.dialects.field_checks import Findings
from shared.dialects.pods import read_pod, read_undecodable_pod
from shared.dialects.protocol import (
    FieldError,
    JsonObject,
    Kind,
    ReadingContext,
    StatusPatch,
)
from shared.kube import objects as kube
from shared.kube.decoding import Undecodable
from shared.kube.quantities import QuantityError, amount
from shared.kube.resources import NODES, PODS, PRIORITY_CLASSES
from shared.model import objects as model

NAME: Final = "native"

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DISRUPTION_KEYS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")


def read_node(found: kube.Node, context: ReadingContext) -> model.Node:
    """A node; a malformed amount of a resource counts as none of it."""
    del context
    metadata = found.metadata
    ready = [one.status for one in found.status.conditions if one.type == "Ready"]
    return model.Node(
        uid=metadata.uid,
        name=metadata.name,
        resource_version=metadata.version,
        labels=tuple(sorted(metadata.labels.items())),
        allocatable=tuple(sorted(_amounts(found.status.allocatable).items())),
        taints=tuple(
            model.Taint(key=taint.key, value=taint.value, effect=taint.effect)
            for taint in found.spec.taints
        ),
        unschedulable=found.spec.unschedulable,
        # A node without the condition is one whose taints alone speak for it, as for
        # kube-scheduler.
        ready="True" in ready if ready else True,
        images=tuple(
            sorted(
                {
                    intern(name): one.size_bytes
                    for one in found.status.images
                    for name in one.names
                }.items()
            )
        )
        if found.status.images
        else (),
    )


def read_undecodable_node(found: Undecodable, context: ReadingContext) -> model.Node:
    """A node that cannot be read takes no pods, but those on it are still on an existing node."""
    del context
    metadata = found.metadata
    return model.Node(
        uid=metadata.uid,
        name=metadata.name,
        resource_version=metadata.version,
        unschedulable=True,
        ready=False,
    )


def read_priority_class(found: kube.PriorityClass, context: ReadingContext) -> model.PriorityClass:
    """A priority class."""
    del context
    return model.PriorityClass(
        uid=found.metadata.uid,
        name=found.metadata.name,
        resource_version=found.metadata.version,
        value=found.value,
        global_default=found.global_default,
        preempts=found.preemption_policy != "Never",
    )


def read_undecodable_priority_class(
    found: Undecodable, context: ReadingContext
) -> model.PriorityClass:
    """A class that cannot be read is known by name, with the value that an unknown class has: 0."""
    del context
    return model.PriorityClass(
        uid=found.metadata.uid,
        name=found.metadata.name,
        resource_version=found.metadata.version,
    )


def status(verdict: Verdict) -> StatusPatch | None:
    """Nothing: what has no group object shows its verdict on its pods."""
    del verdict
    return None


def validate(kind: str, candidate: JsonObject) -> list[FieldError]:
    """What is wrong with the annotations by which a pod joins a gang; the API server knows the rest
    of a pod.

    The webhook asks only for pods of our schedulers and pods that name a group.
    """
    findings = Findings()
    if kind == "Pod":
        metadata = findings.section(candidate, "metadata")
        notes = findings.section(metadata, "metadata.annotations")
        _check_group(findings, notes)
        _check_disruption(findings, notes)
    return findings.errors


def _amounts(resources: kube.ResourceList) -> dict[str, int]:
    good: dict[str, int] = {}
    for name, text in resources.items():
        try:
            good[name] = amount(name, text)
        except QuantityError:
            # As if the kubelet had not reported it: nothing is placed on capacity that cannot be
            # counted.
            continue
    return good


def _check_group(findings: Findings, notes: dict[str, Any]) -> None:
    group = notes.get(annotations.GROUP_NAME)
    if isinstance(group, str) and not (len(group) <= 253 and _NAME.fullmatch(group)):
        findings.add(
            _path(annotations.GROUP_NAME),
            f'Invalid value: "{group[:100]}": '
            "must be the name of a PodGroup, a lowercase RFC 1123 subdomain",
        )
    size = notes.get(annotations.GROUP_MIN_MEMBER)
    if isinstance(size, str) and not (size.isascii() and size.isdigit() and 0 < len(size) < 10):
        findings.add(
            _path(annotations.GROUP_MIN_MEMBER),
            f'Invalid value: "{size[:100]}": must be a number of pods, 0 or more',
        )


def _check_disruption(findings: Findings, notes: dict[str, Any]) -> None:
    given = [key for key in _DISRUPTION_KEYS if key in notes]
    if len(given) > 1:
        findings.add(
            "metadata.annotations",
            f"not allow configure multiple annotations <[{' '.join(given)}]> at same time",
        )
    for key in given:
        objection = _disruption_objection(key, str(notes[key]))
        if objection:
            findings.add(_path(key), objection)


def _disruption_objection(key: str, text: str) -> str:
    """Volcano's rule, its quirk included: every % is cut out before the number is read."""
    digits = text.replace("%", "")
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", digits):
        return f'invalid value strconv.Atoi: parsing "{digits[:100]}": invalid syntax for {key}'
    number = int(digits)
    if "%" in text and not 1 <= number <= 99:
        rule = "it must be a valid percentage which between 1% ~ 99%"
        return f'invalid value <"{text}"> for {key}, {rule}'
    if "%" not in text and number <= 0:
        return f'invalid value <"{text}"> for {key}, it must be a positive integer'
    return ""


def _path(key: str) -> str:
    return f"metadata.annotations[{key}]"


KINDS: Final = (
    Kind(
        resource=PODS,
        neutral="pod",
        decoded=kube.Pod,
        read=read_pod,
        read_undecodable=read_undecodable_pod,
    ),
    Kind(
        resource=NODES,
        neutral="node",
        decoded=kube.Node,
        read=read_node,
        read_undecodable=read_undecodable_node,
    ),
    Kind(
        resource=PRIORITY_CLASSES,
        neutral="priorityclass",
        decoded=kube.PriorityClass,
        read=read_priority_class,
        read_undecodable=read_undecodable_priority_class,
    ),
    *reference_objects.KINDS,
    *storage.KINDS,
    *devices.KINDS,
    *pod_owners.KINDS,
)
