"""Label and field selectors: from text or object to a predicate."""

import re
from collections.abc import Callable, Iterable

from tutti.api.objects import field
from tutti.cluster.errors import bad_request
from tutti.cluster.objects import Obj

Predicate = Callable[[Obj], bool]
LabelTest = Callable[[dict[str, str]], bool]

_SET_TERM = re.compile(r"^\s*([^\s!=,()]+)\s+(in|notin)\s*\(([^()]*)\)\s*$")
_EQUALITY_TERM = re.compile(r"^\s*([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)\s*$")
_EXISTS_TERM = re.compile(r"^\s*(!?)\s*([^\s!=,()]+)\s*$")

# Fields that selectors may use besides name and namespace, by kind, as in Kubernetes.
_SELECTABLE = {
    "pods": ("spec.nodeName", "spec.schedulerName", "status.phase"),
    "events": (
        *(f"involvedObject.{key}" for key in ("kind", "namespace", "name", "uid", "fieldPath")),
        *("reason", "type"),
    ),
}


def _term(key: str, operator: str, values: Iterable[str] = ()) -> LabelTest:
    """One requirement. An absent label satisfies only the negative ones."""
    wanted = frozenset(values)
    match operator:
        case "in" | "In":
            return lambda labels: labels.get(key) in wanted
        case "notin" | "NotIn":
            return lambda labels: labels.get(key) not in wanted
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
        case _:
            raise bad_request(f'"{operator}" is not a valid label selector operator')


def _label_term(text: str) -> LabelTest:
    if term := _SET_TERM.match(text):
        return _term(term[1], term[2], [value.strip() for value in term[3].split(",")])
    if term := _EQUALITY_TERM.match(text):
        return _term(term[1], "notin" if term[2] == "!=" else "in", [term[3]])
    if term := _EXISTS_TERM.match(text):
        return _term(term[2], "DoesNotExist" if term[1] else "Exists")
    raise bad_request(f"unable to parse requirement: {text!r}")


def labels_of_object(selector: Obj | None) -> LabelTest:
    """A LabelSelector. An empty one selects everything; an absent one nothing."""
    if selector is None:
        return lambda _: False
    terms = [
        _term(key, "in", [value]) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    terms += [
        _term(item["key"], item["operator"], item.get("values") or ())
        for item in selector.get("matchExpressions") or ()
    ]
    return lambda labels: all(term(labels) for term in terms)


def _field_term(text: str, plural: str) -> Predicate:
    term = _EQUALITY_TERM.match(text)
    if not term:
        raise bad_request(f'invalid selector: "{text}"; can\'t understand "{text}"')
    path, operator, wanted = term[1], term[2], term[3]
    if path not in ("metadata.name", "metadata.namespace", *_SELECTABLE.get(plural, ())):
        raise bad_request(f"field label not supported: {path}")
    return lambda obj: (str(field(obj, path) or "") == wanted) != (operator == "!=")


def selector(labels: str, fields: str, plural: str, namespace: str = "") -> Predicate | None:
    """The selectors of a list or watch as one predicate; None: all objects.

    Raises:
        ApiError: 400 for a selector that cannot be read, or an unsupported field.
    """
    tests = [_field_term(part, plural) for part in fields.split(",") if part.strip()]
    if namespace:
        tests.append(lambda obj: obj["metadata"].get("namespace") == namespace)
    terms = [_label_term(part) for part in re.split(r",(?![^()]*\))", labels) if part.strip()]
    if terms:
        tests.append(lambda obj: all(t(obj["metadata"].get("labels") or {}) for t in terms))
    return (lambda obj: all(test(obj) for test in tests)) if tests else None
