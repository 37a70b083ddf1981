"""Starts and stops one real control plane on loopback, and breaks its parts on request.

Synchronous on purpose: it runs in session fixtures, scripts and benchmarks. From asyncio call it
in a thread (``asyncio.to_thread``).
"""

import http.client
import re
import ssl
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.controlplane.binaries import Binaries, ensure_binaries
from tests.controlplane.certificates import Authority
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
from tests.controlplane.processes import Component, ComponentError, ReservedPort
from tests.controlplane.workspace import Workspace
from tests.rights.audit import apiserver_args
from tests.support.timers import stopped_timer

ADMIN_GROUPS = ("system:masters",)
# Servers do not announce that they are ready; they are polled this often.
READY_POLL_S = 0.02
KUBECTL_TIMEOUT_S = 180.0
CRDS_TIMEOUT_S = 30.0
_READY_PATHS = {
    ETCD: "/health",
    APISERVER: "/readyz",
    CONTROLLER_MANAGER: "/healthz",
    SCHEDULER: "/readyz",
}


class KubectlError(RuntimeError):
    """kubectl ended with an error; the message is what it printed."""


class ControlPlane:
    """etcd and kube-apiserver, and on request the controllers and the default scheduler.

    A context manager. ``stop`` may be called at any time and any number of times; after it nothing
    is left of processes, ports and files. Component names are those of the binaries.
    """

    def __init__(
        self, options: ControlPlaneOptions | None = None, *, binaries: Binaries | None = None
    ) -> None:
        self.options = options or ControlPlaneOptions()
        self.binaries = binaries or ensure_binaries()
        self.authority = Authority()
        self._components: dict[str, Component] = {}
        self._ports: dict[str, ReservedPort] = {}
        self._workspace: Workspace | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def dir(self) -> Path:
        """The working folder: logs, keys, kubeconfigs.

        Raises:
            ComponentError: the control plane is not running.
        """
        if self._workspace is None:
            raise ComponentError("the control plane is not running")
        return self._workspace.path

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._ports[APISERVER].number}"

    @property
    def etcd_server(self) -> str:
        """etcd's address, for what would take the API server minutes."""
        return f"http://127.0.0.1:{self._ports[ETCD].number}"

    @property
    def admin_kubeconfig(self) -> Path:
        """A kubeconfig that may do everything."""
        return Files(root=self.dir).admin_kubeconfig

    def start(self) -> None:
        """Start everything and return when all of it is ready.

        Raises:
            ComponentError: a component ended or was not ready in time; all are stopped by then.
        """
        if self._workspace is not None:
            raise ComponentError("the control plane is running already")
        try:
            self._workspace = Workspace(self.options.parent_dir)
            self._prepare(Files(root=self._workspace.path))
            for name in self._components:
                self._start(name)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every component, those that depend on others first, and remove the folder."""
        for component in reversed(self._components.values()):
            component.stop()
        for port in self._ports.values():
            port.release()
        if self._workspace is not None:
            self._workspace.close()
        self._components, self._ports, self._workspace = {}, {}, None

    def pid(self, name: str) -> int:
        """Return a component's process id, for measurements."""
        return self._component(name).pid

    def runs(self, name: str) -> bool:
        """Whether a component was started and has not ended since."""
        return self._component(name).is_running

    def kill(self, name: str) -> None:
        """Kill a component without warning."""
        self._component(name).kill()

    def pause(self, name: str) -> None:
        """Freeze a component: connections stay open without answers."""
        self._component(name).pause()

    def resume(self, name: str) -> None:
        """Let a paused component continue."""
        self._component(name).resume()

    def restart(self, name: str) -> None:
        """Stop a component if it runs, start it on the same port, and wait until it is ready."""
        self._component(name).stop()
        self._start(name)

    def replace_apiserver(self, binaries: Binaries, apiserver_args: Sequence[str]) -> None:
        """Stop the API server and start that of other binaries, with these arguments at the end of
        its command line: on the same port, with the same etcd. Returns when it is ready.
        """
        self._component(APISERVER).stop()
        options = replace(self.options, apiserver_args=apiserver_args)
        files = Files(root=self.dir)
        command = self._apiserver_command(binaries, files, options)
        self._components[APISERVER] = Component(APISERVER, command, files.log(APISERVER))
        self._start(APISERVER)

    def log_tail(self, name: str, lines: int = 25) -> str:
        """Return the last lines a component logged."""
        return self._component(name).log_tail(lines)

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a client certificate for this user, who has no rights yet."""
        return self._write_kubeconfig(self.dir / f"{_slug(user)}.kubeconfig", user, groups)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig with an hour's token of an existing service account."""
        token = self.kubectl("create", "token", name, f"--namespace={namespace}").strip()
        path = self.dir / f"{_slug(namespace)}-{_slug(name)}.token.kubeconfig"
        ca_pem = self.authority.certificate_pem
        return write_kubeconfig(
            path, server=self.server, ca_pem=ca_pem, credentials=token, namespace=namespace
        )

    def kubectl(
        self, *arguments: str, kubeconfig: Path | None = None, stdin: str | None = None
    ) -> str:
        """Run the real kubectl, as administrator by default, and return what it printed.

        Raises:
            KubectlError: it exited with an error.
        """
        command = [
            str(self.binaries.kubectl),
            f"--kubeconfig={kubeconfig or self.admin_kubeconfig}",
        ]
        # Its caches of discovery and its kuberc stay in our folder.
        environ = {"HOME": str(self.dir), "PATH": ""}
        done = subprocess.run(
            [*command, *arguments],
            input=stdin,
            env=environ,
            capture_output=True,
            text=True,
            timeout=KUBECTL_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise KubectlError(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    @stopped_timer()
    def install_crds(self, folder: Path) -> None:
        """Apply the CRDs in a folder and wait until the API server serves them."""
        found = ("--recursive", f"--filename={folder}")
        self.kubectl("apply", "--server-side", *found)
        deadline_s = time.monotonic() + CRDS_TIMEOUT_S
        while True:
            try:
                self.kubectl("wait", "--for=condition=Established", *found, "--timeout=150s")
            except KubectlError as error:
                # kubectl does not wait for a CRD that has no conditions yet: it gives up at once.
                if "accessor error" not in str(error) or time.monotonic() > deadline_s:
                    raise
                time.sleep(READY_POLL_S)
            else:
                return

    def _prepare(self, files: Files) -> None:
        """Write keys and certificates, reserve the ports, and compose the commands."""
        options, binaries = self.options, self.binaries
        ports = {name: ReservedPort() for name in (ETCD, "etcd-peer", APISERVER)}
        self._ports = ports
        names = ("localhost", "127.0.0.1", "kubernetes.default.svc")
        write_certificates(files, self.authority, names)
        self._write_kubeconfig(files.admin_kubeconfig, "admin", ADMIN_GROUPS)
        etcd_port = ports[ETCD].number
        commands = {
            ETCD: etcd_command(
                binaries,
                files,
                options,
                client_port=etcd_port,
                peer_port=ports["etcd-peer"].number,
            ),
            APISERVER: self._apiserver_command(binaries, files, options),
        }
        if options.controllers:
            port = ports[CONTROLLER_MANAGER] = ReservedPort()
            commands[CONTROLLER_MANAGER] = controller_manager_command(
                binaries, files, options, port=port.number
            )
        if options.scheduler:
            port = ports[SCHEDULER] = ReservedPort()
            commands[SCHEDULER] = scheduler_command(binaries, files, options, port=port.number)
        self._components = {
            name: Component(name, command, files.log(name)) for name, command in commands.items()
        }

    def _apiserver_command(
        self, binaries: Binaries, files: Files, options: ControlPlaneOptions
    ) -> list[str]:
        return apiserver_command(
            binaries,
            files,
            replace(options, apiserver_args=(*options.apiserver_args, *apiserver_args())),
            port=self._ports[APISERVER].number,
            etcd_port=self._ports[ETCD].number,
        )

    @stopped_timer()
    def _start(self, name: str) -> None:
        component = self._component(name)
        component.start()
        deadline_s = time.monotonic() + self.options.start_timeout_s
        while not self._is_ready(name):
            if not component.is_running:
                raise ComponentError(f"{name} ended at its start; its log:\n{component.log_tail()}")
            if time.monotonic() > deadline_s:
                timeout = f"{name} is not ready after {self.options.start_timeout_s:.0f} s"
                raise ComponentError(f"{timeout}; its log:\n{component.log_tail()}")
            time.sleep(READY_POLL_S)

    def _is_ready(self, name: str) -> bool:
        """Ask once; whatever goes wrong on the way means not yet."""
        port = self._ports[name].number
        connection: http.client.HTTPConnection
        if name == ETCD:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        else:
            # The controllers and the scheduler sign for themselves; this probe carries no secret.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context)
        try:
            connection.request("GET", _READY_PATHS[name])
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _component(self, name: str) -> Component:
        component = self._components.get(name)
        if component is None:
            known = ", ".join(self._components) or "none"
            raise ComponentError(f"no component {name!r} here (there are: {known})")
        return component

    def _write_kubeconfig(self, path: Path, user: str, groups: Sequence[str]) -> Path:
        pair = self.authority.client(user, groups)
        ca_pem = self.authority.certificate_pem
        return write_kubeconfig(path, server=self.server, ca_pem=ca_pem, credentials=pair)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name)
