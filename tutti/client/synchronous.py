"""`Client`: the methods of `AsyncClient` for programs without asyncio, and for notebooks.

It runs an `AsyncClient` on an event loop in a thread of its own, so it also works where an event
loop already runs, as in a notebook. Several threads may share it.
"""

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from os import PathLike
from typing import Any, Final, Self, TypeVar

from shared.contracts.visibility import (
    Decision,
    ExplanationStatus,
    FitStatus,
    Gang,
    Instance,
    Node,
    PodShape,
    Queue,
)
from tutti.client.asynchronous import AsyncClient
from tutti.client.gangs import GangEvent, Goal
from tutti.client.submission import Manifests, Submitted
from tutti.up.options import SCHEDULER_NAMES
from tutti.why.explanation import Answer

#: Closing connections takes milliseconds.
_CLOSE_S: Final = 5.0

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

    def gangs(
        self,
        *,
        namespace: str = "",
        all_namespaces: bool = False,
        phase: str = "",
        queue: str = "",
    ) -> list[Gang]:
        """Gangs that the user may see, by namespace and name; of one phase or queue if given."""
        return self._run(
            self._client.gangs(
                namespace=namespace, all_namespaces=all_namespaces, phase=phase, queue=queue
            )
        )

    def gang(self, name: str, *, namespace: str = "") -> Gang:
        """One gang by the name of its group. Raises NotFound."""
        return self._run(self._client.gang(name, namespace=namespace))

    def queues(self) -> list[Queue]:
        """All queues: what they use, deserve and wait for."""
        return self._run(self._client.queues())

    def queue(self, name: str) -> Queue:
        """One queue. Raises NotFound."""
        return self._run(self._client.queue(name))

    def nodes(self) -> list[Node]:
        """Free capacity by node, for users who may list nodes."""
        return self._run(self._client.nodes())

    def pod_shapes(self) -> list[PodShape]:
        """How many more pods of common shapes fit, for users who may list nodes."""
        return self._run(self._client.pod_shapes())

    def instances(self) -> list[Instance]:
        """Processes of Tutti that answer."""
        return self._run(self._client.instances())

    def decisions(self, *, namespace: str = "", all_namespaces: bool = False) -> list[Decision]:
        """The newest decisions that the user may see, the oldest first."""
        return self._run(self._client.decisions(namespace=namespace, all_namespaces=all_namespaces))

    def fits(self, manifests: Manifests, *, namespace: str = "") -> FitStatus:
        """Whether the gangs of manifests would fit now, all together; nothing is created."""
        return self._run(self._client.fits(manifests, namespace=namespace))

    def explain(self, manifests: Manifests, *, namespace: str = "") -> ExplanationStatus:
        """How Tutti understands manifests; nothing is created."""
        return self._run(self._client.explain(manifests, namespace=namespace))

    def why(
        self,
        reference: str,
        *,
        namespace: str = "",
        scheduler_names: Sequence[str] = SCHEDULER_NAMES,
    ) -> Answer:
        """Why a pod, a group or a job waits, as `tutti why` answers."""
        return self._run(
            self._client.why(reference, namespace=namespace, scheduler_names=scheduler_names)
        )

    def submit(
        self,
        manifests: Manifests,
        *,
        namespace: str = "",
        dry_run: bool = False,
        force: bool = False,
    ) -> list[Submitted]:
        """Create or update objects by server-side apply, in their order."""
        return self._run(
            self._client.submit(manifests, namespace=namespace, dry_run=dry_run, force=force)
        )

    def wait(
        self,
        gang: str | Submitted | Gang,
        *,
        until: Goal = "running",
        timeout_s: float | None = None,
        namespace: str = "",
    ) -> Gang:
        """Wait until a gang runs or has finished, and return it; it need not exist yet."""
        return self._run(
            self._client.wait(gang, until=until, timeout_s=timeout_s, namespace=namespace)
        )

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
