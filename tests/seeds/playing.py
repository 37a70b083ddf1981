"""What a seed's test does: applies manifests with kubectl, reads objects, ends pods."""

import json
from pathlib import Path
from typing import Any, Final

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubelet import FakeKubelet
from tests.support.waiting import eventually

MANIFESTS: Final = Path(__file__).parent / "manifests"
SEEN_S: Final = 30.0


class Play:
    """One test's namespace."""

    def __init__(
        self, api: RawClient, plane: ControlPlane, kubelet: FakeKubelet, namespace: str
    ) -> None:
        self.api = api
        self.namespace = namespace
        self._plane = plane
        self._kubelet = kubelet

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run the real kubectl in the namespace."""
        return self._plane.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def apply(self, file: str) -> None:
        """`kubectl apply` a manifest of the seeds."""
        self.kubectl("apply", "-f", str(MANIFESTS / file))

    def get(self, what: str) -> Object:
        """`kubectl get -o json` of an object, or of all of a kind."""
        found: Object = json.loads(self.kubectl("get", what, "-o", "json"))
        return found

    async def pods(self, selector: str = "") -> dict[str, Object]:
        """Pods by name."""
        query = {"labelSelector": selector} if selector else {}
        found = await self.api.get(f"/api/v1/namespaces/{self.namespace}/pods", **query)
        return {pod["metadata"]["name"]: pod for pod in found["items"]}

    async def job(self, name: str) -> Object:
        """A Volcano Job."""
        path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{self.namespace}/jobs/{name}"
        found: Object = await self.api.get(path)
        return found

    async def reaches(self, name: str, phase: str, **status: Any) -> Object:
        """Wait until a Job is in the phase, with these fields of its status."""

        async def there() -> Object:
            job = await self.job(name)
            seen = job.get("status", {})
            assert seen.get("state", {}).get("phase") == phase, seen
            assert {key: seen.get(key) for key in status} == status, seen
            return job

        return await eventually(there, timeout_s=SEEN_S, because=f"{name} is {phase}")

    async def running(self, count: int, selector: str = "") -> dict[str, Object]:
        """Wait until so many pods run."""

        async def there() -> dict[str, Object]:
            pods = await self.pods(selector)
            run = {n: p for n, p in pods.items() if p["status"].get("phase") == "Running"}
            assert len(run) == count, {n: p["status"].get("phase") for n, p in pods.items()}
            return run

        return await eventually(there, timeout_s=SEEN_S, because=f"{count} pods run")

    async def finish(self, *names: str, exit_code: int = 0) -> None:
        """End the processes of pods."""
        pods = await self.pods()
        for name in names:
            self._kubelet.finish(pods[name]["metadata"]["uid"], exit_code=exit_code)

    async def evict(self, name: str) -> None:
        """Evict a pod by the API."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
        }
        await self.api.create(f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction", body)

    async def is_gone(self, path: str) -> None:
        """Wait until an object of the namespace is not there."""

        async def gone() -> bool:
            try:
                await self.api.get(f"{path}")
            except ApiError as error:
                return error.status == 404
            return False

        await eventually(gone, timeout_s=SEEN_S, because=f"{path} is gone")
