"""Discovery: the documents about the kinds that this server has, and those of OpenAPI about kinds
that CRDs define, which `kubectl explain` reads.

Kinds of the table have no OpenAPI: kubectl then leaves their validation to this server. Groups of
other servers have the documents of their versions.
"""

from collections.abc import Iterable, Iterator

from tutti.cluster.errors import no_such_path
from tutti.cluster.objects import Obj
from tutti.cluster.resources import NAMESPACES, PODS, REVIEWS, Registry, Resource

OPENAPI_V2 = "/openapi/v2"
OPENAPI_V3 = "/openapi/v3"
_JSON = "application/json"
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0+tutti-embedded"}
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def document(path: str, registry: Registry, aggregated: Iterable[tuple[str, str]]) -> Obj | None:
    """The document at a path, or None if the path is not one of discovery. `aggregated` are groups
    and versions of other servers.

    Raises:
        ApiError: 404 for a group or version that is not served.
    """
    match [step for step in path.split("/") if step]:
        case ["openapi", "v3"]:
            return _openapi_listing(registry, aggregated)
        case ["openapi", "v3", "apis", group, version]:
            return _openapi(group, version, registry)
        case ["version"]:
            return _VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": _groups(registry, aggregated),
            }
        case ["apis", group]:
            groups = _groups(registry, aggregated)
            entry = next((entry for entry in groups if entry["name"] == group), None)
            if entry is None:
                raise no_such_path()
            return {"kind": "APIGroup", "apiVersion": "v1", **entry}
        case ["api", version]:
            return _resource_list("", version, registry)
        case ["apis", group, version]:
            return _resource_list(group, version, registry)
        case _:
            return None


def _groups(registry: Registry, aggregated: Iterable[tuple[str, str]]) -> list[Obj]:
    """Own groups first: of two resources of one name, clients take the first."""
    own = (
        (kind.group, version) for kind in registry.all() for version in kind.versions if kind.group
    )
    groups: dict[str, dict[str, Obj]] = {}
    for group, version in (*own, *aggregated):
        entry = {"groupVersion": f"{group}/{version}", "version": version}
        groups.setdefault(group, {})[version] = entry
    served = [(group, list(entries.values())) for group, entries in groups.items()]
    return [{"name": name, "versions": each, "preferredVersion": each[0]} for name, each in served]


def _resource_list(group: str, version: str, registry: Registry) -> Obj:
    served = [each for each in registry.all() if each.group == group and version in each.versions]
    if not served:
        raise no_such_path()
    group_version = f"{group}/{version}" if group else version
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version}
    return head | {"resources": [row for resource in served for row in _rows(resource)]}


def _rows(resource: Resource) -> list[Obj]:
    """A kind and its subresources."""
    row: Obj = {"name": resource.plural, "namespaced": resource.namespaced, "kind": resource.kind}
    verbs = [verb for verb in _VERBS if verb != "deletecollection" or resource.key != NAMESPACES]
    if resource.key in REVIEWS:
        verbs = ["create"]
    rows = [row | {"singularName": resource.singular, "verbs": verbs}]
    if resource.short_names:
        rows[0]["shortNames"] = list(resource.short_names)
    if resource.has_status:
        name = f"{resource.plural}/status"
        rows.append(row | {"name": name, "singularName": "", "verbs": ["get", "patch", "update"]})
    if resource.key == PODS:
        part = {"singularName": "", "namespaced": True, "verbs": ["create"]}
        eviction = {"kind": "Eviction", "group": "policy", "version": "v1"}
        rows.append({"name": "pods/binding", "kind": "Binding", **part})
        rows.append({"name": "pods/eviction", **eviction, **part})
    return rows


def _openapi_listing(registry: Registry, aggregated: Iterable[tuple[str, str]]) -> Obj:
    """Where the documents are: of own groups and versions, and of those of other servers."""
    own = ((kind.group, version) for kind in _custom(registry) for version in kind.versions)
    paths = [f"apis/{group}/{version}" for group, version in dict.fromkeys((*own, *aggregated))]
    return {"paths": {path: {"serverRelativeURL": f"{OPENAPI_V3}/{path}"} for path in paths}}


def _openapi(group: str, version: str, registry: Registry) -> Obj:
    kinds = [kind for kind in _custom(registry) if kind.group == group and version in kind.versions]
    if not kinds:
        raise no_such_path()
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": {place: item for kind in kinds for place, item in _paths(kind, version)},
        "components": {
            "schemas": {
                f"{group}.{version}.{kind.kind}": kind.schemas[version]
                | {"x-kubernetes-group-version-kind": [_gvk(kind, version)]}
                for kind in kinds
            }
        },
    }


def _custom(registry: Registry) -> Iterator[Resource]:
    return (kind for kind in registry.all() if kind.custom)


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
