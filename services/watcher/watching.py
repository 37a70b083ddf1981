"""The lists and watches: one `ListWatch` per kind, all of them feeding the state.

Pods are read last at the start, because how a bare pod is read depends on whether the API server
serves the kind of group that would be made for it. When that changes later, pods are listed anew.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, assert_never

from services.watcher.reporting import Reporting
from services.watcher.state import IMPLIED_GROUPS_KIND, WatcherState
from shared.dialects.discovery import kinds
from shared.dialects.protocol import Kind
from shared.kube.client import KubeClient
from shared.kube.listwatch import Absent, Changes, Listed, ListWatch
from shared.kube.resources import PODS

logger = logging.getLogger(__name__)

#: Measured with 10,000 pods: pages of this size take as long as one answer of 35 MB (0.7 s of our
#: CPU) and 20 MB less at the peak; smaller ones save little more and ask more often.
PAGE_LIMIT: Final = 2500


class Watching:
    """Keeps the state current. `run` it; `listed` is set once everything has been seen once."""

    def __init__(
        self,
        client: KubeClient,
        state: WatcherState,
        *,
        on_change: Callable[[], None],
        reporting: Reporting,
    ) -> None:
        """Prepare; `on_change` is called after every batch that left changes pending."""
        self._client = client
        self._state = state
        self._on_change = on_change
        self._reporting = reporting
        self._kinds = kinds()
        self._watches = {kind.resource: self._list_watch(kind) for kind in self._kinds}
        self._unseen = {kind.resource for kind in self._kinds}
        self.listed = asyncio.Event()
        #: Set once it is known whether bare pods have groups.
        self._pods_readable = asyncio.Event()
        self._reread_pods = asyncio.Event()

    async def run(self) -> None:
        """List and watch every kind until cancelled.

        Raises:
            ClusterWentBack: Only a new epoch can tell what the cluster is now.
        """
        async with asyncio.TaskGroup() as tasks:
            for kind in self._kinds:
                tasks.create_task(self._follow(kind), name=f"watch-{kind.resource.title}")

    def ill(self) -> str:
        """Why the picture is not current; "" when it is."""
        for watch in self._watches.values():
            if watch.state not in {"watching", "absent"}:
                why = f": {watch.last_error}" if watch.last_error is not None else ""
                return f"{watch.resource.title} is {watch.state}{why}"
        return ""

    def relists(self) -> int:
        """Lists that a gap in a watch made necessary."""
        return sum(watch.relists for watch in self._watches.values())

    async def _follow(self, kind: Kind) -> None:
        async def sink(batch: Listed[Any] | Changes[Any] | Absent) -> None:
            await self._take(kind, batch)

        if kind.resource != PODS:
            await self._watches[kind.resource].run(sink)
        while True:
            await self._until_reread(self._watches[kind.resource], sink)
            self._watches[kind.resource] = self._list_watch(kind)

    async def _until_reread(self, watch: ListWatch[Any], sink: Any) -> None:
        """Watch until pods must be read in another way."""
        self._reread_pods.clear()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(watch.run(sink), name="watch-pods-reading")
            await self._reread_pods.wait()
            running.cancel()

    async def _take(self, kind: Kind, batch: Listed[Any] | Changes[Any] | Absent) -> None:
        """Bring one batch into the state."""
        if kind.resource == PODS:
            await self._pods_readable.wait()
        implied = self._state.implied_groups
        match batch:
            case Listed():
                count = self._state.listed(kind, batch.objects, batch.resource_version)
                self._reporting.listed(kind, len(batch.objects))
            case Changes():
                count = self._state.changed(kind, batch.changes, batch.resource_version)
                self._reporting.received(kind, len(batch.changes))
            case Absent():
                count = self._state.absent(kind)
                logger.info("%s is not served: its dialect sleeps", kind.resource.title)
            case _:
                assert_never(batch)
        if kind.resource == IMPLIED_GROUPS_KIND:
            if self._pods_readable.is_set() and implied != self._state.implied_groups:
                self._reread_pods.set()
            self._pods_readable.set()
        self._unseen.discard(kind.resource)
        if not self._unseen:
            self.listed.set()
        for problem in self._state.take_problems():
            logger.warning("an object cannot be read: %s", problem)
        if count:
            self._on_change()

    def _list_watch(self, kind: Kind) -> ListWatch[Any]:
        decoded: Any = kind.decoded
        return ListWatch(self._client, kind.resource, decoded, page_limit=PAGE_LIMIT)
