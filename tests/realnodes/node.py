"""One node: containerd, kubelet and kube-proxy in namespaces of their own, as one process of ours.

The kernel ends all of it with that process, containers included: killing it is a power cut.
"""

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.controlplane.processes import Component
from tests.realnodes.building import NodePrograms
from tests.realnodes.images import Archive, ImageError
from tests.realnodes.machine import CGROUPS, CONTROLLERS
from tests.realnodes.networks import inside, node_network, set_link
from tests.realnodes.node_files import SOCKET, start_script, write_node_files

_OF_ALL: Final = "tutti-nodes"
_LOAD_S: Final = 300.0
_NAMESPACES: Final = ("--fork", "--kill-child", "--pid", "--mount", "--uts", "--ipc")


class Node:
    """A node that is started, and killed as by a power cut."""

    def __init__(
        self,
        number: int,
        folder: Path,
        kubeconfigs: tuple[Path, Path],
        programs: NodePrograms,
        archives: Sequence[Archive],
    ) -> None:
        """Write its files.

        Args:
            number: Its number in the network.
            folder: Its own; containers' layers are there too, so it must not be in memory.
            kubeconfigs: Of its kubelet, and of kube-proxy.
            programs: What it runs.
            archives: The images that it has.
        """
        self.name = node_name(number)
        self.folder = folder
        self._number = number
        self._cgroup = f"{_OF_ALL}/{self.name}"
        kubelet, proxy = kubeconfigs
        write_node_files(folder, self.name, number, f"/{self._cgroup}", proxy)
        script = folder / "start.sh"
        script.write_text(
            start_script(folder, self.name, number, kubelet, programs, archives), "utf-8"
        )
        command = ("/usr/bin/unshare", *_NAMESPACES, "/bin/bash", str(script))
        self._process = Component(
            self.name, inside(node_network(number), *command), folder / "start.log"
        )

    def start(self) -> None:
        """Switch it on; it registers itself with the API server within half a minute."""
        self._remove_cgroups()
        _make_cgroup(_OF_ALL)
        _make_cgroup(self._cgroup)
        set_link(self._number, "up")
        self._process.start()

    def kill(self) -> None:
        """Cut its power: at once it neither answers nor refuses anything."""
        set_link(self._number, "down")
        self._process.kill()

    def stop(self) -> None:
        """End it; repeating it does no harm."""
        if self._process.is_running:
            self._process.kill()
        self._remove_cgroups()

    def load(self, archive: Archive) -> None:
        """Give it a further image while it runs.

        Raises:
            ImageError: containerd did not take it.
        """
        # The socket is in the node's own /run: the path through a process of the node leads there.
        command = archive.import_command(address=f"/proc/{self._first_pid()}/root{SOCKET}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LOAD_S, check=False)
        if done.returncode:
            raise ImageError(f"{' '.join(command)}: {done.stderr[-2000:]}")

    def _first_pid(self) -> int:
        """The process that is the first one in the node's namespaces."""
        pid = self._process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(child)

    def log_tail(self) -> str:
        """The end of its logs, for messages."""
        tails: list[str] = []
        for log in ("start.log", "containerd.log", "kubelet.log", "kube-proxy.log"):
            path = self.folder / log
            if path.exists():
                tails += [f"--- {log}", *path.read_text(errors="replace").splitlines()[-12:]]
        return "\n".join(tails)

    def _remove_cgroups(self) -> None:
        """What a killed node leaves, as a reboot would: a kubelet does not start on it."""
        for controller in CONTROLLERS:
            root = CGROUPS / controller / self._cgroup
            if root.is_dir():
                below = (one for one in root.rglob("*") if one.is_dir())
                for folder in (*sorted(below, key=lambda one: -len(one.parts)), root):
                    # A process that is being ended holds its cgroup a moment longer.
                    with contextlib.suppress(OSError):
                        folder.rmdir()


def node_name(number: int) -> str:
    """Return the name under which a node registers itself."""
    return f"node-{number}"


def _make_cgroup(name: str) -> None:
    for controller in CONTROLLERS:
        (CGROUPS / controller / name).mkdir(exist_ok=True)
    # A new one may use nothing: the machine's processors and memory are copied into it.
    for setting in ("cpuset.cpus", "cpuset.mems"):
        value = (CGROUPS / "cpuset" / setting).read_text()
        (CGROUPS / "cpuset" / name / setting).write_text(value)
