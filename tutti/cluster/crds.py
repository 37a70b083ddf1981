"""Custom resource definitions: from the object to a served resource, and its structural schema.

Of a schema, types, required fields, enumerations and minima are supported, for pruning, defaults
and validation; no other part of OpenAPI, and no CEL.
"""

from shared.schemas.strict_fields import has_type
from tutti.api.objects import field
from tutti.cluster.errors import FieldError, not_supported, required, wrong
from tutti.cluster.objects import Obj, Value, clone, only, set_condition, without
from tutti.cluster.resources import Key, Resource

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
_ROOT_FIELDS = ("apiVersion", "kind", "metadata")


def defined_by(crd: Obj) -> Key:
    return crd["spec"]["group"], crd["spec"]["names"]["plural"]


def prepare(crd: Obj) -> None:
    """Set a definition's defaults and the status of an established one, in place.

    It is served at once; the real server takes two seconds.
    """
    spec: Obj = crd["spec"]
    names: Obj = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})
    status: Obj = crd.setdefault("status", {})
    status["acceptedNames"] = names
    status["storedVersions"] = [each["name"] for each in spec["versions"] if each["storage"]]
    set_condition(status, "NamesAccepted", "True", reason="NoConflicts")
    set_condition(status, "Established", "True", reason="InitialNamesAccepted")


def check(crd: Obj) -> list[FieldError]:
    """The rules of a definition that this server depends on."""
    spec, own_name = crd["spec"], crd["metadata"].get("name")
    wanted = ".".join(defined_by(crd)[::-1])
    errors: list[FieldError] = []
    if own_name != wanted:
        text = f'must be spec.names.plural+"."+spec.group, {wanted}'
        errors.append(wrong("metadata.name", own_name, text))
    if spec["scope"] not in ("Namespaced", "Cluster"):
        errors.append(not_supported("spec.scope", spec["scope"], ["Cluster", "Namespaced"]))
    if sum(version["storage"] for version in spec["versions"]) != 1:
        text = "must have exactly one version marked as storage version"
        errors.append(wrong("spec.versions", "", text))
    if field(spec, "conversion.strategy") != "None":
        errors.append(wrong("spec.conversion.strategy", "", "only None is supported here"))
    for index, version in enumerate(spec["versions"]):
        if not field(version, "schema.openAPIV3Schema"):
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    return errors


def resource_of(crd: Obj) -> Resource:
    """The resource of a checked definition; its storage version is the preferred one."""
    spec, names = crd["spec"], crd["spec"]["names"]
    served = sorted((v for v in spec["versions"] if v["served"]), key=lambda v: not v["storage"])
    return Resource(
        group=spec["group"],
        versions=tuple(v["name"] for v in served),
        kind=names["kind"],
        plural=names["plural"],
        singular=names["singular"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        has_status=any(field(v, "subresources.status") is not None for v in served),
        has_generation=True,
        custom=True,
        schemas={v["name"]: v["schema"]["openAPIV3Schema"] for v in served},
        columns={v["name"]: v.get("additionalPrinterColumns") or [] for v in served},
    )


def fit(schema: Obj, obj: Obj) -> tuple[list[str], list[FieldError]]:
    """Prune unknown fields and set defaults, in place; return the pruned paths, and every broken
    rule. Idempotent.
    """
    fitting = _Fitting()
    rest = without(obj, *_ROOT_FIELDS)
    fitting.visit(schema, rest, "")
    own = only(obj, *_ROOT_FIELDS)
    obj.clear()
    obj.update(own | rest)
    return fitting.pruned, fitting.errors


class _Fitting:
    """One traversal of an object: the pruned paths and the violations so far."""

    def __init__(self) -> None:
        self.pruned: list[str] = []
        self.errors: list[FieldError] = []

    def visit(self, schema: Obj, value: Value, path: str) -> None:
        if value is None and (schema.get("nullable") or "type" not in schema):
            return
        if not has_type(schema, value):
            kind = "null" if value is None else _NAMES.get(type(value), "object")
            wanted = schema.get("type", "integer,string")
            text = f'{path} in body must be of type {wanted}: "{kind}"'
            self.errors.append(FieldError(path, "TypeInvalid", f'Invalid value: "{kind}": {text}'))
            return
        if "enum" in schema and value not in schema["enum"]:
            self.errors.append(not_supported(path, value, schema["enum"]))
        if isinstance(value, int | float) and value < schema.get("minimum", value):
            text = f"{path} in body should be greater than or equal to {schema['minimum']}"
            self.errors.append(wrong(path, value, text))
        if isinstance(value, dict):
            self._visit_map(schema, value, f"{path}." if path else "")
        if isinstance(value, list):
            for index, item in enumerate(value):
                self.visit(schema.get("items") or {}, item, f"{path}[{index}]")

    def _visit_map(self, schema: Obj, value: Obj, prefix: str) -> None:
        properties: Obj = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        keeps_all = schema.get("x-kubernetes-preserve-unknown-fields") or extra is True
        embedded = _ROOT_FIELDS if schema.get("x-kubernetes-embedded-resource") else ()
        for key, inner in properties.items():
            if "default" in inner and value.get(key) is None:
                value[key] = clone(inner["default"])
        absent = [key for key in schema.get("required") or () if key not in value]
        self.errors.extend(required(prefix + key) for key in absent)
        for key in list(value):
            inner = properties.get(key, extra if isinstance(extra, dict) else None)
            if inner and value[key] is None and not inner.get("nullable"):
                del value[key]
            elif inner is not None:
                self.visit(inner, value[key], prefix + key)
            elif not keeps_all and key not in embedded:
                del value[key]
                self.pruned.append(prefix + key)
