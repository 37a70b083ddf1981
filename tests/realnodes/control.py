"""The control plane of real nodes: as `tests.controlplane` runs it, in a network of its own.

Nodes have to reach it, so it has an address on their bridge; it authorizes nodes as Kubernetes
does, and runs every controller, the nodes' as well.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import Binaries
from tests.controlplane.certificates import Authority
from tests.controlplane.cluster import ADMIN_GROUPS
from tests.controlplane.components import (
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    SCHEDULER,
    ControlPlaneOptions,
    Files,
    apiserver_command,
    controller_manager_command,
    etcd_command,
    scheduler_command,
    write_certificates,
)
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.controlplane.processes import Component, ComponentError
from tests.realnodes.networks import CONTROL, FIRST_SERVICE, GATEWAY, inside

_PORT: Final = 6443
_NAMES: Final = "names"
_START_S: Final = 180.0
_POLL_S: Final = 0.2
_COMMAND_S: Final = 900.0
#: PodGroups of Kubernetes itself, in the version that the pinned minor serves.
KUBERNETES_GROUPS: Final = "scheduling.k8s.io/v1alpha2"
_GATE: Final = "--feature-gates=GenericWorkload=true"
_OPTIONS: Final = ControlPlaneOptions(
    controllers=("*",),
    scheduler=True,
    disable_admission_plugins=(),
    apiserver_args=(
        f"--bind-address={GATEWAY}",
        f"--advertise-address={GATEWAY}",
        # Beside RBAC: the flag adds to what is there.
        "--authorization-mode=Node",
        "--enable-admission-plugins=NodeRestriction",
        "--endpoint-reconciler-type=lease",
        # Webhooks are reached at their pods' addresses: this namespace needs no kube-proxy.
        "--enable-aggregator-routing=true",
        "--kubelet-preferred-address-types=InternalIP",
        _GATE,
        f"--runtime-config={KUBERNETES_GROUPS}=true",
    ),
    # It deletes PodGroups finally.
    controller_manager_args=("--use-service-account-credentials=true", _GATE),
)


class ToolError(RuntimeError):
    """kubectl or Helm ended with an error; the message is what it printed."""


class RealControlPlane:
    """etcd, the API server, all controllers, kube-scheduler and the server of names."""

    def __init__(self, folder: Path, data: Path, binaries: Binaries) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._binaries = binaries
        self._authority = Authority()
        self._server = f"https://{GATEWAY}:{_PORT}"
        files = Files(root=folder)
        object.__setattr__(files, "etcd_data", data)
        self._files = files
        self.admin_kubeconfig = self.kubeconfig("admin", ADMIN_GROUPS)
        self._components = {
            name: Component(name, inside(CONTROL, *command), files.log(name))
            for name, command in self._commands().items()
        }

    def kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a client certificate for this user."""
        path = self._files.root / f"{user.replace(':', '-')}.kubeconfig"
        if user == "admin":
            path = self._files.admin_kubeconfig
        pair = self._authority.client(user, groups)
        ca_pem = self._authority.certificate_pem
        return write_kubeconfig(path, server=self._server, ca_pem=ca_pem, credentials=pair)

    def start(self) -> None:
        """Start everything, and return when the API server is ready.

        Raises:
            ComponentError: A component ended, or the API server was not ready in time.
        """
        for name, component in self._components.items():
            component.start()
            if name == APISERVER:
                self._wait_until_ready(component)

    def stop(self) -> None:
        """End everything, what depends on others first."""
        for component in reversed(self._components.values()):
            component.stop()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator and return what it printed. Raises ToolError."""
        return self.run(str(self._binaries.kubectl), *arguments, stdin=stdin)

    def run(self, program: str, *arguments: str, stdin: str | None = None) -> str:
        """Run a client of the API server as administrator. Raises ToolError."""
        done = subprocess.run(
            inside(CONTROL, program, *arguments),
            env={
                "HOME": str(self._files.root),
                "PATH": "",
                "KUBECONFIG": str(self.admin_kubeconfig),
            },
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
        if done.returncode != 0:
            raise ToolError(f"{done.stderr.strip()}\n{done.stdout.strip()}")
        return done.stdout

    def _wait_until_ready(self, component: Component) -> None:
        deadline_s = time.monotonic() + _START_S
        while True:
            if not component.is_running:
                raise ComponentError(f"{component.name} ended:\n{component.log_tail()}")
            try:
                self.kubectl("get", "--raw=/readyz")
            except ToolError as error:
                if time.monotonic() > deadline_s:
                    raise ComponentError(f"{error}:\n{component.log_tail()}") from error
                time.sleep(_POLL_S)
            else:
                return

    def _commands(self) -> dict[str, list[str]]:
        files, binaries = self._files, self._binaries
        reached_as = ("kubernetes.default.svc", GATEWAY, FIRST_SERVICE)
        write_certificates(files, self._authority, reached_as)
        names = ("-m", "tests.realnodes.names", str(self.admin_kubeconfig), GATEWAY)
        return {
            ETCD: etcd_command(binaries, files, _OPTIONS, client_port=2379, peer_port=2380),
            APISERVER: apiserver_command(binaries, files, _OPTIONS, port=_PORT, etcd_port=2379),
            CONTROLLER_MANAGER: controller_manager_command(binaries, files, _OPTIONS, port=10257),
            SCHEDULER: scheduler_command(binaries, files, _OPTIONS, port=10259),
            _NAMES: [sys.executable, *names],
        }
