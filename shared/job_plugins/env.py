"""Plugin env: gives each container its pod's index in its role."""

from collections.abc import Sequence
from typing import Final

from shared.job_plugins.plugin import Changeless, JobPlugin, Manifest, add_env, containers
from shared.kinds.job import Job, TaskSpec

#: VK_TASK_INDEX is the older name.
_NAMES: Final = ("VK_TASK_INDEX", "VC_TASK_INDEX")


def build(_arguments: Sequence[str], _job: Job) -> JobPlugin:
    """The plugin, which has no flags."""
    return _Env()


class _Env(Changeless):
    def change_pod(self, pod: Manifest, _task: TaskSpec, index: int) -> None:
        for container in containers(pod, init=True):
            add_env(container, *({"name": name, "value": str(index)} for name in _NAMES))
