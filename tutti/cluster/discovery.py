"""What the server says about itself: versions, groups, resources, and as much OpenAPI as kubectl needs to trust it."""

from tutti.cluster.errors import no_such_path
from tutti.cluster.objects import Obj
from tutti.cluster.resources import PODS, Registry, Resource

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+tutti-embedded",
    "gitTreeState": "clean",
    "goVersion": "none",
    "compiler": "none",
    "platform": "python/embedded",
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def answer(path: str, registry: Registry) -> Obj | None:
    """The document at a path, or None where the path is not about discovery.

    Raises:
        ApiError: 404 for a group or version that is not served.
    """
    steps = [step for step in path.split("/") if step]
    match steps:
        case ["version"]:
            return dict(VERSION)
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(registry)}
        case ["apis", group]:
            found = [item for item in _groups(registry) if item["name"] == group]
            if not found:
                raise no_such_path()
            return {"kind": "APIGroup", "apiVersion": "v1", **found[0]}
        case ["api", version]:
            return _resource_list("", version, registry)
        case ["apis", group, version]:
            return _resource_list(group, version, registry)
        case _:
            return None


def _groups(registry: Registry) -> list[Obj]:
    groups: dict[str, dict[str, None]] = {}
    for resource in registry.all():
        if resource.group:
            groups.setdefault(resource.group, {}).update(dict.fromkeys(resource.versions))
    return [
        {
            "name": group,
            "versions": [
                {"groupVersion": f"{group}/{version}", "version": version} for version in versions
            ],
            "preferredVersion": {
                "groupVersion": f"{group}/{next(iter(versions))}",
                "version": next(iter(versions)),
            },
        }
        for group, versions in groups.items()
    ]


def _resource_list(group: str, version: str, registry: Registry) -> Obj:
    rows: list[Obj] = []
    for resource in registry.all():
        if resource.group != group or version not in resource.versions:
            continue
        row: Obj = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": ["create"] if resource.kind == "SelfSubjectAccessReview" else _VERBS,
        }
        if resource.short_names:
            row["shortNames"] = list(resource.short_names)
        if resource.categories:
            row["categories"] = list(resource.categories)
        rows.append(row)
        part = {"singularName": "", "namespaced": resource.namespaced}
        if resource.has_status:
            status = {
                "name": f"{resource.plural}/status",
                "kind": resource.kind,
                "verbs": ["get", "patch", "update"],
            }
            rows.append(status | part)
        if resource.key == PODS:
            for name, kind, where in (
                ("binding", "Binding", ""),
                ("eviction", "Eviction", "policy"),
            ):
                own = {"group": where, "version": "v1"} if where else {}
                rows.append(
                    {"name": f"pods/{name}", "kind": kind, "verbs": ["create"], **part, **own}
                )
    if not rows:
        raise no_such_path()
    group_version = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": rows,
    }
