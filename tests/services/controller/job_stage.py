"""One Job for the tests of its controller, and what its kubelets and the planner do to it."""

import json
from typing import Any

from services.controller.job_controller import JobReconciler
from services.controller.reconciling.controller import Reconciler, Runtime
from shared.kube.client import KubeClient
from shared.kube.resources import COMMANDS, JOBS_VOLCANO, PODGROUPS_VOLCANO, PODS
from tests.services.controller.playing import Object, make, read
from tests.support.waiting import eventually

NS = "default"


def job_controller(runtime: Runtime) -> Reconciler:
    return JobReconciler(runtime, ("volcano",))


def a_task(name: str, replicas: int, **fields: Any) -> Object:
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "10m"}}}],
    }
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **fields}


class Stage:
    """One job, and the clients that act on it besides its controller."""

    def __init__(self, client: KubeClient, name: str, namespace: str = NS) -> None:
        self.client = client
        self.name = name
        self.namespace = namespace
        self.uid = ""

    async def submit(self, *tasks: Object, **spec: Any) -> None:
        """Create the job and admit its group."""
        made = await make(
            self.client,
            JOBS_VOLCANO,
            {"metadata": {"name": self.name}, "spec": {"tasks": list(tasks), **spec}},
            self.namespace,
        )
        self.uid = made["metadata"]["uid"]
        await self.admit()

    async def admit(self) -> None:
        """What the planner does to a group that there is room for."""
        group = f"{self.name}-{self.uid}"
        await eventually(lambda: read(self.client, PODGROUPS_VOLCANO, group, self.namespace))
        await self.client.patch(
            PODGROUPS_VOLCANO, group, {"status": {"phase": "Inqueue"}}, namespace=self.namespace
        )

    async def job(self) -> Object:
        """The job as it is stored."""
        found = await read(self.client, JOBS_VOLCANO, self.name, self.namespace)
        assert found is not None
        return found

    async def phase(self) -> str:
        """Its phase."""
        return str((await self.job()).get("status", {}).get("state", {}).get("phase", ""))

    async def passed(self) -> list[str]:
        """The phases that it passed through, the newest last."""
        return [one["status"] for one in (await self.job())["status"]["conditions"]]

    async def pods(self) -> list[str]:
        """Names of its pods."""
        page = await self.client.request(
            "GET",
            PODS.path(self.namespace),
            params={"labelSelector": f"volcano.sh/job-name={self.name}"},
        )
        return sorted(one["metadata"]["name"] for one in json.loads(page.body)["items"])

    async def kubelet(self, phase: str, *names: str, exit_code: int | None = None) -> None:
        """Give pods a phase, as their kubelet would."""
        for name in names:
            status: Object = {"phase": phase}
            ready = {"name": "main", "ready": phase == "Running", "restartCount": 0}
            base = {"image": "i", "imageID": ""}
            if exit_code is not None:
                ended = {"exitCode": exit_code, "finishedAt": "2026-01-01T00:00:00Z"}
                ready = {**ready, "state": {"terminated": ended}}
            status["containerStatuses"] = [{**ready, **base}]
            await self.client.patch(
                PODS, name, {"status": status}, namespace=self.namespace, subresource="status"
            )

    async def command(self, action: str) -> None:
        """Request something, as vcctl does."""
        await self.client.create(
            COMMANDS,
            {
                "apiVersion": COMMANDS.api_version,
                "kind": "Command",
                "metadata": {"name": f"{self.name}-{action.lower()}"},
                "action": action,
                "target": {
                    "apiVersion": JOBS_VOLCANO.api_version,
                    "kind": "Job",
                    "name": self.name,
                    "uid": self.uid,
                },
            },
            namespace=self.namespace,
        )
