"""Watches all pods from outside and notes when each was first seen and first seen bound.

Every contender is timed by this one pair of eyes, the yardstick too; it counts as one of the
watches that the API server has to serve. ``IdleWatches`` are the remaining ones in a yardstick:
opened as the measured suite opens them, and read without looking.
"""

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import aiohttp
import msgspec

#: Longer than any run; the API server would otherwise end watches after half an hour or so.
_WATCH_S = 6 * 3600
_OPEN_TIMEOUT_S = 30.0
_LINE_BYTES_MAX = 2**22


class WatchBroken(RuntimeError):
    """The watch ended; what happened since is unknown, so the run is void."""


class Stalled(RuntimeError):
    """Nothing came for longer than a run can wait; the message says how far it was."""


class _Metadata(msgspec.Struct, gc=False):
    name: str = ""
    uid: str = ""
    version: str = msgspec.field(default="", name="resourceVersion")


class _Spec(msgspec.Struct, gc=False):
    node: str = msgspec.field(default="", name="nodeName")


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    #: Of a Status, when the watch failed.
    message: str = ""


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _List(msgspec.Struct):
    metadata: _Metadata


class Sighting(msgspec.Struct, gc=False):
    """What was seen of one pod; times are monotonic, 0 for not yet."""

    uid: str
    created_s: float
    bound_s: float = 0.0
    node: str = ""


class PodWatch:
    """``watch_pods`` makes one. Names are unique: the benchmarks use one namespace."""

    def __init__(self) -> None:
        self.pods: dict[str, Sighting] = {}
        #: How often the API server closed the watch and it continued from where it was.
        self.resumed = 0
        self._bound = 0
        self._changed = asyncio.Event()
        self._broken = ""

    async def wait_seen(self, count: int, *, stall_s: float = 60.0) -> None:
        """Wait until so many pods exist. Raises Stalled, WatchBroken."""
        await self._wait(lambda: len(self.pods), count, stall_s, "exist")

    async def wait_bound(self, count: int, *, stall_s: float) -> None:
        """Wait until so many pods are bound. Raises Stalled, WatchBroken."""
        await self._wait(lambda: self._bound, count, stall_s, "are bound")

    def forget(self) -> None:
        """Start again, after all pods were deleted."""
        self.pods.clear()
        self._bound = 0

    def bound_s(self, names: Iterable[str]) -> list[float]:
        """When each of the pods was seen bound, in order; those that are not are left out."""
        sightings = (self.pods.get(name) for name in names)
        return sorted(pod.bound_s for pod in sightings if pod is not None and pod.bound_s)

    def per_node_max(self) -> int:
        """The most pods on one node."""
        counts: dict[str, int] = {}
        for pod in self.pods.values():
            if pod.node:
                counts[pod.node] = counts.get(pod.node, 0) + 1
        return max(counts.values(), default=0)

    def partial_gang_s(self, names: Sequence[str], size: int) -> float:
        """Partial-gang seconds: summed over gangs of `size`, whose members' names stand in a row,
        the time from a gang's first binding to its last.
        """
        total_s = 0.0
        for start in range(0, len(names), size):
            bound_s = self.bound_s(names[start : start + size])
            total_s += bound_s[-1] - bound_s[0] if bound_s else 0.0
        return total_s

    def overfull(self, pods_max: int) -> int:
        """Nodes with more pods on them than have room there."""
        counts = Counter(pod.node for pod in self.pods.values() if pod.node)
        return sum(count > pods_max for count in counts.values())

    async def follow(self, session: aiohttp.ClientSession, version: str) -> None:
        """Read events until cancelled; what cannot be mended is raised to the waiting task.

        A loaded API server closes watches that it thinks slow: then it continues where it was, and
        sees some events a little late.
        """
        decode = msgspec.json.Decoder(_Event).decode
        try:
            while True:
                async with _watch(session, version) as response:
                    while line := await response.content.readline():
                        version = self._see(decode(line)) or version
                self.resumed += 1
        except (aiohttp.ClientError, msgspec.DecodeError, ValueError, TimeoutError) as error:
            self._broken = f"{type(error).__name__}: {error}"
        finally:
            self._changed.set()

    def _see(self, event: _Event) -> str:
        """Note it; returns its resource version."""
        if event.type == "ERROR":
            raise ValueError(f"the watch cannot be resumed: {event.object.message}")
        now_s = time.monotonic()
        version = event.object.metadata.version
        name, node = event.object.metadata.name, event.object.spec.node
        if event.type == "DELETED":
            gone = self.pods.pop(name, None)
            if gone is not None and gone.bound_s:
                self._bound -= 1
            self._changed.set()
            return version
        pod = self.pods.get(name)
        if pod is None or pod.uid != event.object.metadata.uid:
            pod = self.pods[name] = Sighting(event.object.metadata.uid, now_s)
            self._changed.set()
        if node and not pod.bound_s:
            pod.bound_s, pod.node = now_s, node
            self._bound += 1
            self._changed.set()
        return version

    async def _wait(
        self, reached: Callable[[], int], count: int, stall_s: float, what: str
    ) -> None:
        while reached() < count:
            if self._broken:
                raise WatchBroken(f"the watch on pods broke: {self._broken}")
            before = reached()
            self._changed.clear()
            try:
                async with asyncio.timeout(stall_s):
                    while reached() == before and not self._broken:
                        await self._changed.wait()
                        self._changed.clear()
            except TimeoutError:
                raise Stalled(
                    f"{before} of {len(self.pods)} pods {what}, nothing new for {stall_s:g} s"
                ) from None


@asynccontextmanager
async def watch_pods(server: str, tls: ssl.SSLContext) -> AsyncIterator[PodWatch]:
    """Watch all pods from now on; pods that exist already are not seen until they change."""
    async with _session(server, tls) as session:
        watch = PodWatch()
        following = watch.follow(session, await _version(session))
        task = asyncio.create_task(following, name="pod-watch")
        try:
            yield watch
        finally:
            task.cancel()
            await asyncio.wait([task])


@asynccontextmanager
async def idle_watches(server: str, tls: ssl.SSLContext, count: int) -> AsyncIterator[None]:
    """Hold so many further watches on all pods open and read them without looking.

    Raises:
        WatchBroken: at the end, when one was not open until then: the figures lack its load.
    """
    async with _session(server, tls) as session:
        opened = [asyncio.Event() for _ in range(count)]
        tasks = [
            asyncio.create_task(_drink(session, each), name=f"idle-watch-{index}")
            for index, each in enumerate(opened)
        ]
        async with asyncio.timeout(_OPEN_TIMEOUT_S):
            for each in opened:
                await each.wait()
        yield
        failed = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        if failed:
            raise WatchBroken(f"{len(failed)} of {count} idle watches ended early: {results}")


async def _drink(session: aiohttp.ClientSession, opened: asyncio.Event) -> None:
    while True:
        async with _watch(session, await _version(session)) as response:
            opened.set()
            async for _ in response.content.iter_any():
                pass


async def _version(session: aiohttp.ClientSession) -> str:
    async with session.get("/api/v1/pods", params={"limit": "1"}) as response:
        response.raise_for_status()
        return msgspec.json.decode(await response.read(), type=_List).metadata.version


@asynccontextmanager
async def _watch(
    session: aiohttp.ClientSession, version: str
) -> AsyncIterator[aiohttp.ClientResponse]:
    query = {
        "watch": "true",
        "allowWatchBookmarks": "false",
        "timeoutSeconds": str(_WATCH_S),
        "resourceVersion": version,
    }
    async with session.get("/api/v1/pods", params=query) as response:
        response.raise_for_status()
        yield response


def _session(server: str, tls: ssl.SSLContext) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        server,
        connector=aiohttp.TCPConnector(ssl=tls, limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=_LINE_BYTES_MAX // 2,
    )
