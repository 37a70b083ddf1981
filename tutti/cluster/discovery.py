"""Discovery: versions, groups, resources."""

from tutti.cluster.errors import no_such_path
from tutti.cluster.objects import Obj
from tutti.cluster.resources import PODS, Registry, Resource

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0+tutti-embedded"}
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def answer(path: str, registry: Registry) -> Obj | None:
    """The document at a path, or None if the path is not one of discovery.

    Raises:
        ApiError: 404 for a group or version that is not served.
    """
    match [step for step in path.split("/") if step]:
        case ["version"]:
            return dict(VERSION)
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(registry)}
        case ["api", version]:
            return _resource_list("", version, registry)
        case ["apis", group, version]:
            return _resource_list(group, version, registry)
        case _:
            return None


def _groups(registry: Registry) -> list[Obj]:
    groups: dict[str, dict[str, Obj]] = {}
    for resource in registry.all():
        for version in resource.versions if resource.group else ():
            entry = {"groupVersion": f"{resource.group}/{version}", "version": version}
            groups.setdefault(resource.group, {})[version] = entry
    found = [(group, list(entries.values())) for group, entries in groups.items()]
    return [{"name": name, "versions": each, "preferredVersion": each[0]} for name, each in found]


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
    rows = [row | {"singularName": resource.singular, "verbs": _VERBS}]
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
