"""Definitions of custom resources that take any fields, in place of those of an operator."""

from typing import Any

from shared.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource


def open_crd(resource: Resource, *, status: bool = False) -> dict[str, Any]:
    """The definition of this kind in its version.

    Args:
        resource: The kind.
        status: Whether it has a status subresource.
    """
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {
            "name": resource.title,
            # The API server wants this for groups of the Kubernetes community.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
            },
            "versions": [version],
        },
    }
