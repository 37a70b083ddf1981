"""The webhook configurations that are registered with the API server, made from `kinds`.

One pair of objects, `tutti-admission` by default, stands for all replicas. Which replica belongs to
it is written on it (`MEMBERS`), so that the last one that leaves takes it away, and one that was
killed can be distinguished from one that lives.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from services.admission_webhook.core.kinds import GUARDED, Guarded
from services.admission_webhook.core.resource_groups import ResourceGroups
from shared.dialects.protocol import JsonObject

NAME: Final = "tutti-admission"
LABELS: Final = {"app.kubernetes.io/managed-by": "tutti"}
#: Annotation: the members, as JSON.
MEMBERS: Final = "tutti.dev/webhook-members"
#: Annotation: digest of what was written, to see without comparing defaults whether it is current.
DIGEST: Final = "tutti.dev/webhook-digest"
#: Label of the object that a probe creates, and of the probe's configuration.
PROBE: Final = "tutti.dev/webhook-probe"
#: Seconds that the API server waits for an answer. We answer in milliseconds.
TIMEOUT_S: Final = 3
MUTATE_PATH: Final = "/mutate"
VALIDATE_PATH: Final = "/validate"
PROBE_PATH: Final = "/probe"
#: Where Volcano's own configurations send their reviews. What is asked is in the review, so that
#: one function answers on all of them.
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
#: In the place of a kind, in the name of the webhook for what is only tried.
_TRIED: Final = "dry-run"
_PATH_OF: Final[Mapping[Phase, str]] = {"mutate": MUTATE_PATH, "validate": VALIDATE_PATH}


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server finds the webhook: by URL, or behind a Service (`url` "" then)."""

    url: str = ""
    service_namespace: str = ""
    service_name: str = ""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One replica: where it is, and the CA (PEM) that signed its certificate."""

    address: Address
    ca: str


Members = dict[str, Member]
"""Members by identity."""


class _Noted(msgspec.Struct, frozen=True):
    members: Members


def read_members(annotations: Mapping[str, str]) -> Members:
    """The members noted on a configuration; none when there is no note that makes sense."""
    try:
        return msgspec.json.decode(annotations.get(MEMBERS, ""), type=_Noted).members
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
) -> JsonObject:
    """The whole object of one phase.

    Args:
        phase: Which of the two.
        members: All replicas; the API server is configured to trust each one's CA.
        address: Where they are found.
        scheduler_names: Names of schedulers that we are.
        with_conditions: False for an API server that knows no CEL: it sends more than is ours.
        groups: Resource groups; their pods are sent to get what they say.
        name: Of the object.
        owner: Owner reference: whose deletion is to take it away.
    """
    names = scheduler_names if with_conditions else None
    client = _client(_PATH_OF[phase], address, (member.ca for member in members.values()))
    webhooks = [
        _webhook(phase, kind, guarded, client, names, groups)
        for kind, guarded in _by_kind(phase, groups, with_conditions=with_conditions).items()
    ]
    noted = msgspec.json.encode(_Noted(dict(sorted(members.items())))).decode()
    owners = [owner] if owner is not None else []
    digest = hashlib.sha256(msgspec.json.encode([webhooks, noted, *owners])).hexdigest()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": KIND_OF[phase],
        "metadata": {
            "name": name,
            "labels": LABELS,
            "annotations": {MEMBERS: noted, DIGEST: digest},
            **({"ownerReferences": owners} if owners else {}),
        },
        "webhooks": webhooks,
    }


def probe_configuration(name: str, nonce: str, address: Address, cas: Iterable[str]) -> JsonObject:
    """A configuration that sends us the creation of one ConfigMap, the one labelled with `nonce`.

    It can do no harm: no other object has that label, and a failing call is ignored.
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
    """The ConfigMap whose creation (never more than tried, by dry-run) the probe looks for."""
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


def _by_kind(
    phase: Phase, groups: ResourceGroups, *, with_conditions: bool
) -> dict[str, list[Guarded]]:
    """What the phase looks at, by Kubernetes kind: each is one webhook, and one is for all that is
    only tried. Without conditions all of that would be sent whenever anybody creates it.
    """
    found: dict[str, list[Guarded]] = {}
    for guarded in GUARDED:
        if guarded.only_tried:
            if phase == "validate" and with_conditions:
                found.setdefault(_TRIED, []).append(guarded)
            continue
        member = guarded.membership is None or guarded.membership(groups)
        if phase == "validate" or (guarded.mutate is not None and member):
            found.setdefault(guarded.resource.kind, []).append(guarded)
    return found


def _conditions(
    phase: Phase, guarded: list[Guarded], names: tuple[str, ...], groups: ResourceGroups
) -> dict[str, str]:
    """CEL by name: what is not ours is not sent."""
    found: dict[str, str] = {}
    for one in guarded:
        if phase == "mutate" and one.membership is not None:
            found["belongs-to-a-resource-group"] = one.membership(groups)
        else:
            found.update(one.conditions(names))
    return found


def _webhook(
    phase: Phase,
    kind: str,
    guarded: list[Guarded],
    client: JsonObject,
    scheduler_names: tuple[str, ...] | None,
    groups: ResourceGroups,
) -> JsonObject:
    conditions = (
        {} if scheduler_names is None else _conditions(phase, guarded, scheduler_names, groups)
    )
    webhook: JsonObject = {
        **_FIXED,
        "name": f"{phase}-{kind.lower()}.tutti.dev",
        "clientConfig": client,
        "timeoutSeconds": TIMEOUT_S,
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["kube-system"],
                }
            ]
        },
        "objectSelector": {},
        "rules": [
            _rule(
                one.resource.group,
                one.resource.version,
                one.resource.plural,
                one.operations if phase == "validate" else ("CREATE",),
                namespaced=one.resource.namespaced,
            )
            for one in guarded
        ],
    }
    if phase == "mutate":
        webhook["reinvocationPolicy"] = "Never"
    if conditions:
        webhook["matchConditions"] = [
            {"name": name, "expression": expression} for name, expression in conditions.items()
        ]
    return webhook


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
