"""`Client`: the methods of `AsyncClient` for programs without asyncio, and for notebooks.

It runs an `AsyncClient` on an event loop in a thread of its own, so it also works where an event
loop already runs, as in a notebook. Several threads may share it.
"""

import asyncio
import functools
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from os import PathLike
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from tutti.client.asynchronous import AsyncClient
from tutti.client.gangs import GangEvent

#: Closing connections takes milliseconds.
_CLOSE_S: Final = 5.0

P = ParamSpec("P")
T = TypeVar("T")


class _LoopThread:
    """An event loop in a daemon thread, until `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="tutti-client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and return its result; interrupted, it is cancelled."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self, client: AsyncClient) -> None:
        """Cancel what runs, close a client of this loop, and end the loop."""
        ending = asyncio.run_coroutine_threadsafe(_end(client), self._loop)
        ending.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._loop.stop))
        # The garbage collector may call this in any thread, also in this one, which must not wait.
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_S)
            if not self._thread.is_alive():
                self._loop.close()


async def _end(client: AsyncClient) -> None:
    running = asyncio.all_tasks() - {asyncio.current_task()}
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await client.close()


def _blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Client", P], T]:
    """A method of `AsyncClient` for `Client`, with its arguments and documentation."""

    @functools.wraps(method)
    def call(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(method(self._client, *args, **kwargs))

    return call


class Client:
    """Tutti's API with the rights of one user. Each method is that of `AsyncClient`, which has the
    documentation. `with` closes it, or `close`, or the end of the program.
    """

    def __init__(
        self,
        *,
        kubeconfig: str | PathLike[str] = "",
        context: str = "",
        server: str = "",
        namespace: str = "",
    ) -> None:
        self._client = AsyncClient(
            kubeconfig=kubeconfig, context=context, server=server, namespace=namespace
        )
        self._thread = _LoopThread()
        self._finalizer = weakref.finalize(self, self._thread.stop, self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections and end its thread. Idempotent; later calls raise RuntimeError."""
        self._finalizer()

    gangs = _blocking(AsyncClient.gangs)
    gang = _blocking(AsyncClient.gang)
    queues = _blocking(AsyncClient.queues)
    queue = _blocking(AsyncClient.queue)
    nodes = _blocking(AsyncClient.nodes)
    pod_shapes = _blocking(AsyncClient.pod_shapes)
    instances = _blocking(AsyncClient.instances)
    decisions = _blocking(AsyncClient.decisions)
    fits = _blocking(AsyncClient.fits)
    explain = _blocking(AsyncClient.explain)
    what_would_help = _blocking(AsyncClient.what_would_help)
    why = _blocking(AsyncClient.why)
    submit = _blocking(AsyncClient.submit)
    wait = _blocking(AsyncClient.wait)

    def watch(self, *, namespace: str = "", all_namespaces: bool = False) -> Iterator[GangEvent]:
        """Each gang that the user may see, as ADDED, then each change, without end; leaving the
        loop ends it.
        """
        events = self._client.watch(namespace=namespace, all_namespaces=all_namespaces)
        try:
            while True:
                yield self._run(_next(events))
        finally:
            # A client that was closed has ended its watches.
            if self._finalizer.alive:
                self._run(events.aclose())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._finalizer.alive:
            work.close()
            raise RuntimeError("the client is closed")
        try:
            return self._thread.run(work)
        except CancelledError:
            # By `close`, in another thread.
            raise RuntimeError("the client is closed") from None


async def _next(events: AsyncIterator[GangEvent]) -> GangEvent:
    return await anext(events)
