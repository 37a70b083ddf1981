"""Volcano's dialect: scheduling.volcano.sh/v1beta1 PodGroup and Queue, and its pods' annotations.

Its PodGroup has no status subresource: status and annotations travel in one patch of the main
resource. Its operators create pods only once the group has left Pending, so an admitted group is
set Inqueue before its pods exist (`waits_for_inqueue`).

`checks` report at creation the violations that Volcano's schema and webhooks report after
defaulting (a weight of 0 has become 1), and no others: a negative minTaskMember is admitted, and
the group's condition reports that it cannot be planned. Volcano's webhooks do not validate updates
of a PodGroup; a caller that validates them here is stricter.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from shared.contracts.annotations import QUEUE_NAME, TASK_INDEX, TASK_SPEC
from shared.contracts.verdicts import GangPhase
from shared.dialects import kubebatch_fields as fields
from shared.dialects.field_checks import INT32_MAX, Findings, amount_of, shown
from shared.dialects.ignored_fields import ignored, ignored_marks
from shared.dialects.protocol import (
    Dialect,
    FieldError,
    JsonObject,
    PodKeys,
    Scheduler,
    Status,
)
from shared.dialects.reference_objects import workload_kind
from shared.dialects.settings import check_settings
from shared.kinds.podgroup import PHASES
from shared.kinds.queue import STATES
from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO, QUEUES_VOLCANO

NAME: Final = "volcano"

_PHASES: Final[dict[GangPhase, str]] = {
    "Pending": "Pending",
    "Inqueue": "Inqueue",
    # Decided, but the quorum is not placed yet: in Volcano's phases it still waits.
    "Starting": "Inqueue",
    "Running": "Running",
    "Unknown": "Unknown",
    "Completed": "Completed",
}
#: Annotations by which a Job's pods declare how many of them may be disrupted.
_DISRUPTION_KEYS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")


def _pod_group_errors(candidate: JsonObject) -> list[FieldError]:
    findings, spec = fields.check_pod_group(candidate)
    findings.counts(spec, "spec.minTaskMember")
    if spec.get("queue") == "":
        findings.add("spec.queue", 'Invalid value: "": must be the name of a queue')
    _check_topology(findings, spec, "spec.networkTopology", "")
    for path, policy in findings.items(spec, "spec.subGroupPolicy"):
        findings.text(policy, f"{path}.name")
        findings.integer(policy, f"{path}.subGroupSize", minimum=1)
        findings.integer(policy, f"{path}.minSubGroups", minimum=0)
        _check_topology(
            findings,
            policy,
            f"{path}.networkTopology",
            f"in subGroupPolicy '{str(policy.get('name', ''))[:100]}': ",
        )
    findings.choice(findings.section(candidate, "status"), "status.phase", PHASES)
    return findings.errors


def _check_topology(findings: Findings, parent: JsonObject, path: str, where: str) -> None:
    topology = findings.section(parent, path)
    findings.choice(topology, f"{path}.mode", ("hard", "soft"))
    findings.integer(topology, f"{path}.highestTierAllowed", minimum=0)
    findings.text(topology, f"{path}.highestTierName")
    if topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        findings.add(
            path,
            f"{where}must not specify 'highestTierAllowed' and 'highestTierName' "
            "in networkTopology simultaneously.",
        )


def _queue_errors(candidate: JsonObject) -> list[FieldError]:
    findings = Findings()
    metadata = findings.section(candidate, "metadata")
    spec = findings.section(candidate, "spec")
    findings.integer(spec, "spec.weight", minimum=1, maximum=65535)
    findings.integer(spec, "spec.priority", minimum=0)
    findings.boolean(spec, "spec.reclaimable")
    findings.text(spec, "spec.type")
    findings.choice(spec, "spec.dequeueStrategy", ("fifo", "traverse"))
    parent = findings.text(spec, "spec.parent")
    if parent and parent == metadata.get("name"):
        findings.add("spec.parent", f"queue {parent} cannot use itself as parent")
    _check_amounts(findings, spec)
    for path, cluster in findings.items(spec, "spec.extendClusters"):
        findings.text(cluster, f"{path}.name")
        findings.integer(cluster, f"{path}.weight", maximum=INT32_MAX)
    check_settings(findings, candidate, on_queue=True)
    _check_hierarchy(findings, findings.section(metadata, "metadata.annotations"))
    findings.choice(findings.section(candidate, "status"), "status.state", STATES)
    return findings.errors


def _check_amounts(findings: Findings, spec: JsonObject) -> None:
    """Each amount, and guarantee <= deserved <= capability for every key that both have."""
    capability = findings.quantities(spec, "spec.capability", amount_of)
    deserved = findings.quantities(spec, "spec.deserved", amount_of)
    guaranteed = findings.section(spec, "spec.guarantee")
    guarantee = findings.quantities(guaranteed, "spec.guarantee.resource", amount_of)
    unreported = Findings()  # values that are no objects have been reported above
    texts = {
        "capability": unreported.section(spec, "spec.capability"),
        "deserved": unreported.section(spec, "spec.deserved"),
        "guarantee": unreported.section(guaranteed, "spec.guarantee.resource"),
    }
    for key, amount in deserved.items():
        if amount > capability.get(key, amount):
            _add_order(findings, key, texts, "<=", "capability")
    for key, amount in guarantee.items():
        if key not in texts["deserved"]:
            findings.add(
                f"spec.deserved.{key}",
                f'Invalid value: "<nil>": deserved[{key}] must be >= '
                f"guarantee[{key}]={texts['guarantee'][key]}",
            )
        elif amount > deserved.get(key, amount):
            _add_order(findings, key, texts, ">=", "guarantee")


def _add_order(
    findings: Findings, key: str, texts: dict[str, JsonObject], order: str, other: str
) -> None:
    ours, theirs = texts["deserved"][key], texts[other][key]
    findings.add(
        f"spec.deserved.{key}",
        f'Invalid value: "{ours}": deserved[{key}]={ours} must be {order} {other}[{key}]={theirs}',
    )


def _check_hierarchy(findings: Findings, given: JsonObject) -> None:
    path, weights = given.get(fields.HIERARCHY, ""), given.get(fields.HIERARCHY_WEIGHTS, "")
    if not isinstance(path, str) or not isinstance(weights, str) or path == weights == "":
        return
    if len(path.split("/")) != len(weights.split("/")) or not (path and weights):
        findings.add(
            "metadata.annotations",
            f"Invalid value: {shown(path)}: "
            f"{fields.HIERARCHY} must have the same length with {fields.HIERARCHY_WEIGHTS}",
        )
    for objection in _weight_objections(weights):
        findings.add("metadata.annotations", f"Invalid value: {shown(weights)}: {objection}")


def _weight_objections(weights: str) -> Iterator[str]:
    for weight in weights.split("/") if weights else ():
        try:
            number = float(weight)
        except ValueError:
            yield f"{weight[:50]} in the {weights[:100]} is invalid number"
            continue
        if not number > 0:
            yield f"{weight[:50]} in the {weights[:100]} must be larger than 0"


def _pod_errors(candidate: JsonObject) -> list[FieldError]:
    findings = Findings()
    # The dialect that reads the group's name has reported values that are no objects.
    metadata = Findings().section(candidate, "metadata")
    annotations = Findings().section(metadata, "metadata.annotations")
    given = [key for key in _DISRUPTION_KEYS if key in annotations]
    if len(given) > 1:
        findings.add(
            "metadata.annotations",
            f"not allow configure multiple annotations <[{' '.join(given)}]> at same time",
        )
    for key in given:
        objection = _disruption_objection(key, str(annotations[key]))
        if objection:
            findings.add(f"metadata.annotations[{key}]", objection)
    return findings.errors


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


DIALECT: Final = Dialect(
    name=NAME,
    precedence=10,
    kinds=(
        *fields.kinds_of_groups(
            NAME,
            PODGROUPS_VOLCANO,
            QUEUES_VOLCANO,
            with_volcano_fields=True,
            status=Status(body=partial(fields.group_status, _PHASES), at=""),
        ),
        workload_kind(JOBS_VOLCANO),
    ),
    checks={"PodGroup": _pod_group_errors, "Queue": _queue_errors, "Pod": _pod_errors},
    schedulers=(Scheduler(name="volcano"),),
    role=PodKeys(annotations=(TASK_SPEC,), labels=(TASK_SPEC,)),
    index=PodKeys(annotations=(TASK_INDEX,), labels=(TASK_INDEX,)),
    queue=PodKeys(annotations=(QUEUE_NAME,)),
    ignored=(
        *ignored("Queue", "gangs are placed in one cluster", "spec.extendClusters"),
        *ignored("Queue", "no scheduler reads it", "spec.type"),
        *ignored_marks(
            "annotations",
            "the kubelet's topology manager places pods on NUMA nodes",
            "volcano.sh/numa-topology-policy",
        ),
        *ignored_marks("annotations", "only Volcano's node agent reads it", "volcano.sh/qos-level"),
    ),
)
