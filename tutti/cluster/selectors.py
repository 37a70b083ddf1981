"""Label and field selectors: from text or object to a predicate."""

import re
from collections.abc import Callable

from tutti.cluster.errors import bad_request
from tutti.cluster.objects import Obj, dig

Predicate = Callable[[Obj], bool]
Labels = dict[str, str]

_SET_TERM = re.compile(r"^\s*([^\s!=,()]+)\s+(in|notin)\s*\(([^()]*)\)\s*$")
_EQUALITY_TERM = re.compile(r"^\s*([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)\s*$")
_EXISTS_TERM = re.compile(r"^\s*(!?)\s*([^\s!=,()]+)\s*$")

# What each kind can be selected by besides its name and namespace. Others are refused, as the API server does.
_POD = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.phase",
)
_EVENT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
SELECTABLE: dict[str, tuple[str, ...]] = {
    "pods": (*_POD, "spec.hostNetwork", "status.podIP", "status.nominatedNodeName"),
    "events": (
        *(f"involvedObject.{key}" for key in _EVENT),
        "reason",
        "type",
        "source",
        "reportingComponent",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "jobs": ("status.successful",),
}


def _term(key: str, operator: str, values: frozenset[str]) -> Callable[[Labels], bool]:
    """One requirement. An absent label satisfies only the negative ones."""
    match operator:
        case "in" | "In":
            return lambda labels: labels.get(key) in values
        case "notin" | "NotIn":
            return lambda labels: labels.get(key) not in values
        case "exists" | "Exists":
            return lambda labels: key in labels
        case "absent" | "DoesNotExist":
            return lambda labels: key not in labels
        case _:
            raise bad_request(f'"{operator}" is not a valid label selector operator')


def _label_term(text: str) -> Callable[[Labels], bool]:
    if found := _SET_TERM.match(text):
        return _term(found[1], found[2], frozenset(value.strip() for value in found[3].split(",")))
    if found := _EQUALITY_TERM.match(text):
        return _term(found[1], "notin" if found[2] == "!=" else "in", frozenset([found[3]]))
    if found := _EXISTS_TERM.match(text):
        return _term(found[2], "absent" if found[1] else "exists", frozenset())
    raise bad_request(f"unable to parse requirement: {text!r}")


def labels_of_text(text: str) -> Callable[[Labels], bool]:
    """The query parameter `labelSelector`.

    Raises:
        ApiError: 400 for a text that is no selector.
    """
    terms = [_label_term(part) for part in re.split(r",(?![^()]*\))", text) if part.strip()]
    return lambda labels: all(term(labels) for term in terms)


def labels_of_object(selector: Obj | None) -> Callable[[Labels], bool]:
    """A LabelSelector. An empty one selects everything; an absent one nothing."""
    if selector is None:
        return lambda _: False
    terms = [
        _term(key, "in", frozenset([value]))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    terms += [
        _term(item["key"], item["operator"], frozenset(item.get("values") or ()))
        for item in selector.get("matchExpressions") or ()
    ]
    return lambda labels: all(term(labels) for term in terms)


def _field_value(obj: Obj, path: str) -> str:
    if path == "source" and "source" in obj:
        return str(dig(obj, "source.component") or "")
    value = dig(obj, path)
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _field_term(text: str, allowed: tuple[str, ...]) -> Predicate:
    found = _EQUALITY_TERM.match(text)
    if not found:
        raise bad_request(f'invalid selector: "{text}"; can\'t understand "{text}"')
    path, operator, wanted = found[1], found[2], found[3]
    if path not in ("metadata.name", "metadata.namespace", *allowed):
        raise bad_request(f"field label not supported: {path}")
    absent = "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
    return lambda obj: ((_field_value(obj, path) or absent) == wanted) != (operator == "!=")


def selector(
    label_text: str, field_text: str, plural: str, namespace: str = ""
) -> Predicate | None:
    """What a list or watch asks for, as one predicate; None when it asks for everything.

    Raises:
        ApiError: 400 for a selector that cannot be read, or a field this kind cannot be selected by.
    """
    tests: list[Predicate] = []
    if namespace:
        tests.append(lambda obj: obj["metadata"].get("namespace") == namespace)
    if label_text.strip():
        matches = labels_of_text(label_text)
        tests.append(lambda obj: matches(obj["metadata"].get("labels") or {}))
    allowed = SELECTABLE.get(plural, ())
    tests += [_field_term(part, allowed) for part in field_text.split(",") if part.strip()]
    return (lambda obj: all(test(obj) for test in tests)) if tests else None
