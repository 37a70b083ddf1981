"""Creates the Lease that shows users whether a planner is active, and the right to read it.

The chart does the same (`templates/planner-lease.yaml`). `tutti up` deletes it when it ends; after
a kill the Lease stays, and shows since when no planner has been active.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.leases import PLANNER_LEASE
from shared.kube.resources import LEASES
from tutti.rights.table import ALL_USERS
from tutti.up.other_schedulers import OWN_LEASE
from tutti.up.user_rights import create_missing, grant_all_users, withdraw

_ROLE: Final = "tutti-up-everybody"
_REMOVE_TIMEOUT_S: Final = 2.0


async def install_planner_lease(client: KubeClient, say: Callable[[str], None]) -> None:
    """Create missing objects. Without the right to, report it; nothing else depends on them."""
    namespace, _ = OWN_LEASE
    try:
        await create_missing(client, LEASES, PLANNER_LEASE, {}, namespace=namespace)
        await grant_all_users(client, _ROLE, ALL_USERS)
    except KubeError as error:
        say(f"`tutti why` cannot show whether a planner is active: {error}")


async def remove_planner_lease(client: KubeClient) -> None:
    """Delete the objects of `install_planner_lease`, as far as possible in a short time."""
    namespace, _ = OWN_LEASE
    with contextlib.suppress(KubeError, TimeoutError):
        async with asyncio.timeout(_REMOVE_TIMEOUT_S):
            await client.delete(LEASES, PLANNER_LEASE, namespace=namespace)
            await withdraw(client, _ROLE)
