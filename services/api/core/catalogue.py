"""The resources that the API serves, and its discovery documents.

The documents are Kubernetes' own: `APIGroupList`, `APIGroup` and `APIResourceList`.
"""

from typing import Any, Final

from shared.contracts.visibility import API_VERSION, GROUP, VERSION
from shared.contracts.visibility_resources import RESOURCES, ServedResource

_BY_PLURAL: Final = {one.plural: one for one in RESOURCES}


def served_resource(plural: str) -> ServedResource | None:
    """The resource of this plural name; None: there is none."""
    return _BY_PLURAL.get(plural)


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
                        "name": one.plural,
                        "singularName": one.singular,
                        "namespaced": one.namespaced,
                        "kind": one.kind,
                        "verbs": list(one.verbs),
                    }
                    for one in RESOURCES
                ],
            }
        case _:
            return None
