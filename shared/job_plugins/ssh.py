"""Plugin ssh: lets the pods of a job log in to each other, by a key pair of the job.

Flags: --ssh-key-file-path, --ssh-private-key and --ssh-public-key (both or neither), --ssh-port.
"""

import base64
from collections.abc import Sequence
from typing import Final

from shared.job_plugins.plugin import Flags, JobPlugin, Manifest, Owned, add_volume, owned_by
from shared.kinds.job import Job, TaskSpec
from shared.kinds.job_shape import hosts, pod_name, template_spec
from shared.kube.resources import SECRETS

PRIVATE: Final = "id_rsa"
PUBLIC: Final = "id_rsa.pub"
AUTHORIZED: Final = "authorized_keys"
CONFIG: Final = "config"

_ROOTS_PATH: Final = "/root/.ssh"
#: The files belong to root. In a home other than root's, the pod's user must be able to read them.
_MODE_ROOT: Final = 0o600
_MODE_OTHERS: Final = 0o644


def with_keys(manifest: Manifest, private: str, public: str) -> Manifest:
    """The Secret's manifest with this key pair added."""
    keys = {PRIVATE: private, PUBLIC: public, AUTHORIZED: public}
    return {**manifest, "data": {**manifest["data"], **{k: _b64(v) for k, v in keys.items()}}}


class _Ssh:
    def __init__(self, arguments: Sequence[str], job: Job) -> None:
        self._job = job
        self._flags = Flags(
            arguments,
            ssh_key_file_path=_ROOTS_PATH,
            ssh_private_key="",
            ssh_public_key="",
            ssh_port=22,
        )
        self._secret = f"{job.metadata.name}-ssh"

    def change_pod(self, pod: Manifest, _task: TaskSpec, _index: int) -> None:
        path = self._flags.text("ssh-key-file-path")
        volume = {
            "name": self._secret,
            "secret": {
                "secretName": self._secret,
                "items": [
                    {"key": key, "path": f".ssh/{key}"}
                    for key in (PRIVATE, PUBLIC, AUTHORIZED, CONFIG)
                ],
                "defaultMode": _MODE_ROOT if path == _ROOTS_PATH else _MODE_OTHERS,
            },
        }
        add_volume(pod, volume, {"name": self._secret, "mountPath": path, "subPath": ".ssh"})

    def objects(self) -> Sequence[Owned]:
        content = {"type": "Opaque", "data": {CONFIG: _b64(self._config())}}
        manifest = owned_by(self._job, SECRETS, self._secret, content)
        private = self._flags.text("ssh-private-key")
        public = self._flags.text("ssh-public-key")
        if private and public:
            return (Owned(resource=SECRETS, manifest=with_keys(manifest, private, public)),)
        return (Owned(resource=SECRETS, manifest=manifest, keys=True),)

    def _config(self) -> str:
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        port = self._flags.number("ssh-port")
        for task in self._job.spec.tasks:
            names = hosts(self._job, task)
            given = template_spec(task).get("hostname")
            for index, host in enumerate(names):
                pod = given or pod_name(self._job.metadata.name, task.name, index)
                lines += [f"Host {pod}", f"  HostName {host}", f"  Port {port}"]
        return "\n".join(lines) + "\n"


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


build: Final[type[JobPlugin]] = _Ssh
