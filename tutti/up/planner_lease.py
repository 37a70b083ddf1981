"""Creates the Lease that shows users whether a planner is active, and the right to read it.

The chart does the same (`templates/planner-lease.yaml`). `tutti up` deletes it when it ends; after
a kill the Lease stays, and shows since when no planner has been active.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError, NotFound
from shared.kube.leases import PLANNER_LEASE
from shared.kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, LEASES, Resource
from tutti.rights.rules import rules
from tutti.rights.table import ALL_USERS
from tutti.up.other_schedulers import OWN_LEASE

_ROLE: Final = "tutti-up-everybody"
_REMOVE_TIMEOUT_S: Final = 2.0
_RBAC: Final = "rbac.authorization.k8s.io"


async def install_planner_lease(client: KubeClient, say: Callable[[str], None]) -> None:
    """Create missing objects. Without the right to, report it; nothing else depends on them."""
    namespace, _ = OWN_LEASE
    binding = {
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _ROLE},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": "system:authenticated"}],
    }
    try:
        await _create(client, LEASES, PLANNER_LEASE, {}, namespace=namespace)
        # Without RBAC, as on the embedded cluster, every user may read the Lease.
        with contextlib.suppress(NotFound):
            await _create(client, CLUSTER_ROLES, _ROLE, {"rules": rules(ALL_USERS)})
            await _create(client, CLUSTER_ROLE_BINDINGS, _ROLE, binding)
    except KubeError as error:
        say(f"`tutti why` cannot show whether a planner is active: {error}")


async def remove_planner_lease(client: KubeClient) -> None:
    """Delete the objects of `install_planner_lease`, as far as possible in a short time."""
    namespace, _ = OWN_LEASE
    with contextlib.suppress(KubeError, TimeoutError):
        async with asyncio.timeout(_REMOVE_TIMEOUT_S):
            await client.delete(LEASES, PLANNER_LEASE, namespace=namespace)
            await client.delete(CLUSTER_ROLE_BINDINGS, _ROLE)
            await client.delete(CLUSTER_ROLES, _ROLE)


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
    with contextlib.suppress(Conflict):
        await client.create(resource, manifest, namespace=namespace)
