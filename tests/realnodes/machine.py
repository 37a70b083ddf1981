"""What real nodes need of the machine: root, cgroups and a few Debian packages."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import cache_root
from tests.controlplane.locks import exclusive

CGROUPS: Final = Path("/sys/fs/cgroup")
#: Those in which the kubelet makes a folder for each pod.
CONTROLLERS: Final = (
    *("blkio", "cpu", "cpuacct", "cpuset", "devices"),
    *("freezer", "memory", "pids", "systemd"),
)
#: A program, and the package that brings it.
_PROGRAMS: Final = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "nft": "nftables",
    "conntrack": "conntrack",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
}
_APT_S: Final = 600.0

logger = logging.getLogger(__name__)


def missing() -> str:
    """Why no real node can run here; "" where one can. Installs packages that are absent."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "real nodes need root on Linux"
    absent = [name for name in CONTROLLERS if not os.access(CGROUPS / name, os.W_OK)]
    if absent:
        return f"real nodes need writable cgroups of version 1: there is no {', '.join(absent)}"
    if shutil.which("nsenter") is None or shutil.which("unshare") is None:
        return "there is no nsenter or no unshare"
    with exclusive(cache_root() / "realnodes" / "packages.lock"):
        return _install()


def _install() -> str:
    """Install the packages of programs that are absent; return why that was not possible."""
    packages = [package for program, package in _PROGRAMS.items() if not shutil.which(program)]
    if not packages:
        return ""
    if shutil.which("apt-get") is None:
        return f"real nodes need {', '.join(packages)}, and there is no apt-get"
    logger.warning("installing Debian packages for real nodes: %s", ", ".join(packages))
    install = ("apt-get", "install", "--yes", "--no-install-recommends", *packages)
    for command in (("apt-get", "update", "--quiet"), install):
        done = subprocess.run(
            command,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_APT_S,
        )
        if done.returncode != 0:
            why = done.stderr.strip().splitlines()[-1:]
            return f"real nodes need {', '.join(packages)}, which apt-get cannot install: {why}"
    return ""
