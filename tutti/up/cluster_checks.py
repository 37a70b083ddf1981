"""Checks the cluster before services start: whether it can be reached, and which other schedulers
are active.

All requests are sent concurrently. Resources that may not be listed are reported once and skipped:
an administrator may have good reasons to withhold these rights.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, Forbidden, MalformedAnswer, TransportError, Unauthorized
from shared.kube.leases import Lease, server_time
from shared.kube.objects import KubeObject
from shared.kube.resources import CONFIGMAPS, DEPLOYMENTS, LEASES, Resource
from tutti.api.failures import Refusal
from tutti.api.fetches import list_typed
from tutti.up.other_schedulers import Deployment, ReferenceObjects

_REACH_TIMEOUT_S: Final = 10.0

T = TypeVar("T", bound=KubeObject)


class ClusterUnreachable(Refusal):
    """The API server does not answer, or refuses our credentials."""


async def check_cluster(client: KubeClient, scheduler_names: Iterable[str]) -> ReferenceObjects:
    """Read the objects that `other_schedulers` needs.

    Raises:
        ClusterUnreachable: The API server does not answer, or refuses our credentials.
    """
    now = await _reach(client)
    unreadable: list[str] = []
    # Every node has a Lease there, renewed every 10 s; they are many and irrelevant.
    elsewhere = "metadata.namespace!=kube-node-lease"
    async with asyncio.TaskGroup() as group:
        leases = group.create_task(
            _list(client, LEASES, Lease, elsewhere, unreadable), name="leases"
        )
        deployments = group.create_task(
            _list(client, DEPLOYMENTS, Deployment, "", unreadable), name="deployments"
        )
        locks = [
            group.create_task(
                _list(client, CONFIGMAPS, KubeObject, f"metadata.name={name}", unreadable),
                name=f"lock-{name}",
            )
            for name in scheduler_names
        ]
    return ReferenceObjects(
        now=now,
        leases=leases.result(),
        deployments=deployments.result(),
        locks=[lock for task in locks for lock in task.result()],
        unreadable=tuple(sorted(set(unreadable))),
    )


async def _reach(client: KubeClient) -> datetime:
    """Request the version; returns the API server's time, which is close to the clocks that write
    Leases; a laptop's clock may be wrong.
    """
    server = client.credentials.server
    try:
        reply = await client.send("GET", "/version", timeout_s=_REACH_TIMEOUT_S)
    except TransportError as error:
        raise ClusterUnreachable(f"cannot reach the cluster at {server}: {error}") from None
    if reply.status == 401:
        raise ClusterUnreachable(f"{server} does not know these credentials (401)")
    if reply.status >= 500:
        raise ClusterUnreachable(f"{server} answers {reply.status}")
    return server_time(reply.headers) or datetime.now(UTC)


async def _list(
    client: KubeClient, resource: Resource, kind: type[T], fields: str, unreadable: list[str]
) -> Sequence[T]:
    try:
        return await list_typed(client, resource, kind, field_selector=fields)
    except (Forbidden, Unauthorized):
        unreadable.append(f"no right to list {resource.title}")
    except (ApiError, MalformedAnswer, TransportError) as error:
        unreadable.append(f"cannot list {resource.title}: {error}")
    return []
