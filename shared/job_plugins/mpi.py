"""Plugin mpi: gives the launcher the host names of its workers, and declares the workers' port.

Flags: --master, --worker (roles), --port.
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

NEEDS: Final = ("svc", "ssh")
_FLAGS: Final[dict[str, str | int]] = {"master": "master", "worker": "worker", "port": 22}


def master_of(arguments: Sequence[str]) -> str:
    """The role of the launcher."""
    return Flags(arguments, **_FLAGS).text("master")


class _Mpi(Changeless):
    def __init__(self, arguments: Sequence[str], job: Job) -> None:
        flags = Flags(arguments, **_FLAGS)
        self._master = flags.text("master")
        self._port = flags.number("port")
        worker = task_named(job, flags.text("worker"))
        self._workers = None if worker is None else hosts(job, worker)

    def change_pod(self, pod: Manifest, task: TaskSpec, _index: int) -> None:
        if task.name == self._master:
            if self._workers is None:
                return
            entry = {"name": "MPI_HOST", "value": ",".join(self._workers)}
            for container in containers(pod, init=True):
                add_env(container, entry)
        for container in containers(pod, init=True):
            add_port(container, "mpijob-port", self._port)


build: Final[type[JobPlugin]] = _Mpi
