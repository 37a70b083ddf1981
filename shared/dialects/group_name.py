"""The annotation by which the pods of kube-batch, Volcano and their heirs name their PodGroup.

One annotation names the PodGroups of three API groups; a pod that has it is a member also without a
PodGroup. kube-batch's pods may have the gang's size in an annotation, too.
"""

import re
from typing import Final

from shared.contracts import annotations
from shared.dialects.field_checks import Findings
from shared.dialects.protocol import Dialect, FieldError, GroupReference, JsonObject, PodKeys

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _pod_errors(candidate: JsonObject) -> list[FieldError]:
    """Violations of the group's name and of the gang's size.

    The webhook asks only for pods of our schedulers and pods that name a group.
    """
    findings = Findings()
    metadata = findings.section(candidate, "metadata")
    given = findings.section(metadata, "metadata.annotations")
    group = given.get(annotations.GROUP_NAME)
    if isinstance(group, str) and not (len(group) <= 253 and _NAME.fullmatch(group)):
        findings.add(
            f"metadata.annotations[{annotations.GROUP_NAME}]",
            f'Invalid value: "{group[:100]}": '
            "must be the name of a PodGroup, a lowercase RFC 1123 subdomain",
        )
    size = given.get(annotations.GROUP_MIN_MEMBER)
    if isinstance(size, str) and not (size.isascii() and size.isdigit() and 0 < len(size) < 10):
        findings.add(
            f"metadata.annotations[{annotations.GROUP_MIN_MEMBER}]",
            f'Invalid value: "{size[:100]}": must be a number of pods, 0 or more',
        )
    return findings.errors


DIALECT: Final = Dialect(
    name="group_name",
    precedence=0,
    checks={"Pod": _pod_errors},
    references=(
        GroupReference(
            place="annotation", key=annotations.GROUP_NAME, declared_by="kube-batch and Volcano"
        ),
    ),
    kube_scheduler_ignores=True,
    min_member=PodKeys(annotations=(annotations.GROUP_MIN_MEMBER,)),
)
