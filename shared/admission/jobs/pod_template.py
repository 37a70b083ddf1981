"""Kubernetes' rules for a pod template: a Job whose pods the API server would refuse is refused.

Without these rules only the Job controller would see the refusals, not the author of the Job. They
are the rules that manifests violate in practice, each with a recorded answer of Volcano; fields
unknown here pass. `_SPEC` is the table of them.

The API server would answer most of them to a dry-run creation of each pod (tried: all 46 recorded
refusals, in 3 ms each). That is no way for a webhook: RBAC has no dry runs, so its user would need
the right to create any pod in any namespace, privileged ones in kube-system among them; a full
quota, a PriorityClass of the same file and other webhooks answer as well; and `judgement` judges
manifests where there is no API server, or no such right.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from shared.admission import names
from shared.admission.parts import (
    as_int,
    as_list,
    as_object,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    objects_at,
    required,
    text_at,
)
from shared.dialects.field_checks import INT32_MAX, amount_of
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.quantities import DIVISIBLE, QuantityError, amount

_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_HANDLERS: Final = frozenset({"exec", "httpGet", "tcpSocket", "grpc"})
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_PORT_NAME_MAX: Final = 15
_HUGEPAGES: Final = "hugepages-"
_FIELD_PATH: Final = re.compile(
    r"metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])"
    r"|spec\.(nodeName|serviceAccountName)|status\.(host|pod)IPs?"
)


class _References(NamedTuple):
    """The parts of a pod that its containers refer to."""

    volumes: frozenset[str]
    claims: frozenset[str]
    host_network: bool


_Check: TypeAlias = Callable[[_References, str, Any], Iterator[FieldError]]
"""The violations of a value, which is None where its field is absent; with its path."""


def template_errors(template: JsonObject) -> Iterator[FieldError]:
    """Every violation that the CRD's schema does not refuse; paths begin at `template`."""
    spec = as_object(template.get("spec")) or {}
    pod = _References(
        volumes=frozenset(text_at(volume, "name") for _, volume in objects_at(spec, "volumes")),
        claims=frozenset(text_at(claim, "name") for _, claim in objects_at(spec, "resourceClaims")),
        host_network=spec.get("hostNetwork") is True,
    )
    metadata = as_object(template.get("metadata")) or {}
    # Volcano's paths have no `metadata`.
    yield from _labels(pod, "template.labels", metadata.get("labels"))
    for key in as_object(metadata.get("annotations")) or {}:
        if objection := names.qualified(key.lower()):
            yield invalid("template.annotations", key, objection)
    yield from _SPEC(pod, "template.spec", spec)


# The kinds of checks.


def _object(*whole: _Check, **members: _Check) -> _Check:
    """Checks of an object, and then of its members; an absent object counts as empty."""

    def check(pod: _References, path: str, value: Any) -> Iterator[FieldError]:
        given = as_object(value) or {}
        for of_whole in whole:
            yield from of_whole(pod, path, given)
        for key, of_member in members.items():
            yield from of_member(pod, f"{path}.{key}", given.get(key))

    return check


def _each(of_item: _Check) -> _Check:
    def check(pod: _References, path: str, value: Any) -> Iterator[FieldError]:
        for index, item in enumerate(as_list(value)):
            yield from of_item(pod, f"{path}[{index}]", item)

    return check


def _field(
    kind: type[str | int],
    objection: Callable[[Any], Any],
    make: Callable[[str, Any, Any], FieldError] = invalid,
    *,
    or_absent: bool = True,
) -> _Check:
    """A text or number to which there is no objection, as `names` returns; or an absent one."""

    def check(_: _References, path: str, value: Any) -> Iterator[FieldError]:
        absent = not _is(kind, value) or value == ""
        given = kind() if absent else value
        if not (absent and or_absent) and (rule := objection(given)):
            yield make(path, given, rule)

    return check


def _one_of(*supported: str, or_absent: bool = True) -> _Check:
    def others(text: str) -> tuple[str, ...]:
        return () if text in supported else supported

    return _field(str, others, not_supported, or_absent=or_absent)


def _number(least: int, most: int, rule: str, *, or_absent: bool = True) -> _Check:
    return _field(int, lambda number: "" if least <= number <= most else rule, or_absent=or_absent)


def _needed(
    kind: type[str | int | list[Any]], detail: str = "", of_value: _Check | None = None
) -> _Check:
    """A field that must be set, and a check of it; a value of another type counts as none."""

    def check(pod: _References, path: str, value: Any) -> Iterator[FieldError]:
        if not (_is(kind, value) and value):
            yield required(path, detail)
        elif of_value is not None:
            yield from of_value(pod, path, value)

    return check


def _is(kind: type, value: object) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


# Checks of single fields.


def _labels(_: _References, path: str, value: Any) -> Iterator[FieldError]:
    for key, text in (as_object(value) or {}).items():
        if objection := names.qualified(key):
            yield invalid(path, key, objection)
        if isinstance(text, str) and (objection := names.label_value(text)):
            yield invalid(path, text, objection)


def _subdomain(text: str) -> str:
    return "must not contain dots" if "." in text else names.label(text)


def _address(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return ""


def _sysctl(text: str) -> str:
    if _SYSCTL.fullmatch(text) and len(text) <= names.SUBDOMAIN_MAX:
        return ""
    return f"must have at most 253 characters and match regex ^{_SYSCTL.pattern}$"


def _port_name(text: str) -> str:
    if len(text) > _PORT_NAME_MAX:
        return f"must be no more than {_PORT_NAME_MAX} characters"
    if _PORT_NAME.fullmatch(text):
        return ""
    return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"


def _field_path(text: str) -> str:
    if _FIELD_PATH.fullmatch(text):
        return ""
    return f"error converting fieldPath: field label not supported: {text[:100]}"


# Checks of fields that depend on each other.


def _one_source(_: _References, path: str, volume: Any) -> Iterator[FieldError]:
    sources = [key for key, value in volume.items() if key != "name" and value is not None]
    for extra in sources[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")


def _not_ephemeral(_: _References, path: str, value: Any) -> Iterator[FieldError]:
    if as_list(value):
        yield forbidden(path, "ephemeral containers not allowed in pod template")


def _toleration(_: _References, path: str, toleration: Any) -> Iterator[FieldError]:
    operator = text_at(toleration, "operator")
    where = f"{path}.operator"
    if not text_at(toleration, "key") and operator != "Exists":
        rule = "operator must be Exists when `key` is empty, which means "
        yield invalid(where, operator, f'{rule}"match all values and all keys"')
    if operator == "Exists" and (value := text_at(toleration, "value")):
        yield invalid(where, value, "value must be empty when `operator` is 'Exists'")
    elif operator not in {"", "Equal", "Exists", "Lt", "Gt"}:
        yield not_supported(where, operator, ("Equal", "Exists"))


def _has_terms(_: _References, path: str, selector: Any) -> Iterator[FieldError]:
    if selector and not as_list(selector.get("nodeSelectorTerms")):
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")


def _expressions(*operators: str) -> _Check:
    def check(_: _References, path: str, expression: Any) -> Iterator[FieldError]:
        operator = text_at(expression, "operator")
        count = len(as_list(expression.get("values")))
        if operator not in operators:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
        elif operator in {"In", "NotIn"} and not count:
            rule = "must be specified when `operator` is 'In' or 'NotIn'"
            yield required(f"{path}.values", rule)
        elif operator in {"Exists", "DoesNotExist"} and count:
            rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", rule)

    return _each(_object(check, key=_field(str, names.qualified, or_absent=False)))


def _names_differ(_: _References, path: str, spec: Any) -> Iterator[FieldError]:
    """The schema refuses a name that occurs twice within `containers`."""
    taken = {text_at(container, "name") for _, container in objects_at(spec, "containers")}
    for where, container in objects_at(spec, f"{path}.initContainers"):
        name = text_at(container, "name")
        if name and name in taken:
            yield duplicate(f"{where}.name", name)
        taken.add(name)


def _ports_differ(_: _References, path: str, container: Any) -> Iterator[FieldError]:
    taken: set[str] = set()
    for where, port in objects_at(container, f"{path}.ports"):
        name = text_at(port, "name")
        if name in taken:
            yield duplicate(f"{where}.name", name)
        taken |= {name} - {""}


def _host_port(pod: _References, path: str, port: Any) -> Iterator[FieldError]:
    host = as_int(port.get("hostPort"))
    if pod.host_network and host and host != as_int(port.get("containerPort")):
        yield invalid(
            f"{path}.hostPort", host, "must match `containerPort` when `hostNetwork` is true"
        )


def _one_value(_: _References, path: str, variable: Any) -> Iterator[FieldError]:
    if as_object(variable.get("valueFrom")) and text_at(variable, "value"):
        rule = "may not be specified when `value` is not empty"
        yield invalid(f"{path}.valueFrom", "", rule)


def _mounted(pod: _References, path: str, name: Any) -> Iterator[FieldError]:
    if str(name) not in pod.volumes:
        yield not_found(path, str(name))


def _probes(*, init: bool) -> _Check:
    def check(_: _References, path: str, container: Any) -> Iterator[FieldError]:
        sidecar = text_at(container, "restartPolicy") == "Always"
        for key in ("livenessProbe", "readinessProbe", "startupProbe"):
            probe = as_object(container.get(key))
            if probe is None:
                continue
            if init and not sidecar:
                rule = "may not be set for init containers without restartPolicy=Always"
                yield forbidden(f"{path}.{key}", rule)
            elif not _HANDLERS & {name for name, value in probe.items() if value is not None}:
                yield required(f"{path}.{key}", "must specify a handler type")

    return check


def _requests(_: _References, path: str, resources: Any) -> Iterator[FieldError]:
    limits = as_object(resources.get("limits")) or {}
    for name, value in (as_object(resources.get("requests")) or {}).items():
        divisible = name in DIVISIBLE
        if name not in limits:
            if not divisible and not _objection_to_name(name):
                rule = "Limit must be set for non overcommitable resources"
                yield required(f"{path}.limits", rule)
            continue
        try:
            requested, limit = amount(name, str(value)), amount(name, str(limits[name]))
        except QuantityError:
            continue
        if requested > limit or (not divisible and requested != limit):
            order = "less than or equal to" if divisible else "equal to"
            rule = f"must be {order} {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", str(value), rule)


def _amounts(_: _References, path: str, value: Any) -> Iterator[FieldError]:
    for name, given in (as_object(value) or {}).items():
        where = f"{path}[{name}]"
        if unknown := _objection_to_name(name):
            yield invalid(where, name, unknown)
        # The schema refuses values that are no quantities.
        elif objection := amount_of(name, given):
            yield invalid(where, given, objection)


def _objection_to_name(name: str) -> str:
    if objection := names.qualified(name):
        return objection
    if "/" in name or name in DIVISIBLE or name.startswith(_HUGEPAGES):
        return ""
    return "must be a standard resource type or fully qualified"


def _claim(pod: _References, path: str, item: Any) -> Iterator[FieldError]:
    name = text_at(as_object(item) or {}, "name")
    if name not in pod.claims:
        listed = ", ".join(sorted(pod.claims)) or "which is empty"
        rule = f"must be one of the names in pod.spec.resourceClaims {listed}"
        yield not_found(path, name, rule)


def _affinity(needed: _Check, key: str, term: _Check) -> _Check:
    preferred = _object(weight=_WEIGHT, **{key: term})
    return _object(**{_REQUIRED: needed, _PREFERRED: _each(preferred)})


# The table.

#: 0 counts as absent.
_PORT: Final = _number(0, 65535, "must be between 1 and 65535, inclusive")
_WEIGHT: Final = _number(1, 100, "must be in the range 1-100", or_absent=False)
_NODE_TERM: Final = _object(
    matchExpressions=_expressions("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
)
_POD_TERM: Final = _object(
    topologyKey=_needed(str, "can not be empty"),
    labelSelector=_object(
        matchLabels=_labels,
        matchExpressions=_expressions("In", "NotIn", "Exists", "DoesNotExist"),
    ),
)


def _containers(*, init: bool) -> _Check:
    return _each(
        _object(
            _ports_differ,
            _probes(init=init),
            name=_needed(str, of_value=_field(str, names.label)),
            image=_needed(str),
            imagePullPolicy=_one_of("Always", "IfNotPresent", "Never"),
            ports=_each(
                _object(
                    _host_port,
                    name=_field(str, _port_name),
                    containerPort=_needed(int, of_value=_PORT),
                    hostPort=_PORT,
                    protocol=_one_of("SCTP", "TCP", "UDP"),
                )
            ),
            env=_each(
                _object(
                    _one_value,
                    name=_needed(str, of_value=_field(str, names.environment)),
                    valueFrom=_object(fieldRef=_object(fieldPath=_field(str, _field_path))),
                )
            ),
            volumeMounts=_each(
                _object(name=_needed(str, of_value=_mounted), mountPath=_needed(str))
            ),
            resources=_object(_requests, limits=_amounts, requests=_amounts, claims=_each(_claim)),
        )
    )


_SPEC: Final = _object(
    _names_differ,
    volumes=_each(_object(_one_source, name=_field(str, names.label))),
    containers=_needed(list, of_value=_containers(init=False)),
    initContainers=_containers(init=True),
    restartPolicy=_one_of("Always", "OnFailure", "Never"),
    dnsPolicy=_one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    nodeSelector=_labels,
    hostname=_field(str, names.label),
    subdomain=_field(str, _subdomain),
    serviceAccountName=_field(str, names.subdomain),
    ephemeralContainers=_not_ephemeral,
    tolerations=_each(
        _object(
            _toleration,
            key=_field(str, names.qualified),
            effect=_one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
        )
    ),
    affinity=_object(
        nodeAffinity=_affinity(
            _object(_has_terms, nodeSelectorTerms=_each(_NODE_TERM)), "preference", _NODE_TERM
        ),
        podAffinity=_affinity(_each(_POD_TERM), "podAffinityTerm", _POD_TERM),
        podAntiAffinity=_affinity(_each(_POD_TERM), "podAffinityTerm", _POD_TERM),
    ),
    topologySpreadConstraints=_each(
        _object(
            maxSkew=_number(1, INT32_MAX, "must be greater than zero", or_absent=False),
            topologyKey=_needed(str, "can not be empty"),
            whenUnsatisfiable=_one_of("DoNotSchedule", "ScheduleAnyway", or_absent=False),
        )
    ),
    activeDeadlineSeconds=_number(1, INT32_MAX, f"must be between 1 and {INT32_MAX}, inclusive"),
    hostAliases=_each(_object(ip=_field(str, _address, or_absent=False))),
    securityContext=_object(sysctls=_each(_object(name=_field(str, _sysctl, or_absent=False)))),
)
