"""Plugin tensorflow: sets TF_CONFIG, which has the addresses of all roles and the pod's own role.

Flags: --ps, --worker, --chief, --evaluator (roles), --port.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from shared.job_plugins.plugin import Changeless, Flags, JobPlugin, Manifest, add_env, containers
from shared.kinds.job import Job, TaskSpec
from shared.kinds.job_shape import hosts, replicas, task_named

NEEDS: Final = ("svc",)
_ROLES: Final = ("ps", "worker", "chief", "evaluator")


class _Tensorflow(Changeless):
    def __init__(self, arguments: Sequence[str], job: Job) -> None:
        flags = Flags(
            arguments, ps="ps", worker="worker", chief="chief", evaluator="evaluator", port=2222
        )
        self._alone = len(job.spec.tasks) == 1 and replicas(job) == 1
        self._roles = {flags.text(role): role for role in reversed(_ROLES)}
        self._cluster: dict[str, list[str]] = {}
        for role in _ROLES:
            task = task_named(job, flags.text(role))
            names = hosts(job, task) if task is not None else []
            if names:
                self._cluster[role] = [f"{name}:{flags.number('port')}" for name in names]

    def change_pod(self, pod: Manifest, task: TaskSpec, index: int) -> None:
        if self._alone:
            return
        role = self._roles.get(task.name, task.name)
        config = {"cluster": self._cluster, "task": {"type": role, "index": index}}
        entry = {"name": "TF_CONFIG", "value": msgspec.json.encode(config).decode()}
        for container in containers(pod, init=False):
            add_env(container, entry)


build: Final[type[JobPlugin]] = _Tensorflow
