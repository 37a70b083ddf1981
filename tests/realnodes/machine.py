"""What real nodes need of the machine: root, cgroups and a few Debian packages."""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from tests.support.debian import lacking

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
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "iptables": "iptables",
    "nft": "nftables",
    "conntrack": "conntrack",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
}


def missing() -> str | None:
    """Return why no real node can run here, None if one can; install absent packages."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "real nodes need root on Linux"
    absent = [name for name in CONTROLLERS if not os.access(CGROUPS / name, os.W_OK)]
    if absent:
        return f"real nodes need writable cgroups of version 1: there is no {', '.join(absent)}"
    if shutil.which("nsenter") is None or shutil.which("unshare") is None:
        return "there is no nsenter or no unshare"
    return lacking(_PROGRAMS)
