"""The OpenAPI 3 document of the API, made from the structs in `shared/contracts/visibility.py`."""

from functools import cache
from typing import Any, Final, cast

import msgspec

from shared.contracts.visibility import API_VERSION, GROUP, VERSION
from shared.contracts.visibility_resources import KINDS, RESOURCES, ServedResource

GROUP_PATH: Final = f"/apis/{GROUP}"
VERSION_PATH: Final = f"{GROUP_PATH}/{VERSION}"

_VERSIONS: Final = {"groupVersion": API_VERSION, "version": VERSION}
_GROUP_FIELDS: Final[dict[str, Any]] = {
    "name": GROUP,
    "versions": [_VERSIONS],
    "preferredVersion": _VERSIONS,
}


def discovery_document(path: str) -> dict[str, Any] | None:
    """The document at a path, without query; None: there is none."""
    match path:
        case "/apis":
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP_FIELDS]}
        case _ if path == GROUP_PATH:
            return {"kind": "APIGroup", "apiVersion": "v1", **_GROUP_FIELDS}
        case _ if path == VERSION_PATH:
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": API_VERSION,
                "resources": [
                    {
                        "name": resource.plural,
                        "singularName": resource.singular,
                        "namespaced": resource.namespaced,
                        "kind": resource.kind,
                        "verbs": list(resource.verbs),
                    }
                    for resource in RESOURCES
                ],
            }
        case _:
            return None


#: As Kubernetes names definitions: the reversed domain, then the version.
_PREFIX: Final = f"dev.tutti.visibility.{VERSION}."
_REF: Final = f"#/components/schemas/{_PREFIX}{{name}}"
ROOT_PATH: Final = "/openapi/v3"
DOCUMENT_PATH: Final = f"{ROOT_PATH}{VERSION_PATH}"

_Json = dict[str, Any]

_QUERY: Final = {
    "list": (
        ("limit", "integer"),
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("resourceVersion", "string"),
        ("watch", "boolean"),
        ("timeoutSeconds", "integer"),
        ("sendInitialEvents", "boolean"),
    ),
    "get": (),
    "create": (),
}


@cache
def openapi_document() -> _Json:
    """The document of the API's one version."""
    return {
        "openapi": "3.0.0",
        "info": {"title": "Tutti", "version": VERSION},
        "paths": dict(path for resource in RESOURCES for path in _paths(resource).items()),
        "components": {"schemas": _schemas()},
    }


def _schemas() -> _Json:
    _, components = msgspec.json.schema_components(tuple(KINDS.values()), ref_template=_REF)
    schemas: _Json = {}
    for name, schema in components.items():
        plain = _plain(schema)
        if name in KINDS:
            plain["x-kubernetes-group-version-kind"] = [_kind(name)]
        schemas[f"{_PREFIX}{name}"] = plain
    return schemas


def _plain(schema: Any) -> Any:
    """A schema in OpenAPI's dialect. Fields that are None are left out, so none is nullable."""
    if isinstance(schema, list):
        return [_plain(part) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    mapping = cast("_Json", schema)
    choices: list[object] = [
        choice for choice in mapping.get("anyOf", ()) if choice != {"type": "null"}
    ]
    if len(choices) == 1:
        return _plain(choices[0])
    plain = {key: _plain(value) for key, value in mapping.items() if key != "title"}
    if "properties" in mapping:
        # Its keys are names of fields, also `title`.
        plain["properties"] = {key: _plain(part) for key, part in mapping["properties"].items()}
    if plain.get("default", ...) in (None, "", ()):
        del plain["default"]
    if "enum" in plain:
        plain["type"] = "string"
    return plain


def _kind(name: str) -> _Json:
    return {"group": GROUP, "version": VERSION, "kind": name}


def _paths(resource: ServedResource) -> _Json:
    all_path = f"{VERSION_PATH}/{resource.plural}"
    one_of = {"schema": {"$ref": _REF.format(name=resource.kind)}}
    list_of = {"schema": {"$ref": _REF.format(name=f"{resource.kind}List")}}
    name = _in_path("name")
    if "create" in resource.verbs:
        post = _operation(resource, "create", "Namespaced", one_of, status="201")
        post["requestBody"] = {"required": True, "content": {"application/json": one_of}}
        path = f"{VERSION_PATH}/namespaces/{{namespace}}/{resource.plural}"
        return {path: {"parameters": [_in_path("namespace")], "post": post}}
    if not resource.namespaced:
        return {
            all_path: {"get": _operation(resource, "list", "", list_of)},
            f"{all_path}/{{name}}": {
                "parameters": [name],
                "get": _operation(resource, "get", "", one_of),
            },
        }
    folder = f"{VERSION_PATH}/namespaces/{{namespace}}/{resource.plural}"
    namespace = _in_path("namespace")
    return {
        all_path: {"get": _operation(resource, "list", "ForAllNamespaces", list_of)},
        folder: {
            "parameters": [namespace],
            "get": _operation(resource, "list", "Namespaced", list_of),
        },
        f"{folder}/{{name}}": {
            "parameters": [namespace, name],
            "get": _operation(resource, "get", "Namespaced", one_of),
        },
    }


def _operation(
    resource: ServedResource, verb: str, scope: str, content: _Json, *, status: str = "200"
) -> _Json:
    return {
        "operationId": f"{verb}{scope}{resource.kind}",
        "tags": [GROUP],
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": kind}} for name, kind in _QUERY[verb]
        ],
        "responses": {
            status: {"description": "OK", "content": {"application/json": content}},
            "default": {"description": "a Status of meta.k8s.io/v1"},
        },
        "x-kubernetes-action": verb if verb != "create" else "post",
        "x-kubernetes-group-version-kind": _kind(resource.kind),
    }


def _in_path(name: str) -> _Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
