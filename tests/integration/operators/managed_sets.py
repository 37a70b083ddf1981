"""Sets of pods that a real operator manages: JobSets, LeaderWorkerSets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import Manager, running_manager
from tests.integration.stage import Stage
from tests.support.waiting import eventually


class ManagedSets:
    """The sets of one kind in the namespace of a stage, and their pods."""

    def __init__(self, stage: Stage, plural: str, version: str, name_label: str) -> None:
        self.stage = stage
        self._plural, self._version, self._name_label = plural, version, name_label

    @asynccontextmanager
    async def operated(
        self, manager: Manager, built: BuiltOperator, control_plane: ControlPlane, folder: Path
    ) -> AsyncIterator[None]:
        """Run their operator; at the end all sets are gone before it is."""
        async with running_manager(manager, built, control_plane, self.stage.api, folder):
            yield
            await self.stage.api.delete(self._path())
            await eventually(self._are_gone, timeout_s=60, because="all pods are gone")

    async def create(self, manifest: Object) -> None:
        await self.stage.api.create(self._path(), manifest)

    async def delete(self, name: str, propagation: str) -> None:
        await self.stage.api.delete(self._path(name), {"propagationPolicy": propagation})

    async def pods(self, name: str) -> list[Object]:
        """Return the pods of a set, by the operator's label."""
        return [
            pod
            for pod in await self.stage.pods()
            if pod["metadata"].get("labels", {}).get(self._name_label) == name
        ]

    async def placed(self, name: str) -> int:
        """Return how many of its pods have a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in await self.pods(name))

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
        return self.stage.path(self._plural, name, self._version)
