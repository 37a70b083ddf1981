"""Plugin ray: starts one Ray cluster in the containers of the head and the workers.

Flags: --head, --worker (roles), --headContainer, --workerContainer, --port, --dashboardPort,
--clientPort.
"""

from collections.abc import Sequence
from typing import Final

from shared.contracts.annotations import TASK_SPEC
from shared.job_plugins.plugin import (
    Flags,
    JobPlugin,
    Manifest,
    Owned,
    PluginError,
    add_port,
    containers,
    owned_by,
    selector,
)
from shared.kinds.job import Job, TaskSpec
from shared.kinds.job_shape import hosts, task_named
from shared.kube.resources import SERVICES

NEEDS: Final = ("svc",)


class _Ray:
    def __init__(self, arguments: Sequence[str], job: Job) -> None:
        self._job = job
        flags = self._flags = Flags(
            arguments,
            head="head",
            headContainer="head",
            worker="worker",
            workerContainer="worker",
            port=6379,
            dashboardPort=8265,
            clientPort=10001,
        )
        self._head = flags.text("head")
        self._ports = {
            "gcs": flags.number("port"),
            "dashboard": flags.number("dashboardPort"),
            "client-server": flags.number("clientPort"),
        }

    def change_pod(self, pod: Manifest, task: TaskSpec, _index: int) -> None:
        head = task_named(self._job, self._head)
        names = hosts(self._job, head) if head is not None else []
        if not names:
            raise PluginError(f"plugin ray: the job has no task {self._head!r} to be its head")
        ports = self._ports
        if task.name == self._head:
            command = (
                f"ray start --head --block --dashboard-host=0.0.0.0 --port={ports['gcs']} "
                f"--dashboard-port={ports['dashboard']} "
                f"--ray-client-server-port={ports['client-server']}"
            )
            for container in self._named(pod, "headContainer"):
                container["command"] = ["sh", "-c", command]
                for name, number in ports.items():
                    add_port(container, name, number)
        elif task.name == self._flags.text("worker"):
            command = f"ray start --block --address={names[0]}:{ports['gcs']}"
            for container in self._named(pod, "workerContainer"):
                container["command"] = ["sh", "-c", command]

    def objects(self) -> Sequence[Owned]:
        ports = [
            {"name": name, "protocol": "TCP", "port": number, "targetPort": name}
            for name, number in self._ports.items()
        ]
        name = f"{self._job.metadata.name}-head-svc"
        spec = {"selector": {**selector(self._job), TASK_SPEC: self._head}, "ports": ports}
        manifest = owned_by(self._job, SERVICES, name, {"spec": spec})
        return (Owned(resource=SERVICES, manifest=manifest),)

    def _named(self, pod: Manifest, flag: str) -> list[Manifest]:
        wanted = self._flags.text(flag)
        return [
            container
            for container in containers(pod, init=False)
            if container.get("name") == wanted
        ]


build: Final[type[JobPlugin]] = _Ray
