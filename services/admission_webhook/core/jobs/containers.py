"""Kubernetes' rules for the containers of a pod template; see `pod_template`."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from services.admission_webhook.core import names
from services.admission_webhook.core.field_errors import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from services.admission_webhook.core.parts import as_int, as_object, lacks_text, objects_at, text_at
from shared.dialects.field_checks import amount_of
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.quantities import QuantityError, amount

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_HANDLERS: Final = frozenset({"exec", "httpGet", "tcpSocket", "grpc"})
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_PORT_NAME_MAX: Final = 15
_STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
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


class PodReferences(NamedTuple):
    """The parts of a pod that its containers refer to."""

    volumes: frozenset[str]
    claims: frozenset[str]
    host_network: bool


def container_errors(pod: PodReferences, spec: JsonObject, path: str) -> Iterator[FieldError]:
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
    pod: PodReferences, container: JsonObject, path: str, *, init: bool
) -> Iterator[FieldError]:
    if lacks_text(container, "image"):
        yield required(f"{path}.image")
    policy = text_at(container, "imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        yield not_supported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
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


def _ports(pod: PodReferences, container: JsonObject, path: str) -> Iterator[FieldError]:
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
        protocol = text_at(port, "protocol")
        if protocol and protocol not in _PROTOCOLS:
            yield not_supported(f"{where}.protocol", protocol, _PROTOCOLS)


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


def _resources(pod: PodReferences, resources: JsonObject, path: str) -> Iterator[FieldError]:
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
    if "/" in name or name in _STANDARD or name.startswith(_HUGEPAGES):
        return ""
    return "must be a standard resource type or fully qualified"


def _request(name: str, value: Any, limits: JsonObject, path: str) -> Iterator[FieldError]:
    divisible = name in _STANDARD
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
