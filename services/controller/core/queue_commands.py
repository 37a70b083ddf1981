"""Which Commands on queues are carried out, and the policy by which the API server reviews their
creators. Pure.

A Command is namespaced and a queue is not: the right to create Commands, which a user needs for
Jobs, must not reach queues, and RBAC cannot distinguish them. So a ValidatingAdmissionPolicy has
the API server review each write of a Command on a queue: its user needs the right to `update` this
queue. The policy is evaluated in the API server, so no process of ours must run for it, and nothing
that a user writes into a Command can replace it. Only Commands that were created under the policy
are carried out, and those of namespaces that the operator names.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from shared.dialects.protocol import JsonObject
from shared.kinds.command import Command
from shared.kinds.queue import ROOT_QUEUE, Queue
from shared.kube.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    COMMANDS,
    QUEUES_VOLCANO,
    Resource,
)

#: Identifies the content of a stored object: a policy that differs is replaced.
DIGEST: Final = "tutti.dev/digest"
ACTIONS: Final = ("OpenQueue", "CloseQueue")

#: The write is about no queue; or it leaves the reviewed order as it is (a finalizer is removed);
#: or the user may update the queue.
_EXPRESSION: Final = f"""
!has(object.target) || object.target.kind != '{QUEUES_VOLCANO.kind}'
|| (request.operation == 'UPDATE' && has(oldObject.target) && oldObject.target == object.target
&& (has(oldObject.action) ? oldObject.action : '') == (has(object.action) ? object.action : ''))
|| authorizer.group('{QUEUES_VOLCANO.group}').resource('{QUEUES_VOLCANO.plural}')
.name(object.target.name).check('update').allowed()
""".strip().replace("\n", " ")
_RULE: Final = "a Command on a queue requires the right to update this queue"


def admission_policy(
    name: str, namespaces: Collection[str], owner: JsonObject | None
) -> tuple[tuple[Resource, JsonObject], ...]:
    """The policy and its binding.

    Args:
        name: Name of both.
        namespaces: Namespaces whose Commands are not reviewed.
        owner: Owner reference to the object with which garbage collection removes both.
    """
    rule = {
        "apiGroups": [COMMANDS.group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [COMMANDS.plural],
    }
    policy: JsonObject = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": _EXPRESSION, "message": _RULE, "reason": "Forbidden"}],
    }
    binding: JsonObject = {"policyName": name, "validationActions": ["Deny"]}
    if namespaces:
        unreviewed = {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": sorted(namespaces),
        }
        binding["matchResources"] = {"namespaceSelector": {"matchExpressions": [unreviewed]}}
    specs = ((ADMISSION_POLICIES, policy), (ADMISSION_POLICY_BINDINGS, binding))
    return tuple((resource, _manifest(resource, name, spec, owner)) for resource, spec in specs)


def _manifest(
    resource: Resource, name: str, spec: JsonObject, owner: JsonObject | None
) -> JsonObject:
    owners = [] if owner is None else [owner]
    digest = hashlib.sha256(msgspec.json.encode([spec, owners], order="sorted")).hexdigest()[:16]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "annotations": {DIGEST: digest},
            "ownerReferences": owners,
        },
        "spec": spec,
    }


def refusal(
    command: Command,
    queues: Mapping[str, Queue],
    reviewed_from_ms: int | None,
    namespaces: Collection[str],
) -> str:
    """The field and the rule by which a Command on a queue is not carried out; "": it is.

    Args:
        command: Its target is a queue.
        queues: All queues by name.
        reviewed_from_ms: The time from which the API server has reviewed all Commands; None: it
            does not review them.
        namespaces: Namespaces whose Commands need no review.
    """
    metadata, target = command.metadata, command.target
    if metadata.namespace not in namespaces:
        if reviewed_from_ms is None:
            return (
                f"metadata.namespace: {_RULE}, which this API server does not review "
                "(--queue-command-namespaces names the namespaces that need no review)"
            )
        if metadata.created_ms < reviewed_from_ms:
            return (
                f"metadata.creationTimestamp: {_RULE}, and this one is older than the policy that "
                "reviews it: create it again"
            )
    queue = queues.get(target.name) if target is not None else None
    if target is None or queue is None:
        return "target.name: there is no queue of this name"
    if target.uid not in ("", queue.metadata.uid):
        return "target.uid: the queue of this name is another one"
    if command.action not in ACTIONS:
        return f"action: of a queue, one of {', '.join(ACTIONS)}"
    if command.action == "CloseQueue" and target.name == ROOT_QUEUE:
        return f"action: the queue {ROOT_QUEUE} is never closed"
    return ""
