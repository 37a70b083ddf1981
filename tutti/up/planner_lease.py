"""Makes the Lease by which users see that a planner lives, and the right of every user to read it.

As the chart does (`templates/planner-lease.yaml`). `tutti up` takes it away when it ends; where it
was killed, the Lease stays and says since when no planner has lived.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError, NotFound
from shared.kube.leases import PLANNER_LEASE
from shared.kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, LEASES, Resource
from tutti.rights.rules import rules
from tutti.rights.table import EVERYBODY
from tutti.up.other_schedulers import OWN_LEASE

_ROLE: Final = "tutti-up-everybody"
_REMOVE_TIMEOUT_S: Final = 2.0
_RBAC: Final = "rbac.authorization.k8s.io"


async def install_planner_lease(client: KubeClient, say: Callable[[str], None]) -> None:
    """Create what is missing. Without the right to, `say` so; nothing else depends on it."""
    namespace, _ = OWN_LEASE
    binding = {
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _ROLE},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": "system:authenticated"}],
    }
    try:
        await _create(client, LEASES, PLANNER_LEASE, {}, namespace=namespace)
        await _grant(client, binding)
    except KubeError as error:
        say(f"`tutti why` cannot see here whether a planner lives: {error}")


async def remove_planner_lease(client: KubeClient) -> None:
    """Delete what `install_planner_lease` makes; what cannot be deleted in time stays."""
    namespace, _ = OWN_LEASE
    try:
        async with asyncio.timeout(_REMOVE_TIMEOUT_S):
            await client.delete(LEASES, PLANNER_LEASE, namespace=namespace)
            await client.delete(CLUSTER_ROLE_BINDINGS, _ROLE)
            await client.delete(CLUSTER_ROLES, _ROLE)
    except (KubeError, TimeoutError):
        return


async def _grant(client: KubeClient, binding: dict[str, Any]) -> None:
    try:
        await _create(client, CLUSTER_ROLES, _ROLE, {"rules": rules(EVERYBODY)})
        await _create(client, CLUSTER_ROLE_BINDINGS, _ROLE, binding)
    except NotFound:
        # Without RBAC, as on the embedded cluster, every user may read the Lease.
        return


async def _create(
    client: KubeClient,
    resource: Resource,
    name: str,
    content: dict[str, Any],
    *,
    namespace: str = "",
) -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    manifest = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **content,
    }
    try:
        await client.create(resource, manifest, namespace=namespace)
    except Conflict:
        return
