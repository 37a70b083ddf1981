"""The OpenAPI v3 documents of kinds that CRDs define, which `kubectl explain` reads.

Kinds of the table have none: kubectl then leaves their validation to this server.
"""

from collections.abc import Iterable, Iterator

from tutti.cluster.errors import no_such_path
from tutti.cluster.objects import Obj
from tutti.cluster.resources import Registry, Resource

V2 = "/openapi/v2"
V3 = "/openapi/v3"
_PREFIX = f"{V3}/apis/"
_JSON = "application/json"


def listing(registry: Registry, aggregated: Iterable[tuple[str, str]]) -> Obj:
    """Where the documents are: of own groups and versions, and of those of other servers."""
    own = ((one.group, version) for one in _custom(registry) for version in one.versions)
    paths = [f"apis/{group}/{version}" for group, version in dict.fromkeys((*own, *aggregated))]
    return {"paths": {path: {"serverRelativeURL": f"{V3}/{path}"} for path in paths}}


def document(path: str, registry: Registry) -> Obj | None:
    """The document at a path, or None if the path is not one of a document.

    Raises:
        ApiError: 404, no CRD defines a kind of this group and version.
    """
    if not path.startswith(_PREFIX):
        return None
    group, _, version = path.removeprefix(_PREFIX).partition("/")
    kinds = [one for one in _custom(registry) if one.group == group and version in one.versions]
    if not kinds:
        raise no_such_path()
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": {place: item for one in kinds for place, item in _paths(one, version)},
        "components": {
            "schemas": {
                f"{group}.{version}.{one.kind}": one.schemas[version]
                | {"x-kubernetes-group-version-kind": [_gvk(one, version)]}
                for one in kinds
            }
        },
    }


def _custom(registry: Registry) -> Iterator[Resource]:
    return (one for one in registry.all() if one.custom)


def _gvk(resource: Resource, version: str) -> Obj:
    return {"group": resource.group, "version": version, "kind": resource.kind}


def _paths(resource: Resource, version: str) -> Iterator[tuple[str, Obj]]:
    """What kubectl looks for: the kind of a resource, and whether a patch takes `dryRun` and
    `fieldValidation`.
    """
    namespace = "namespaces/{namespace}/" if resource.namespaced else ""
    folder = f"/apis/{resource.group}/{version}/{namespace}{resource.plural}"
    operation = {
        "responses": {"200": {"description": "OK", "content": {_JSON: {}}}},
        "x-kubernetes-group-version-kind": _gvk(resource, version),
    }
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string"}}
        for name in ("dryRun", "fieldValidation")
    ]
    yield folder, {"get": operation}
    yield f"{folder}/{{name}}", {"patch": operation | {"parameters": parameters}}
