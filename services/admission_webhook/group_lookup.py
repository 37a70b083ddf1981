"""Reads from the API server whether a PodGroup exists that a user's pod names.

A consistent read: a group that was created before the pod is always found. Without an answer in
time, and beyond the limits below, there is no warning.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Final, Literal

from services.admission_webhook.core.named_groups import NamedGroup, missing_group_warning
from shared.dialects.discovery import group_resources
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError, NotFound
from shared.kube.objects import KubeObject
from shared.kube.resources import Resource
from shared.pacing import TokenBucket

log = logging.getLogger(__name__)

#: The API server answers within a few ms. A user's creation is delayed by no more than this.
TIMEOUT_S: Final = 0.5
#: Look-ups in flight at once.
LOOKUPS_MAX: Final = 16
#: Users create a few pods at a time. A script that creates thousands gets the first warnings, and
#: costs the API server no more than these look-ups.
LOOKUPS_BURST: Final = 100
LOOKUPS_PER_S: Final = 10
#: No name is suggested in a namespace with more groups than these.
LISTED_MAX: Final = 500

LookupEnding = Literal["found", "missing", "unanswered", "skipped"]


class GroupLookup:
    """Looks up the groups that users' pods name, a bounded number at a time."""

    def __init__(
        self,
        client: Callable[[], KubeClient | None],
        on_end: Callable[[LookupEnding], None],
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Nothing is sent before `warnings`, and nothing is looked up while there is no client.
        `on_end` is called with the ending of each look-up.
        """
        self._client = client
        self._on_end = on_end
        self._timeout_s = timeout_s
        self._in_flight = 0
        self._bucket = TokenBucket(burst=LOOKUPS_BURST, per_s=LOOKUPS_PER_S)

    async def warnings(self, named: NamedGroup) -> tuple[str, ...]:
        """The warning if the group does not exist; () if it does, or if this is not known in time.
        Never raises.
        """
        client = self._client()
        if client is None:
            return ()
        now_s = asyncio.get_running_loop().time()
        if self._in_flight >= LOOKUPS_MAX or not self._bucket.try_draw(now_s):
            self._on_end("skipped")
            return ()
        self._in_flight += 1
        try:
            return await self._look_up(client, named, now_s + self._timeout_s)
        finally:
            self._in_flight -= 1

    async def _look_up(
        self, client: KubeClient, named: NamedGroup, deadline_s: float
    ) -> tuple[str, ...]:
        try:
            async with asyncio.timeout_at(deadline_s):
                exists = await _exists(client, named)
        except (KubeError, TimeoutError) as error:
            log.info("not known whether PodGroup %s/%s exists: %s", *named[:2], error)
            self._on_end("unanswered")
            return ()
        self._on_end("found" if exists else "missing")
        if exists:
            return ()
        existing: frozenset[str] = frozenset()
        try:
            async with asyncio.timeout_at(deadline_s):
                existing = await _names_in(client, named)
        except (KubeError, TimeoutError) as error:
            log.info("no suggestion for PodGroup %s/%s: %s", *named[:2], error)
        return (missing_group_warning(named, existing),)


def _resources(named: NamedGroup) -> Iterator[Resource]:
    """The resources that may have the group, in each of their versions."""
    for resource in group_resources(named.scope):
        yield from resource.variants


async def _exists(client: KubeClient, named: NamedGroup) -> bool:
    """Whether any dialect has such a group. Raises KubeError when this is not known."""
    for resource in _resources(named):
        # NotFound: there is no such object, or no such kind.
        with contextlib.suppress(NotFound):
            await client.request("GET", resource.path(named.namespace, named.name))
            return True
    return False


async def _names_in(client: KubeClient, named: NamedGroup) -> frozenset[str]:
    """Names of the groups that the pod may have meant; none if they are too many. Raises
    KubeError.
    """
    names: set[str] = set()
    for resource in _resources(named):
        with contextlib.suppress(NotFound):
            page = await client.list(
                resource, KubeObject, namespace=named.namespace, limit=LISTED_MAX
            )
            if page.metadata.continue_:
                return frozenset()
            names.update(group.metadata.name for group in page.items)
    return frozenset(names)
