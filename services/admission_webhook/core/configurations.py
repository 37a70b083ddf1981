"""The webhook configurations that are registered with the API server, made from `kinds.RULES`.

All replicas share one pair of objects, by default named `tutti-admission`. Its annotation `MEMBERS`
lists the replicas, so that the last one that leaves deletes the objects, and entries of killed
replicas can be found.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from services.admission_webhook.core.opt_in import opt_in_conditions, opt_in_owned_conditions
from shared.admission.kinds import RULES
from shared.admission.resource_groups import ResourceGroups
from shared.admission.rules import Conditions, KindRules
from shared.dialects.protocol import JsonObject
from shared.dialects.scheduler_choice import (
    EXCLUDED_NAMESPACES,
    NAMESPACE_LABELS,
    NAMESPACE_LABELS_FOR_OWNED,
)
from shared.kube.resources import PODS

NAME: Final = "tutti-admission"
LABELS: Final = {"app.kubernetes.io/managed-by": "tutti"}
#: Annotation: the members, as JSON.
MEMBERS: Final = "tutti.dev/webhook-members"
#: Annotation: digest of the written content. It shows whether the content is current without a
#: comparison of the fields that the API server defaults.
DIGEST: Final = "tutti.dev/webhook-digest"
#: Label of a probe's ConfigMap and of its configuration.
PROBE: Final = "tutti.dev/webhook-probe"
#: Seconds that the API server waits for an answer, which mostly takes milliseconds.
TIMEOUT_S: Final = 3
MUTATE_PATH: Final = "/mutate"
VALIDATE_PATH: Final = "/validate"
OPT_IN_PATH: Final = "/opt-in"
OPT_IN_OWNED_PATH: Final = "/opt-in-owned"
PROBE_PATH: Final = "/probe"
#: The paths in Volcano's own configurations. The review names the resource, so that one handler
#: serves all of them.
VOLCANO_MUTATE_PATHS: Final = tuple(
    f"/{kind}/mutate" for kind in ("jobs", "pods", "podgroups", "queues")
)
VOLCANO_VALIDATE_PATHS: Final = tuple(
    f"/{kind}/validate"
    for kind in ("jobs", "pods", "podgroups", "queues", "jobflows", "hypernodes", "cronjobs")
)

Phase = Literal["mutate", "validate"]
KIND_OF: Final[Mapping[Phase, str]] = {
    "mutate": "MutatingWebhookConfiguration",
    "validate": "ValidatingWebhookConfiguration",
}
#: Part of the name of the webhook for advisory kinds, in place of one kind.
_ADVISORY: Final = "dry-run"
_PATH_OF: Final[Mapping[Phase, str]] = {"mutate": MUTATE_PATH, "validate": VALIDATE_PATH}


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The webhook's address for the API server: a URL, or a Service (then `url` is "")."""

    url: str = ""
    service_namespace: str = ""
    service_name: str = ""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One replica: its address, and the CA (PEM) that signed its certificate."""

    address: Address
    ca: str


Members = dict[str, Member]
"""Members by identity."""


class _MemberList(msgspec.Struct, frozen=True):
    members: Members


def read_members(annotations: Mapping[str, str]) -> Members:
    """The members of a configuration; none when its annotation is absent or malformed."""
    try:
        return msgspec.json.decode(annotations.get(MEMBERS, ""), type=_MemberList).members
    except msgspec.MsgspecError:
        return {}


def configuration(
    phase: Phase,
    members: Members,
    address: Address,
    scheduler_names: tuple[str, ...],
    *,
    with_conditions: bool = True,
    groups: ResourceGroups = (),
    name: str = NAME,
    owner: JsonObject | None = None,
    opt_in: bool = True,
) -> JsonObject:
    """The whole object of one phase.

    Args:
        phase: The mutating or the validating configuration.
        members: All replicas; the API server trusts the CA of each.
        address: The address of all of them.
        scheduler_names: The scheduler names that Tutti serves.
        with_conditions: False for an API server without CEL; it then sends all objects.
        groups: Resource groups, whose pods get defaults.
        name: Name of the object.
        owner: Owner reference to the object with which garbage collection removes this one.
        opt_in: Whether namespaces may opt in. An API server without CEL would send all of their
            pods, so with it they may not.
    """
    names = scheduler_names if with_conditions else None
    cas = [member.ca for member in members.values()]
    client = _client(_PATH_OF[phase], address, cas)
    webhooks = [
        _webhook(phase, kind, rules, client, names, groups)
        for kind, rules in _by_kind(phase, groups, with_conditions=with_conditions).items()
    ]
    if phase == "mutate" and opt_in and with_conditions:
        webhooks += _opt_in_webhooks(address, cas, scheduler_names)
    return _object(phase, webhooks, members, name, owner)


def closed_configuration(
    left: Member,
    scheduler_names: tuple[str, ...],
    *,
    name: str = NAME,
    owner: JsonObject | None,
) -> JsonObject:
    """The mutating configuration after the last replica has left: namespaces that opted in stay
    closed for pods of gangs until a replica is back, or the owner is deleted.

    Args:
        left: The replica that left.
        scheduler_names: As for `configuration`.
        name: Likewise.
        owner: Likewise.
    """
    webhooks = _opt_in_webhooks(left.address, [left.ca], scheduler_names)
    return _object("mutate", webhooks, {}, name, owner)


def _object(
    phase: Phase, webhooks: list[JsonObject], members: Members, name: str, owner: JsonObject | None
) -> JsonObject:
    member_list = msgspec.json.encode(_MemberList(dict(sorted(members.items())))).decode()
    owners = [owner] if owner is not None else []
    digest = hashlib.sha256(msgspec.json.encode([webhooks, member_list, *owners])).hexdigest()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": KIND_OF[phase],
        "metadata": {
            "name": name,
            "labels": LABELS,
            "annotations": {MEMBERS: member_list, DIGEST: digest},
            **({"ownerReferences": owners} if owners else {}),
        },
        "webhooks": webhooks,
    }


def probe_configuration(name: str, nonce: str, address: Address, cas: Iterable[str]) -> JsonObject:
    """A configuration for the creation of the ConfigMap with the label value `nonce`.

    It does no harm: no other object has that label, and a failing call is ignored.
    """
    webhook: JsonObject = {
        **_FIXED,
        "name": "probe.tutti.dev",
        "clientConfig": _client(PROBE_PATH, address, cas),
        "timeoutSeconds": 1,
        "objectSelector": {"matchLabels": {PROBE: nonce}},
        "reinvocationPolicy": "Never",
        "rules": [_rule("", "v1", "configmaps", ("CREATE",), namespaced=True)],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": KIND_OF["mutate"],
        "metadata": {"name": name, "labels": {**LABELS, PROBE: nonce}},
        "webhooks": [webhook],
    }


def probe_object(nonce: str) -> JsonObject:
    """The ConfigMap for the probe, whose creation is only tried (a dry run)."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"tutti-webhook-probe-{nonce}", "labels": {PROBE: nonce}},
    }


_FIXED: Final[Mapping[str, Any]] = {
    "admissionReviewVersions": ["v1"],
    "failurePolicy": "Ignore",
    "matchPolicy": "Equivalent",
    "sideEffects": "None",
}


_NOT_KUBE_SYSTEM: Final[Mapping[str, Any]] = {
    "key": "kubernetes.io/metadata.name",
    "operator": "NotIn",
    "values": list(EXCLUDED_NAMESPACES),
}


def _by_kind(
    phase: Phase, groups: ResourceGroups, *, with_conditions: bool
) -> dict[str, list[KindRules]]:
    """The rules of a phase by Kubernetes kind, each of which is one webhook; one more webhook has
    all advisory kinds. It is left out without conditions, since the API server would then send each
    creation of these kinds.
    """
    by_kind: dict[str, list[KindRules]] = {}
    for rules in RULES:
        if rules.is_advisory:
            if phase == "validate" and with_conditions:
                by_kind.setdefault(_ADVISORY, []).append(rules)
            continue
        member = rules.membership is None or rules.membership(groups)
        if phase == "validate" or (rules.defaults is not None and member):
            by_kind.setdefault(rules.resource.kind, []).append(rules)
    return by_kind


def _conditions(
    phase: Phase, rules: list[KindRules], names: tuple[str, ...], groups: ResourceGroups
) -> dict[str, str]:
    conditions: dict[str, str] = {}
    for of_kind in rules:
        if phase == "mutate" and of_kind.membership is not None:
            conditions["belongs-to-a-resource-group"] = of_kind.membership(groups)
        else:
            conditions.update(of_kind.conditions(names))
    return conditions


def _webhook(
    phase: Phase,
    kind: str,
    rules: list[KindRules],
    client: JsonObject,
    scheduler_names: tuple[str, ...] | None,
    groups: ResourceGroups,
) -> JsonObject:
    conditions = (
        {} if scheduler_names is None else _conditions(phase, rules, scheduler_names, groups)
    )
    webhook: JsonObject = {
        **_FIXED,
        "name": f"{phase}-{kind.lower()}.tutti.dev",
        "clientConfig": client,
        "timeoutSeconds": TIMEOUT_S,
        "namespaceSelector": {"matchExpressions": [_NOT_KUBE_SYSTEM]},
        "objectSelector": {},
        "rules": [
            _rule(
                of_kind.resource.group,
                of_kind.resource.version,
                of_kind.resource.plural,
                of_kind.operations if phase == "validate" else ("CREATE",),
                namespaced=of_kind.resource.namespaced,
            )
            for of_kind in rules
        ],
    }
    if phase == "mutate":
        webhook["reinvocationPolicy"] = "Never"
    if conditions:
        webhook["matchConditions"] = _match_conditions(conditions.items())
    return webhook


def _opt_in_webhooks(
    address: Address, cas: list[str], scheduler_names: tuple[str, ...]
) -> list[JsonObject]:
    """The webhooks for pods of namespaces that opted in: for pods that declare a gang, and, where
    the namespace asks for it, for pods of operators' objects. They fail closed: without an answer
    another scheduler would bind pods of a gang one by one.
    """
    return [
        _opt_in_webhook(name, _client(path, address, cas), labels, conditions)
        for name, path, labels, conditions in (
            ("opt-in", OPT_IN_PATH, NAMESPACE_LABELS, opt_in_conditions(scheduler_names)),
            (
                "opt-in-owned",
                OPT_IN_OWNED_PATH,
                NAMESPACE_LABELS_FOR_OWNED,
                opt_in_owned_conditions(),
            ),
        )
    ]


def _opt_in_webhook(
    name: str, client: JsonObject, labels: Mapping[str, str], conditions: Conditions
) -> JsonObject:
    return {
        **_FIXED,
        "failurePolicy": "Fail",
        "name": f"{name}.tutti.dev",
        "clientConfig": client,
        "timeoutSeconds": TIMEOUT_S,
        "namespaceSelector": {"matchLabels": labels, "matchExpressions": [_NOT_KUBE_SYSTEM]},
        "objectSelector": {},
        # Another webhook may set the scheduler name afterwards.
        "reinvocationPolicy": "IfNeeded",
        "matchConditions": _match_conditions(conditions),
        "rules": [_rule(PODS.group, PODS.version, PODS.plural, ("CREATE",), namespaced=True)],
    }


def _match_conditions(conditions: Iterable[tuple[str, str]]) -> list[JsonObject]:
    return [{"name": name, "expression": expression} for name, expression in conditions]


def _rule(
    group: str, version: str, plural: str, operations: tuple[str, ...], *, namespaced: bool
) -> JsonObject:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [plural],
        "operations": list(operations),
        "scope": "Namespaced" if namespaced else "Cluster",
    }


def _client(path: str, address: Address, cas: Iterable[str]) -> JsonObject:
    bundle = "\n".join(sorted({ca.strip() for ca in cas})) + "\n"
    trust = {"caBundle": base64.b64encode(bundle.encode()).decode()}
    if address.url:
        return {**trust, "url": f"{address.url.rstrip('/')}{path}"}
    service = {
        "namespace": address.service_namespace,
        "name": address.service_name,
        "path": path,
        "port": 443,
    }
    return {**trust, "service": service}
