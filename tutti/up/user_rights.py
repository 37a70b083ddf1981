"""ClusterRoles of `tutti up` that are bound to all users of the cluster."""

import contextlib
from collections.abc import Iterable
from typing import Any, Final

from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, NotFound
from shared.kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Resource
from tutti.rights.rules import rules
from tutti.rights.table import Right

_RBAC: Final = "rbac.authorization.k8s.io"


async def grant_all_users(client: KubeClient, role: str, rights: Iterable[Right]) -> None:
    """Create the ClusterRole `role` and its binding if they are missing. Raises KubeError."""
    binding = {
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": "system:authenticated"}],
    }
    # Without RBAC, as on the embedded cluster, every user has these rights.
    with contextlib.suppress(NotFound):
        await create_missing(client, CLUSTER_ROLES, role, {"rules": rules(rights)})
        await create_missing(client, CLUSTER_ROLE_BINDINGS, role, binding)


async def withdraw(client: KubeClient, role: str) -> None:
    """Delete what `grant_all_users` created, as far as it exists. Raises KubeError."""
    for resource in (CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES):
        with contextlib.suppress(NotFound):
            await client.delete(resource, role)


async def create_missing(
    client: KubeClient,
    resource: Resource,
    name: str,
    content: dict[str, Any],
    *,
    namespace: str = "",
) -> None:
    """Create an object unless one of that name exists. Raises KubeError."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    manifest = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **content,
    }
    with contextlib.suppress(Conflict):
        await client.create(resource, manifest, namespace=namespace)
