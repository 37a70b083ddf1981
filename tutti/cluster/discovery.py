"""What the server says about itself: versions, groups, resources."""

from tutti.cluster.errors import no_such_path
from tutti.cluster.objects import Obj
from tutti.cluster.resources import PODS, Registry

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0+tutti-embedded"}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def answer(path: str, registry: Registry) -> Obj | None:
    """The document at a path, or None where the path is not about discovery.

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
        case ["apis", group]:
            for found in _groups(registry):
                if found["name"] == group:
                    return {"kind": "APIGroup", "apiVersion": "v1", **found}
            raise no_such_path()
        case ["api", version]:
            return _resource_list("", version, registry)
        case ["apis", group, version]:
            return _resource_list(group, version, registry)
        case _:
            return None


def _groups(registry: Registry) -> list[Obj]:
    groups: dict[str, list[Obj]] = {}
    for resource in registry.all():
        for version in resource.versions if resource.group else ():
            entry = {"groupVersion": f"{resource.group}/{version}", "version": version}
            versions = groups.setdefault(resource.group, [])
            versions += [] if entry in versions else [entry]
    return [
        {"name": group, "versions": versions, "preferredVersion": versions[0]}
        for group, versions in groups.items()
    ]


def _resource_list(group: str, version: str, registry: Registry) -> Obj:
    rows: list[Obj] = []
    for resource in registry.all():
        if resource.group != group or version not in resource.versions:
            continue
        only_asked = resource.kind == "SelfSubjectAccessReview"
        row: Obj = {"name": resource.plural, "singularName": resource.singular}
        row |= {"namespaced": resource.namespaced, "kind": resource.kind}
        row["verbs"] = ["create"] if only_asked else _VERBS
        row |= {"shortNames": list(resource.short_names)} if resource.short_names else {}
        row |= {"categories": list(resource.categories)} if resource.categories else {}
        rows.append(row)
        part = {"singularName": "", "namespaced": resource.namespaced}
        if resource.has_status:
            status = {"name": f"{resource.plural}/status", "kind": resource.kind}
            rows.append(status | part | {"verbs": ["get", "patch", "update"]})
        if resource.key == PODS:
            eviction = {"kind": "Eviction", "group": "policy", "version": "v1"}
            for name, own in (
                ("bindings", {"kind": "Binding"}),
                ("pods/binding", {"kind": "Binding"}),
                ("pods/eviction", eviction),
            ):
                rows.append({"name": name, **own, **part, "verbs": ["create"]})
    if not rows:
        raise no_such_path()
    group_version = f"{group}/{version}" if group else version
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version}
    return head | {"resources": rows}
