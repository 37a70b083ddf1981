"""What surrounds the API service of `tutti up`: the rights to ask it, and the end of a registration
that outlived it.

While an APIService exists that no process serves, Kubernetes finishes deleting no namespace. The
API service deletes its registration when it stops; after a kill, the next `tutti up` does, with
`--api` or without (ADR 0092). Only objects with the label of `tutti up` are deleted, and only one
`tutti up` runs on a cluster, unless it was started with `--take-over`: then the other one's API
service registers again within seconds.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from shared.contracts.api_registration import API_SERVICE, MANAGED_BY, TUTTI_UP, UP_SERVICE
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, Forbidden, KubeError, NotFound
from shared.kube.objects import KubeObject
from shared.kube.resources import API_SERVICES, SERVICES
from tutti.rights.table import API_USERS
from tutti.up.user_rights import grant_all_users, withdraw

_ROLE: Final = "tutti-up-api-users"
_REMOVE_TIMEOUT_S: Final = 2.0
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
        await grant_all_users(client, _ROLE, API_USERS)
    except KubeError as error:
        say(f"only administrators can read the API: {error}")


async def remove_api(client: KubeClient) -> None:
    """Delete what `prepare_api` created, and what the API service has left, as far as possible in
    a short time.
    """
    with contextlib.suppress(KubeError, TimeoutError):
        async with asyncio.timeout(_REMOVE_TIMEOUT_S):
            await delete_registration(client)
            await withdraw(client, _ROLE)


async def delete_registration(client: KubeClient) -> bool:
    """Delete the APIService and the Service of the API service of a `tutti up`; returns whether
    there was an APIService.

    Raises:
        KubeError: They exist, or may exist, and cannot be deleted.
    """
    deleted = False
    for resource, namespace, name in _OBJECTS:
        try:
            found = await client.get(resource, name, KubeObject, namespace=namespace)
        except (Forbidden, NotFound):
            # An account without the right to read them has not created them either.
            continue
        if found.metadata.labels.get(MANAGED_BY) != TUTTI_UP:
            continue
        # Neither error matters: it is gone, or replaced by another one.
        with contextlib.suppress(Conflict, NotFound):
            await client.delete(resource, name, namespace=namespace, uid=found.metadata.uid)
            deleted = deleted or resource is API_SERVICES
    return deleted
