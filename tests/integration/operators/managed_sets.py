"""Sets of pods that a real operator manages: JobSets, PyTorchJobs, RayClusters."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final, NamedTuple

from tests.controlplane.client import ApiError, Object
from tests.controlplane.kubelet import ENDED
from tests.integration.stage import Stage
from tests.support.waiting import eventually

#: The garbage collector looks for new kinds once in 30 s; before that it deletes no pods of them.
GONE_S: Final = 60.0


class ManagedKind(NamedTuple):
    """A kind of sets, and how their pods name them."""

    #: As users name the kind to `tutti why`.
    word: str
    plural: str
    version: str
    #: Label of a pod that holds the name of its set.
    name_label: str


class ManagedSets:
    """The sets of one kind in the namespace of a stage, and their pods."""

    def __init__(self, stage: Stage, kind: ManagedKind) -> None:
        self.stage = stage
        self.kind = kind

    @asynccontextmanager
    async def operated(
        self, *operators: AbstractAsyncContextManager[object]
    ) -> AsyncIterator[None]:
        """Run their operators; at the end all sets are gone before the operators stop."""
        async with AsyncExitStack() as stack:
            for operator in operators:
                await stack.enter_async_context(operator)
            yield
            await self.stage.api.delete(self._path(), {"propagationPolicy": "Background"})
            await eventually(self._are_gone, timeout_s=GONE_S, because="all pods are gone")

    async def create(self, manifest: Object) -> None:
        await self.stage.api.create(self._path(), manifest)

    async def patch(self, name: str, body: Object) -> None:
        """Change a set by a merge patch."""
        await self.stage.api.patch(self._path(name), body)

    async def delete(self, name: str, propagation: str = "Background") -> None:
        await self.stage.api.delete(self._path(name), {"propagationPolicy": propagation})

    async def read(self, name: str) -> Object | None:
        """A set; None when there is none of that name."""
        try:
            return await self.stage.api.get(self._path(name))
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    async def pods(self, name: str) -> list[Object]:
        """Return the pods of a set, by the operator's label."""
        return [
            pod
            for pod in await self.stage.pods()
            if pod["metadata"].get("labels", {}).get(self.kind.name_label) == name
        ]

    async def places(self, name: str) -> dict[str, str]:
        """Node by UID of its pods that have one and have not ended: batch Jobs keep failed pods."""
        return {
            pod["metadata"]["uid"]: pod["spec"]["nodeName"]
            for pod in await self.pods(name)
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ENDED
        }

    async def placed(self, name: str) -> int:
        """Return how many of its pods have a node."""
        return len(await self.places(name))

    async def fail_one(self, name: str) -> str:
        """Let a bound pod of a set fail; returns its UID."""
        uid = min(await self.places(name))
        self.stage.kubelet.finish(uid, exit_code=1)
        return uid

    async def wait_bound(self, name: str, count: int) -> None:
        async def is_bound() -> bool:
            return await self.placed(name) == count

        await eventually(is_bound, timeout_s=60, because=f"set {name} is bound whole")

    async def wait_pods(self, name: str, count: int) -> None:
        async def exist() -> bool:
            return len(await self.pods(name)) >= count

        await eventually(exist, timeout_s=30, because=f"{count} pods of set {name} exist")

    async def wait_running(self, name: str, count: int) -> None:
        async def run() -> bool:
            phases = [pod["status"].get("phase") for pod in await self.pods(name)]
            return phases.count("Running") == count

        await eventually(run, timeout_s=30, because=f"{count} pods of set {name} run")

    async def _are_gone(self) -> bool:
        return not await self.stage.pods()

    def _path(self, name: str = "") -> str:
        return self.stage.path(self.kind.plural, name, self.kind.version)
