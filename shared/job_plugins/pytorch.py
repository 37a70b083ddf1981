"""Plugin pytorch: sets the environment variables that torch.distributed reads for its rendezvous.

Flags: --master, --worker (roles), --port, --wait-master-enabled, --wait-master-timeout (seconds),
--wait-master-image.
"""

from collections.abc import Sequence
from typing import Final

from shared.job_plugins.plugin import (
    Changeless,
    Flags,
    JobPlugin,
    Manifest,
    add_env,
    add_port,
    containers,
)
from shared.kinds.job import Job, TaskSpec
from shared.kinds.job_shape import hosts, task_named

NEEDS: Final = ("svc",)


class _Pytorch(Changeless):
    def __init__(self, arguments: Sequence[str], job: Job) -> None:
        flags = self._flags = Flags(
            arguments,
            master="master",
            worker="worker",
            port=23456,
            wait_master_enabled=False,
            wait_master_timeout=300,
            wait_master_image="busybox:1.36.1",
        )
        self._port = flags.number("port")
        self._master = task_named(job, flags.text("master"))
        worker = task_named(job, flags.text("worker"))
        self._workers = worker.replicas if worker is not None else 0
        # A master without replicas has no address; the other variables are still set.
        names = hosts(job, self._master) if self._master is not None else []
        self._address = names[0] if names else ""

    def change_pod(self, pod: Manifest, task: TaskSpec, index: int) -> None:
        if self._master is None:
            return
        entries = [
            {"name": "MASTER_ADDR", "value": self._address},
            {"name": "MASTER_PORT", "value": str(self._port)},
            {"name": "WORLD_SIZE", "value": str(self._master.replicas + self._workers)},
        ]
        is_worker = task.name == self._flags.text("worker")
        if task.name == self._master.name:
            entries.append({"name": "RANK", "value": "0"})
        elif is_worker:
            entries.append({"name": "RANK", "value": str(index + 1)})
        for container in containers(pod, init=False):
            add_env(container, *entries)
            add_port(container, "pytorchjob-port", self._port)
        if is_worker and self._flags.switch("wait-master-enabled"):
            self._wait_for_master(pod)

    def _wait_for_master(self, pod: Manifest) -> None:
        """Add an init container that waits until the master listens."""
        script = (
            f"end=$(($(date +%s) + {self._flags.number('wait-master-timeout')}))\n"
            f"until nc -z -w 2 {self._address} {self._port}; do\n"
            f"  [ $(date +%s) -lt $end ] || {{ echo 'no answer from {self._address}'; exit 1; }}\n"
            "  sleep 2\n"
            "done\n"
        )
        waiting = {
            "name": "wait-for-master",
            "image": self._flags.text("wait-master-image"),
            "command": ["sh", "-c", script],
        }
        spec = pod["spec"]
        spec["initContainers"] = [*(spec.get("initContainers") or ()), waiting]


build: Final[type[JobPlugin]] = _Pytorch
