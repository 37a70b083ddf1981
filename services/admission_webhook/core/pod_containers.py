"""What Kubernetes asks of the containers in a pod template.

Each violation is a pair of path and message; `pod_template` says what the rules are for.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from services.admission_webhook.core import names
from services.admission_webhook.core.parts import as_int, as_list, as_object, lacks_text, text_at
from shared.dialects.field_checks import amount_of, shown
from shared.dialects.protocol import JsonObject
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

Found = tuple[str, str]


class Pod(NamedTuple):
    """What containers refer to."""

    volumes: frozenset[str]
    claims: frozenset[str]
    host_network: bool


def container_errors(pod: Pod, spec: JsonObject, path: str) -> Iterator[Found]:
    """Every violation of a pod's containers and init containers; `path` is the pod spec's."""
    if not spec.get("containers"):
        yield f"{path}.containers", "Required value"
    taken: set[str] = set()
    for key in ("containers", "initContainers"):
        for index, item in enumerate(as_list(spec.get(key))):
            container = as_object(item) or {}
            where = f"{path}.{key}[{index}]"
            name = text_at(container, "name")
            if not name:
                yield f"{where}.name", "Required value"
            elif objection := names.label(name):
                yield f"{where}.name", f"Invalid value: {shown(name)}: {objection}"
            # Twice within one list is the schema's to refuse.
            elif key == "initContainers" and name in taken:
                yield f"{where}.name", f"Duplicate value: {shown(name)}"
            taken.add(name)
            yield from _container(pod, container, where, init=key == "initContainers")


def _container(pod: Pod, container: JsonObject, path: str, *, init: bool) -> Iterator[Found]:
    if lacks_text(container, "image"):
        yield f"{path}.image", "Required value"
    policy = text_at(container, "imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        yield f"{path}.imagePullPolicy", _unsupported(policy, _PULL_POLICIES)
    yield from _ports(pod, container, path)
    yield from _environment(container, path)
    for index, item in enumerate(as_list(container.get("volumeMounts"))):
        mount = as_object(item) or {}
        name = text_at(mount, "name")
        if not name:
            yield f"{path}.volumeMounts[{index}].name", "Required value"
        elif name not in pod.volumes:
            yield f"{path}.volumeMounts[{index}].name", f"Not found: {shown(name)}"
        if lacks_text(mount, "mountPath"):
            yield f"{path}.volumeMounts[{index}].mountPath", "Required value"
    yield from _probes(container, path, init=init)
    yield from _resources(pod, as_object(container.get("resources")) or {}, f"{path}.resources")


def _unsupported(value: str, supported: tuple[str, ...]) -> str:
    told = ", ".join(f'"{one}"' for one in supported)
    return f"Unsupported value: {shown(value)}: supported values: {told}"


def _ports(pod: Pod, container: JsonObject, path: str) -> Iterator[Found]:
    taken: set[str] = set()
    for index, item in enumerate(as_list(container.get("ports"))):
        port = as_object(item) or {}
        where = f"{path}.ports[{index}]"
        name = text_at(port, "name")
        if len(name) > _PORT_NAME_MAX:
            told = f"must be no more than {_PORT_NAME_MAX} characters"
            yield f"{where}.name", f"Invalid value: {shown(name)}: {told}"
        elif name and not _PORT_NAME.fullmatch(name):
            told = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
            yield f"{where}.name", f"Invalid value: {shown(name)}: {told}"
        elif name in taken:
            yield f"{where}.name", f"Duplicate value: {shown(name)}"
        taken |= {name} - {""}
        number, host = as_int(port.get("containerPort")), as_int(port.get("hostPort"))
        if not number:
            yield f"{where}.containerPort", "Required value"
        else:
            yield from _port_range(f"{where}.containerPort", number)
        if host:
            yield from _port_range(f"{where}.hostPort", host)
            if pod.host_network and host != number:
                told = "must match `containerPort` when `hostNetwork` is true"
                yield f"{where}.hostPort", f"Invalid value: {host}: {told}"
        protocol = text_at(port, "protocol")
        if protocol and protocol not in _PROTOCOLS:
            yield f"{where}.protocol", _unsupported(protocol, _PROTOCOLS)


def _port_range(path: str, number: int) -> Iterator[Found]:
    if not 1 <= number <= 65535:
        yield path, f"Invalid value: {number}: must be between 1 and 65535, inclusive"


def _environment(container: JsonObject, path: str) -> Iterator[Found]:
    for index, item in enumerate(as_list(container.get("env"))):
        variable = as_object(item) or {}
        where = f"{path}.env[{index}]"
        name = text_at(variable, "name")
        if not name:
            yield f"{where}.name", "Required value"
        elif objection := names.environment(name):
            yield f"{where}.name", f"Invalid value: {shown(name)}: {objection}"
        source = as_object(variable.get("valueFrom"))
        if source and text_at(variable, "value"):
            told = "may not be specified when `value` is not empty"
            yield f"{where}.valueFrom", f'Invalid value: "": {told}'
        field = text_at(source or {}, "fieldRef", "fieldPath")
        if field and field not in _FIELD_PATHS and not _SUBSCRIPT.fullmatch(field):
            told = f"error converting fieldPath: field label not supported: {field[:100]}"
            at = f"{where}.valueFrom.fieldRef.fieldPath"
            yield at, f"Invalid value: {shown(field)}: {told}"


def _probes(container: JsonObject, path: str, *, init: bool) -> Iterator[Found]:
    sidecar = text_at(container, "restartPolicy") == "Always"
    for key in _PROBES:
        probe = as_object(container.get(key))
        if probe is None:
            continue
        if init and not sidecar:
            told = "Forbidden: may not be set for init containers without restartPolicy=Always"
            yield f"{path}.{key}", told
        elif not _HANDLERS & {name for name, value in probe.items() if value is not None}:
            yield f"{path}.{key}", "Required value: must specify a handler type"


def _resources(pod: Pod, resources: JsonObject, path: str) -> Iterator[Found]:
    limits = as_object(resources.get("limits")) or {}
    requests = as_object(resources.get("requests")) or {}
    yield from _amounts(limits, f"{path}.limits")
    yield from _amounts(requests, f"{path}.requests")
    for name, value in requests.items():
        yield from _request(name, value, limits, path)
    for index, item in enumerate(as_list(resources.get("claims"))):
        claim = text_at(as_object(item) or {}, "name")
        if claim not in pod.claims:
            listed = ", ".join(sorted(pod.claims)) or "which is empty"
            told = f"must be one of the names in pod.spec.resourceClaims {listed}"
            yield f"{path}.claims[{index}]", f"Not found: {shown(claim)}: {told}"


def _amounts(found: JsonObject, path: str) -> Iterator[Found]:
    for name, value in found.items():
        where = f"{path}[{name}]"
        if unknown := _objection_to_name(name):
            yield where, f"Invalid value: {shown(name)}: {unknown}"
        # The schema has refused what is no quantity.
        elif objection := amount_of(name, value):
            yield where, f"Invalid value: {shown(value)}: {objection}"


def _objection_to_name(name: str) -> str:
    if names.qualified(name):
        return names.qualified(name)
    if "/" in name or name in _STANDARD or name.startswith(_HUGEPAGES):
        return ""
    return "must be a standard resource type or fully qualified"


def _request(name: str, value: Any, limits: JsonObject, path: str) -> Iterator[Found]:
    divisible = name in _STANDARD
    if name not in limits:
        if not divisible and not _objection_to_name(name):
            told = "Limit must be set for non overcommitable resources"
            yield f"{path}.limits", f"Required value: {told}"
        return
    asked, most = _units(name, value), _units(name, limits[name])
    if asked is None or most is None:
        return
    if asked > most or (not divisible and asked != most):
        order = "less than or equal to" if divisible else "equal to"
        told = f"must be {order} {name} limit of {limits[name]}"
        yield f"{path}.requests", f"Invalid value: {shown(str(value))}: {told}"


def _units(name: str, value: Any) -> int | None:
    try:
        return amount(name, str(value))
    except QuantityError:
        return None
