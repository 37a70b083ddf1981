"""What `tutti up` creates in the cluster for users: the Lease that shows whether a planner is
active, and the rights to read it and to ask the API service; and the end of a registration that
outlived the API service.

The chart does the same (`templates/planner-lease.yaml`). `tutti up` deletes all of it when it ends;
after a kill the Lease stays, and shows since when no planner has been active.

While an APIService exists that no process serves, Kubernetes finishes deleting no namespace. The
API service deletes its registration when it stops, also because `tutti up` was killed; if both are
killed, the next `tutti up` does, with or without an API service (ADR 0092). Only objects with the
label of `tutti up` are deleted, and only one `tutti up` runs on a cluster, unless it was started
with `--take-over`: then the other API service registers again within seconds.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from shared.contracts.visibility_resources import API_SERVICE, MANAGED_BY, TUTTI_UP, UP_SERVICE
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, Forbidden, KubeError, NotFound
from shared.kube.leases import PLANNER_LEASE
from shared.kube.objects import KubeObject
from shared.kube.resources import (
    API_SERVICES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    LEASES,
    SERVICES,
    Resource,
)
from tutti.api.objects import new_object
from tutti.rights.rules import rules
from tutti.rights.table import ALL_USERS, API_USERS, Right
from tutti.up.other_schedulers import OWN_LEASE

_LEASE_READERS: Final = "tutti-up-everybody"
_REMOVE_TIMEOUT_S: Final = 2.0


async def install_planner_lease(client: KubeClient, say: Callable[[str], None]) -> None:
    """Create missing objects. Without the right to, report it; nothing else depends on them."""
    namespace, _ = OWN_LEASE
    try:
        await create_missing(client, LEASES, PLANNER_LEASE, {}, namespace=namespace)
        await grant_all_users(client, _LEASE_READERS, ALL_USERS)
    except KubeError as error:
        say(f"`tutti why` cannot show whether a planner is active: {error}")


async def is_on_this_machine(server: str) -> bool:
    """Whether an address of an API server's URL is one of this machine: only then the API server
    reaches a service that listens on 127.0.0.1. While it does not, a registration would keep the
    cluster's namespaces from being deleted.
    """
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        for family, *_, address in await loop.getaddrinfo(urlsplit(server).hostname, None):
            with socket.socket(family, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
                # Only an own address can be bound.
                probe.bind(address)
                return True
    return False


_API_READERS: Final = "tutti-up-api-users"
_OBJECTS: Final = ((API_SERVICES, "", API_SERVICE), (SERVICES, *UP_SERVICE))


async def prepare_api(client: KubeClient, say: Callable[[str], None], *, serves: bool) -> None:
    """Delete a registration that was left behind, and let all users ask the API if `serves`.
    Problems are reported; nothing else depends on it.
    """
    try:
        if await delete_registration(client):
            say(f"deleted the APIService {API_SERVICE}, which an earlier tutti up left behind")
    except KubeError as error:
        say(
            f"cannot delete the APIService {API_SERVICE} if an earlier tutti up left it behind; "
            f"while it exists, no namespace can be deleted: {error}"
        )
    if not serves:
        return
    try:
        await grant_all_users(client, _API_READERS, API_USERS)
    except KubeError as error:
        say(f"only administrators can read the API: {error}")


async def remove_created(client: KubeClient) -> None:
    """Delete what `install_planner_lease` and `prepare_api` created, and what the API service has
    left, as far as possible in a short time.
    """
    namespace, _ = OWN_LEASE
    with contextlib.suppress(KubeError, TimeoutError):
        async with asyncio.timeout(_REMOVE_TIMEOUT_S):
            await client.delete(LEASES, PLANNER_LEASE, namespace=namespace)
            await withdraw(client, _LEASE_READERS)
    with contextlib.suppress(KubeError, TimeoutError):
        async with asyncio.timeout(_REMOVE_TIMEOUT_S):
            await delete_registration(client)
            await withdraw(client, _API_READERS)


async def delete_registration(client: KubeClient) -> bool:
    """Delete the APIService and the Service of the API service of a `tutti up`; returns whether
    there was an APIService.

    Raises:
        KubeError: They exist, or may exist, and cannot be deleted.
    """
    deleted = False
    for resource, namespace, name in _OBJECTS:
        try:
            stored = await client.get(resource, name, KubeObject, namespace=namespace)
        except (Forbidden, NotFound):
            # An account without the right to read them has not created them either.
            continue
        if stored.metadata.labels.get(MANAGED_BY) != TUTTI_UP:
            continue
        # Neither error matters: it is gone, or replaced by another one.
        with contextlib.suppress(Conflict, NotFound):
            await client.delete(resource, name, namespace=namespace, uid=stored.metadata.uid)
            deleted = deleted or resource is API_SERVICES
    return deleted


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
    manifest = new_object(resource, metadata, **content)
    with contextlib.suppress(Conflict):
        await client.create(resource, manifest, namespace=namespace)
