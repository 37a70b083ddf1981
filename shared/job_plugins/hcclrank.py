"""Plugin hcclrank: sets each pod's rank for Huawei's collective communication library (HCCL).

Flags: --master, --worker (roles).
"""

from collections.abc import Sequence
from typing import Final

from shared.job_plugins.plugin import Changeless, Flags, JobPlugin, Manifest, containers
from shared.kinds.job import Job, TaskSpec
from shared.kinds.job_shape import task_named

_RANK: Final = "hccl/rankIndex"


class _HcclRank(Changeless):
    def __init__(self, arguments: Sequence[str], job: Job) -> None:
        flags = Flags(arguments, master="master", worker="worker")
        self._master = flags.text("master")
        self._worker = flags.text("worker")
        master = task_named(job, self._master)
        self._masters = master.replicas if master is not None else 0

    def change_pod(self, pod: Manifest, task: TaskSpec, index: int) -> None:
        annotations = pod["metadata"]["annotations"]
        if _RANK in annotations:
            return
        rank = _given_rank(pod)
        if rank is None and task.name == self._master:
            rank = str(index)
        elif rank is None and task.name == self._worker:
            rank = str(self._masters + index)
        if rank is not None:
            annotations[_RANK] = rank


def _given_rank(pod: Manifest) -> str | None:
    """The value of the variable RANK, if a container has it."""
    for container in containers(pod, init=False):
        for entry in container.get("env") or ():
            if entry.get("name") == "RANK" and entry.get("value"):
                return str(entry["value"])
    return None


build: Final[type[JobPlugin]] = _HcclRank
