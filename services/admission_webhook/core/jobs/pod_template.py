"""Kubernetes' rules for a pod template: a Job whose pods the API server would refuse is refused.

Without these rules only the Job controller would see the refusals, not the author of the Job. They
are the rules that manifests violate in practice; fields unknown here pass. `containers` has those
for containers.
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from services.admission_webhook.core import names
from services.admission_webhook.core.field_errors import forbidden, invalid, not_supported, required
from services.admission_webhook.core.jobs.containers import PodReferences, container_errors
from services.admission_webhook.core.parts import as_int, as_list, as_object, objects_at, text_at
from shared.dialects.field_checks import INT32_MAX
from shared.dialects.protocol import FieldError, JsonObject

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def template_errors(template: JsonObject) -> Iterator[FieldError]:
    """Every violation that the CRD's schema does not refuse; paths begin at `template`."""
    metadata = as_object(template.get("metadata")) or {}
    yield from _labels(metadata, "labels", "template.labels")
    for key in as_object(metadata.get("annotations")) or {}:
        yield from _objection("template.annotations", key, names.qualified(key.lower()))
    spec = as_object(template.get("spec")) or {}
    path = "template.spec"
    yield from _volumes(spec, path)
    yield from container_errors(_references(spec), spec, path)
    yield from _pod_fields(spec, path)
    yield from _tolerations(spec, path)
    yield from _affinity(spec, path)
    yield from _spread(spec, path)
    yield from _node_fields(spec, path)


def _references(spec: JsonObject) -> PodReferences:
    return PodReferences(
        volumes=frozenset(text_at(one, "name") for _, one in objects_at(spec, "volumes")),
        claims=frozenset(text_at(one, "name") for _, one in objects_at(spec, "resourceClaims")),
        host_network=spec.get("hostNetwork") is True,
    )


def _objection(path: str, value: str, objection: str) -> Iterator[FieldError]:
    """Nothing for an empty objection, as `names` returns for a valid name."""
    if objection:
        yield invalid(path, value, objection)


def _labels(parent: JsonObject, key: str, path: str) -> Iterator[FieldError]:
    for name, value in (as_object(parent.get(key)) or {}).items():
        yield from _objection(path, name, names.qualified(name))
        if isinstance(value, str):
            yield from _objection(path, value, names.label_value(value))


def _volumes(spec: JsonObject, path: str) -> Iterator[FieldError]:
    for where, volume in objects_at(spec, f"{path}.volumes"):
        name = text_at(volume, "name")
        if name:
            yield from _objection(f"{where}.name", name, names.label(name))
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        for extra in sources[1:]:
            yield forbidden(f"{where}.{extra}", "may not specify more than 1 volume type")


def _pod_fields(spec: JsonObject, path: str) -> Iterator[FieldError]:
    policy = text_at(spec, "restartPolicy")
    if policy and policy not in _RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    policy = text_at(spec, "dnsPolicy")
    if policy and policy not in _DNS_POLICIES:
        yield not_supported(f"{path}.dnsPolicy", policy, _DNS_POLICIES)
    yield from _labels(spec, "nodeSelector", f"{path}.nodeSelector")
    hostname, subdomain = text_at(spec, "hostname"), text_at(spec, "subdomain")
    if hostname:
        yield from _objection(f"{path}.hostname", hostname, names.label(hostname))
    if "." in subdomain:
        yield from _objection(f"{path}.subdomain", subdomain, "must not contain dots")
    elif subdomain:
        yield from _objection(f"{path}.subdomain", subdomain, names.label(subdomain))
    account = text_at(spec, "serviceAccountName")
    if account:
        yield from _objection(f"{path}.serviceAccountName", account, names.subdomain(account))
    if as_list(spec.get("ephemeralContainers")):
        yield forbidden(
            f"{path}.ephemeralContainers", "ephemeral containers not allowed in pod template"
        )


def _node_fields(spec: JsonObject, path: str) -> Iterator[FieldError]:
    deadline = as_int(spec.get("activeDeadlineSeconds"))
    if deadline is not None and not 1 <= deadline <= INT32_MAX:
        yield invalid(
            f"{path}.activeDeadlineSeconds",
            deadline,
            f"must be between 1 and {INT32_MAX}, inclusive",
        )
    for where, alias in objects_at(spec, f"{path}.hostAliases"):
        address = text_at(alias, "ip")
        try:
            ipaddress.ip_address(address)
        except ValueError:
            yield from _objection(
                f"{where}.ip",
                address,
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            )
    security = as_object(spec.get("securityContext")) or {}
    for where, sysctl in objects_at(security, f"{path}.securityContext.sysctls"):
        name = text_at(sysctl, "name")
        if not _SYSCTL.fullmatch(name) or len(name) > names.SUBDOMAIN_MAX:
            yield from _objection(
                f"{where}.name",
                name,
                "must have at most 253 characters and match regex "
                r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            )


def _tolerations(spec: JsonObject, path: str) -> Iterator[FieldError]:
    for where, toleration in objects_at(spec, f"{path}.tolerations"):
        key, value = text_at(toleration, "key"), text_at(toleration, "value")
        operator, effect = text_at(toleration, "operator"), text_at(toleration, "effect")
        if key:
            yield from _objection(f"{where}.key", key, names.qualified(key))
        elif operator != "Exists":
            yield from _objection(
                f"{where}.operator",
                operator,
                "operator must be Exists when `key` is empty, which means "
                '"match all values and all keys"',
            )
        if operator == "Exists" and value:
            yield from _objection(
                f"{where}.operator", value, "value must be empty when `operator` is 'Exists'"
            )
        elif operator not in {"", "Equal", "Exists", "Lt", "Gt"}:
            yield not_supported(f"{where}.operator", operator, ("Equal", "Exists"))
        if effect and effect not in _EFFECTS:
            yield not_supported(f"{where}.effect", effect, _EFFECTS)


def _affinity(spec: JsonObject, path: str) -> Iterator[FieldError]:
    affinity = as_object(spec.get("affinity")) or {}
    node = as_object(affinity.get("nodeAffinity")) or {}
    where = f"{path}.affinity.nodeAffinity"
    selector = as_object(node.get(_REQUIRED)) or {}
    terms = f"{where}.{_REQUIRED}.nodeSelectorTerms"
    if selector and not as_list(selector.get("nodeSelectorTerms")):
        yield required(terms, "must have at least one node selector term")
    for place, term in objects_at(selector, terms):
        yield from _expressions(term, place, _NODE_OPERATORS)
    for place, item in objects_at(node, f"{where}.{_PREFERRED}"):
        yield from _weight(item, place)
        preference = as_object(item.get("preference")) or {}
        yield from _expressions(preference, f"{place}.preference", _NODE_OPERATORS)
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_terms(as_object(affinity.get(kind)) or {}, f"{path}.affinity.{kind}")


def _pod_terms(affinity: JsonObject, path: str) -> Iterator[FieldError]:
    for where, term in objects_at(affinity, f"{path}.{_REQUIRED}"):
        yield from _pod_term(term, where)
    for where, item in objects_at(affinity, f"{path}.{_PREFERRED}"):
        yield from _weight(item, where)
        term = as_object(item.get("podAffinityTerm")) or {}
        yield from _pod_term(term, f"{where}.podAffinityTerm")


def _pod_term(term: JsonObject, path: str) -> Iterator[FieldError]:
    if not text_at(term, "topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    selector = as_object(term.get("labelSelector")) or {}
    yield from _labels(selector, "matchLabels", f"{path}.labelSelector.matchLabels")
    yield from _expressions(selector, f"{path}.labelSelector", _LABEL_OPERATORS)


def _weight(item: JsonObject, path: str) -> Iterator[FieldError]:
    weight = as_int(item.get("weight"))
    if weight is None or not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight or 0, "must be in the range 1-100")


def _expressions(term: JsonObject, path: str, operators: tuple[str, ...]) -> Iterator[FieldError]:
    for where, expression in objects_at(term, f"{path}.matchExpressions"):
        key, operator = text_at(expression, "key"), text_at(expression, "operator")
        yield from _objection(f"{where}.key", key, names.qualified(key))
        count = len(as_list(expression.get("values")))
        if operator not in operators:
            yield from _objection(f"{where}.operator", operator, "not a valid selector operator")
        elif operator in {"In", "NotIn"} and not count:
            yield required(
                f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"
            )
        elif operator in {"Exists", "DoesNotExist"} and count:
            yield forbidden(
                f"{where}.values",
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )


def _spread(spec: JsonObject, path: str) -> Iterator[FieldError]:
    for where, constraint in objects_at(spec, f"{path}.topologySpreadConstraints"):
        skew = as_int(constraint.get("maxSkew")) or 0
        if skew <= 0:
            yield invalid(f"{where}.maxSkew", skew, "must be greater than zero")
        if not text_at(constraint, "topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        action = text_at(constraint, "whenUnsatisfiable")
        if action not in _UNSATISFIABLE:
            yield not_supported(f"{where}.whenUnsatisfiable", action, _UNSATISFIABLE)
