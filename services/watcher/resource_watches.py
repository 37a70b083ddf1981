"""The lists and watches: one `ListWatch` per resource, whose batches change the state.

At the start pods are read after the kinds on which their reading depends: whether the API server
serves the kind of group that would be created for a bare pod, and the kinds of dialects that read
marks of pods. When one of them appears or disappears later, pods are listed again.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, assert_never

from services.watcher.core.cluster_state import ClusterWentBack
from services.watcher.reporting import Reporting
from services.watcher.state import IMPLIED_GROUPS_KIND, WatcherState
from shared.dialects.discovery import readers, resources_read_before_pods
from shared.kube.client import KubeClient
from shared.kube.listwatch import Absent, Changes, Listed, ListWatch, Pace
from shared.kube.resources import PODS, Resource
from shared.runtime.endings import StateVoid

logger = logging.getLogger(__name__)

#: Measured with 10,000 pods: pages of this size take as long as one answer of 35 MB (0.7 s of CPU)
#: and 20 MB less memory at the peak; smaller pages save little more and need more requests.
PAGE_LIMIT: Final = 2500
#: Reference kinds come with a driver or an add-on that an administrator installs: until then each
#: is probed twice a minute.
_LOOKUP_PACE: Final = Pace(probe_s=30.0)


class ResourceWatches:
    """Keeps the state current while `run` runs; `listed` is set once every kind was listed or is
    absent.
    """

    def __init__(
        self,
        client: KubeClient,
        state: WatcherState,
        *,
        on_change: Callable[[], None],
        reporting: Reporting,
    ) -> None:
        """`on_change` is called after every batch that left changes pending."""
        self._client = client
        self._state = state
        self._on_change = on_change
        self._reporting = reporting
        self._readers = readers()
        self._watches = {resource: self._list_watch(resource) for resource in self._readers}
        self._unseen = set(self._readers)
        self.listed = asyncio.Event()
        self._before_pods = {IMPLIED_GROUPS_KIND, *resources_read_before_pods()}
        #: Set once it is known which of these kinds are served.
        self._pods_readable = asyncio.Event()
        self._reread_pods = asyncio.Event()

    async def run(self) -> None:
        """List and watch every kind until cancelled.

        Raises:
            StateVoid: etcd was restored: only a new epoch can publish its state.
        """
        async with asyncio.TaskGroup() as tasks:
            for resource in self._readers:
                tasks.create_task(self._follow(resource), name=f"watch-{resource.title}")

    def ill(self) -> str:
        """Why the cluster state is not current; "" when it is."""
        for watch in self._watches.values():
            if watch.state not in {"watching", "absent"}:
                why = f": {watch.last_error}" if watch.last_error is not None else ""
                return f"{watch.resource.title} is {watch.state}{why}"
        return ""

    def relists(self) -> int:
        """Lists that a gap in a watch made necessary."""
        return sum(watch.relists for watch in self._watches.values())

    async def _follow(self, resource: Resource) -> None:
        async def sink(batch: Listed[Any] | Changes[Any] | Absent) -> None:
            try:
                await self._apply(resource, batch)
            except ClusterWentBack as error:
                raise StateVoid(str(error)) from error

        if resource != PODS:
            await self._watches[resource].run(sink)
        while True:
            await self._until_reread(self._watches[resource], sink)
            self._watches[resource] = self._list_watch(resource)

    async def _until_reread(self, watch: ListWatch[Any], sink: Any) -> None:
        """Watch pods until they must be read in another way."""
        self._reread_pods.clear()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(watch.run(sink), name="watch-pods-reading")
            await self._reread_pods.wait()
            running.cancel()

    async def _apply(self, resource: Resource, batch: Listed[Any] | Changes[Any] | Absent) -> None:
        """Apply one batch to the state."""
        reading = self._state.reading
        kinds = self._readers[resource]
        match batch:
            case Listed():
                count = self._state.listed(kinds, batch.objects, batch.resource_version)
                self._reporting.listed(resource, len(batch.objects))
            case Changes():
                count = self._state.changed(kinds, batch.changes, batch.resource_version)
                self._reporting.received(resource, len(batch.changes))
            case Absent():
                count = self._state.absent(kinds)
                logger.info("%s is not served: its dialect is inactive", resource.title)
            case _:
                assert_never(batch)
        if self._pods_readable.is_set() and reading != self._state.reading:
            self._reread_pods.set()
        self._unseen.discard(resource)
        if self._unseen.isdisjoint(self._before_pods):
            self._pods_readable.set()
        if not self._unseen:
            self.listed.set()
        for problem in self._state.take_problems():
            logger.warning("an object cannot be judged: %s", problem)
        if count:
            self._on_change()

    async def _read(self, resource: Resource, page: list[Any]) -> list[Any]:
        if resource == PODS:
            await self._pods_readable.wait()
        return self._state.read(self._readers[resource], page)

    def _list_watch(self, resource: Resource) -> ListWatch[Any]:
        kinds = self._readers[resource]
        decoded: Any = kinds[0].decoded
        pace = _LOOKUP_PACE if all(kind.lookup for kind in kinds) else None
        read = partial(self._read, resource)
        return ListWatch(
            self._client, resource, decoded, page_limit=PAGE_LIMIT, reduced=read, pace=pace
        )
