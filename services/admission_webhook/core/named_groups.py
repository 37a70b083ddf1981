"""The PodGroup that a user's pod or workload names, and the warning when there is none.

Pods that a controller creates are left out: no user reads the warnings about them, and they are
nearly all pods.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from shared.admission import names
from shared.admission.admission import Subject
from shared.admission.gang_declarations import read_declaration
from shared.admission.parts import (
    as_object,
    member,
    text_at,
)
from shared.admission.suggestions import one_typing_error_apart
from shared.admission.warnings import has_controller
from shared.contracts.reasons import GroupMissing, in_words
from shared.kube.resources import DEPLOYMENTS, JOBS_BATCH, PODS, REPLICA_SETS, STATEFUL_SETS
from shared.model.gang_keys import has_objects
from shared.model.objects import GROUP_NAME_SCOPE

#: Workloads whose controllers create pods of `spec.template` and no PodGroup.
TEMPLATED: Final = frozenset({DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, JOBS_BATCH})


class NamedGroup(NamedTuple):
    """A group that pods name, and that must exist before they are placed."""

    namespace: str
    name: str
    #: What waits until the group exists: "the pod waits".
    consequence: str
    dry_run: bool = False
    #: Only the objects of dialects of this scope count.
    scope: str = GROUP_NAME_SCOPE


def named_group(subject: Subject, *, dry_run: bool = False) -> NamedGroup | None:
    """The group that an object names which a user creates; None when there is none to look up."""
    rules, case = subject
    if rules.resource == PODS:
        pod, consequence = case.candidate, "the pod waits"
    elif rules.resource in TEMPLATED:
        pod = as_object(member(case.candidate, "spec", "template")) or {}
        consequence = "its pods wait"
    else:
        return None
    if case.operation != "CREATE" or has_controller(case.candidate):
        return None
    if text_at(pod, "spec", "schedulerName") not in case.known.scheduler_names:
        return None
    declared, _ = read_declaration(pod)
    if declared is None or declared.self_declared:
        return None
    if not has_objects(declared.scope):
        # Another pod declares it, such as the driver of an application.
        return None
    # No object can have another name, and the names become parts of a path.
    if names.subdomain(declared.group_name) or names.label(case.namespace):
        return None
    return NamedGroup(case.namespace, declared.group_name, consequence, dry_run, declared.scope)


def missing_group_warning(named: NamedGroup, existing: Iterable[str]) -> str:
    """The warning about a group that does not exist.

    Args:
        named: The group.
        existing: Names of groups in its namespace. One is suggested only if it differs by a single
            typing error: a sender of forged reviews learns no name that it does not know already.
    """
    near = min((name for name in existing if one_typing_error_apart(name, named.name)), default="")
    hint = f' (did you mean "{near}"?)' if near else ""
    # Also not if its manifest stands before the pod's in the same file.
    uncreated = ", and a dry run creates none" if named.dry_run else ""
    words = in_words(GroupMissing(named.scope, named.namespace, named.name))
    return f"tutti: {words}{hint}{uncreated}; {named.consequence} until it is created"
