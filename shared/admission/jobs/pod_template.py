"""Kubernetes' rules for a pod template: a Job whose pods the API server would refuse is refused.

Without these rules only the Job controller would see the refusals, not the author of the Job. They
are the rules that manifests violate in practice; fields unknown here pass.
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from shared.admission import names
from shared.admission.parts import (
    as_int,
    as_list,
    as_object,
    duplicate,
    forbidden,
    invalid,
    lacks_text,
    not_found,
    not_supported,
    objects_at,
    required,
    text_at,
)
from shared.dialects.field_checks import INT32_MAX, amount_of
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.quantities import DIVISIBLE, QuantityError, amount

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_HANDLERS: Final = frozenset({"exec", "httpGet", "tcpSocket", "grpc"})
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_PORT_NAME_MAX: Final = 15
_HUGEPAGES: Final = "hugepages-"
_FIELD_PATHS: Final = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")


class _References(NamedTuple):
    """The parts of a pod that its containers refer to."""

    volumes: frozenset[str]
    claims: frozenset[str]
    host_network: bool


def template_errors(template: JsonObject) -> Iterator[FieldError]:
    """Every violation that the CRD's schema does not refuse; paths begin at `template`."""
    metadata = as_object(template.get("metadata")) or {}
    yield from _labels(metadata, "labels", "template.labels")
    for key in as_object(metadata.get("annotations")) or {}:
        yield from _objection("template.annotations", key, names.qualified(key.lower()))
    spec = as_object(template.get("spec")) or {}
    path = "template.spec"
    yield from _volumes(spec, path)
    references = _References(
        volumes=frozenset(text_at(one, "name") for _, one in objects_at(spec, "volumes")),
        claims=frozenset(text_at(one, "name") for _, one in objects_at(spec, "resourceClaims")),
        host_network=spec.get("hostNetwork") is True,
    )
    yield from _containers(references, spec, path)
    yield from _pod_fields(spec, path)
    yield from _tolerations(spec, path)
    yield from _affinity(spec, path)
    yield from _spread(spec, path)
    yield from _node_fields(spec, path)


def _objection(path: str, value: str, objection: str) -> Iterator[FieldError]:
    """Nothing for an empty objection, as `names` returns for a valid name."""
    if objection:
        yield invalid(path, value, objection)


def _choice(parent: JsonObject, path: str, supported: tuple[str, ...]) -> Iterator[FieldError]:
    """The last member in `path` is absent or one of the supported texts."""
    value = text_at(parent, path.rpartition(".")[2])
    if value and value not in supported:
        yield not_supported(path, value, supported)


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
    yield from _choice(spec, f"{path}.restartPolicy", _RESTART_POLICIES)
    yield from _choice(spec, f"{path}.dnsPolicy", _DNS_POLICIES)
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
        operator = text_at(toleration, "operator")
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
        yield from _choice(toleration, f"{where}.effect", _EFFECTS)


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


def _containers(pod: _References, spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Every violation of a pod's containers and init containers; `path` is the pod spec's."""
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    taken: set[str] = set()
    for key in ("containers", "initContainers"):
        for where, container in objects_at(spec, f"{path}.{key}"):
            name = text_at(container, "name")
            if not name:
                yield required(f"{where}.name")
            elif objection := names.label(name):
                yield invalid(f"{where}.name", name, objection)
            # The schema refuses a name that occurs twice within one list.
            elif key == "initContainers" and name in taken:
                yield duplicate(f"{where}.name", name)
            taken.add(name)
            yield from _container(pod, container, where, init=key == "initContainers")


def _container(
    pod: _References, container: JsonObject, path: str, *, init: bool
) -> Iterator[FieldError]:
    if lacks_text(container, "image"):
        yield required(f"{path}.image")
    yield from _choice(container, f"{path}.imagePullPolicy", _PULL_POLICIES)
    yield from _ports(pod, container, path)
    yield from _environment(container, path)
    for where, mount in objects_at(container, f"{path}.volumeMounts"):
        name = text_at(mount, "name")
        if not name:
            yield required(f"{where}.name")
        elif name not in pod.volumes:
            yield not_found(f"{where}.name", name)
        if lacks_text(mount, "mountPath"):
            yield required(f"{where}.mountPath")
    yield from _probes(container, path, init=init)
    yield from _resources(pod, as_object(container.get("resources")) or {}, f"{path}.resources")


def _ports(pod: _References, container: JsonObject, path: str) -> Iterator[FieldError]:
    taken: set[str] = set()
    for where, port in objects_at(container, f"{path}.ports"):
        name = text_at(port, "name")
        if len(name) > _PORT_NAME_MAX:
            rule = f"must be no more than {_PORT_NAME_MAX} characters"
            yield invalid(f"{where}.name", name, rule)
        elif name and not _PORT_NAME.fullmatch(name):
            rule = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
            yield invalid(f"{where}.name", name, rule)
        elif name in taken:
            yield duplicate(f"{where}.name", name)
        taken |= {name} - {""}
        number, host = as_int(port.get("containerPort")), as_int(port.get("hostPort"))
        if not number:
            yield required(f"{where}.containerPort")
        else:
            yield from _port_range(f"{where}.containerPort", number)
        if host:
            yield from _port_range(f"{where}.hostPort", host)
            if pod.host_network and host != number:
                rule = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{where}.hostPort", host, rule)
        yield from _choice(port, f"{where}.protocol", _PROTOCOLS)


def _port_range(path: str, number: int) -> Iterator[FieldError]:
    if not 1 <= number <= 65535:
        yield invalid(path, number, "must be between 1 and 65535, inclusive")


def _environment(container: JsonObject, path: str) -> Iterator[FieldError]:
    for where, variable in objects_at(container, f"{path}.env"):
        name = text_at(variable, "name")
        if not name:
            yield required(f"{where}.name")
        elif objection := names.environment(name):
            yield invalid(f"{where}.name", name, objection)
        source = as_object(variable.get("valueFrom"))
        if source and text_at(variable, "value"):
            rule = "may not be specified when `value` is not empty"
            yield invalid(f"{where}.valueFrom", "", rule)
        field = text_at(source or {}, "fieldRef", "fieldPath")
        if field and field not in _FIELD_PATHS and not _SUBSCRIPT.fullmatch(field):
            rule = f"error converting fieldPath: field label not supported: {field[:100]}"
            yield invalid(f"{where}.valueFrom.fieldRef.fieldPath", field, rule)


def _probes(container: JsonObject, path: str, *, init: bool) -> Iterator[FieldError]:
    sidecar = text_at(container, "restartPolicy") == "Always"
    for key in _PROBES:
        probe = as_object(container.get(key))
        if probe is None:
            continue
        if init and not sidecar:
            rule = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{path}.{key}", rule)
        elif not _HANDLERS & {name for name, value in probe.items() if value is not None}:
            yield required(f"{path}.{key}", "must specify a handler type")


def _resources(pod: _References, resources: JsonObject, path: str) -> Iterator[FieldError]:
    limits = as_object(resources.get("limits")) or {}
    requests = as_object(resources.get("requests")) or {}
    yield from _amounts(limits, f"{path}.limits")
    yield from _amounts(requests, f"{path}.requests")
    for name, value in requests.items():
        yield from _request(name, value, limits, path)
    for where, item in objects_at(resources, f"{path}.claims"):
        claim = text_at(item, "name")
        if claim not in pod.claims:
            listed = ", ".join(sorted(pod.claims)) or "which is empty"
            rule = f"must be one of the names in pod.spec.resourceClaims {listed}"
            yield not_found(where, claim, rule)


def _amounts(found: JsonObject, path: str) -> Iterator[FieldError]:
    for name, value in found.items():
        where = f"{path}[{name}]"
        if unknown := _objection_to_name(name):
            yield invalid(where, name, unknown)
        # The schema refuses values that are no quantities.
        elif objection := amount_of(name, value):
            yield invalid(where, value, objection)


def _objection_to_name(name: str) -> str:
    if names.qualified(name):
        return names.qualified(name)
    if "/" in name or name in DIVISIBLE or name.startswith(_HUGEPAGES):
        return ""
    return "must be a standard resource type or fully qualified"


def _request(name: str, value: Any, limits: JsonObject, path: str) -> Iterator[FieldError]:
    divisible = name in DIVISIBLE
    if name not in limits:
        if not divisible and not _objection_to_name(name):
            rule = "Limit must be set for non overcommitable resources"
            yield required(f"{path}.limits", rule)
        return
    requested, limit = _units(name, value), _units(name, limits[name])
    if requested is None or limit is None:
        return
    if requested > limit or (not divisible and requested != limit):
        order = "less than or equal to" if divisible else "equal to"
        rule = f"must be {order} {name} limit of {limits[name]}"
        yield invalid(f"{path}.requests", str(value), rule)


def _units(name: str, value: Any) -> int | None:
    try:
        return amount(name, str(value))
    except QuantityError:
        return None
