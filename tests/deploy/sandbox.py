"""One container as a process: what it sees is what an image and the pod's volumes would show it.

No engine: `unshare` gives it a mount and a host name of its own, a folder in memory becomes its
root, and into that the interpreter, the checkout and the volumes are mounted. It has the pod's
user, no capability, and the root is read-only if the container says so. Root is needed for that.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.client import Object

_CHECKOUT: Final = Path(__file__).parents[2]
#: The image's part of the world, as far as Linux distributions have it.
_IMAGE: Final = ("/usr", "/bin", "/lib", "/lib64", "/etc/ssl", "/etc/ld.so.cache", "/proc", "/dev")
_USERS: Final = "root:x:0:0:root:/:/bin/sh\n"
#: An image has its programs on PATH; so has the checkout.
_PATH: Final = f"{Path(sys.executable).parent}:/usr/bin:/bin"


class Mount(NamedTuple):
    """A folder of the pod's, and where the container sees it."""

    source: Path
    target: str
    read_only: bool


class Identity(NamedTuple):
    """Whose process it is, by the pod's and the container's security contexts."""

    user: int
    group: int


def missing() -> str:
    """Why no container can be run here; "" where it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "containers as processes need root on Linux"
    absent = [tool for tool in ("unshare", "setpriv", "chroot") if shutil.which(tool) is None]
    return f"there is no {', '.join(absent)}" if absent else ""


def identity(pod: Object, container: Object) -> Identity:
    """As the kubelet finds it.

    Raises:
        ValueError: It would be root although it must not be.
    """
    of_pod = pod["spec"].get("securityContext") or {}
    merged = {**of_pod, **(container.get("securityContext") or {})}
    user = int(merged.get("runAsUser", 0))
    if merged.get("runAsNonRoot") and user == 0:
        raise ValueError(f"container {container['name']} has runAsNonRoot and will run as root")
    return Identity(user, int(merged.get("runAsGroup", 0)))


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` in a command or an argument; what is not known stays."""
    for name, value in variables.items():
        text = text.replace(f"$({name})", value)
    return text


def script(
    pod: Object,
    container: Object,
    mounts: Sequence[Mount],
    variables: Mapping[str, str],
    root: Path,
) -> str:
    """The shell script that becomes the container's process; run it under `unshare -m -u`.

    Args:
        pod: The pod as stored.
        container: One of its containers.
        mounts: Its volumes, laid out, and `/etc/hosts`.
        variables: Its environment.
        root: An empty folder.
    """
    user = identity(pod, container)
    security = container.get("securityContext") or {}
    read_only = bool(security.get("readOnlyRootFilesystem"))
    lines = ["set -e", f"hostname {shlex.quote(pod['metadata']['name'])}"]
    lines.append(f"mount -t tmpfs -o mode=0755 tmpfs {root}")
    image = [*_IMAGE, sys.base_prefix, str(_CHECKOUT)]
    for source in image:
        if Path(source).exists():
            lines += _bound(Path(source), f"{root}{source}", read_only=source != "/dev")
    lines.append(f"printf %s {shlex.quote(_USERS)} > {root}/etc/passwd")
    for mount in mounts:
        lines += _bound(mount.source, f"{root}{mount.target}", read_only=mount.read_only)
    if read_only:
        lines.append(f"mount -o remount,ro,mode=0755 {root}")
    command = [
        expand(word, variables)
        for word in (*container.get("command", ()), *container.get("args", ()))
    ]
    environment = {"PATH": _PATH, "HOME": "/", "LANG": "C.UTF-8", **variables}
    capabilities = [] if "capabilities" not in security else ["--bounding-set=-all"]
    become = [
        "setpriv",
        f"--reuid={user.user}",
        f"--regid={user.group}",
        f"--groups={_groups(pod, user)}",
        *capabilities,
        *(["--no-new-privs"] if security.get("allowPrivilegeEscalation") is False else []),
        # The kernel forgets this with each change of credentials.
        "--pdeathsig=KILL",
    ]
    started = ["env", "-i", *(f"{name}={value}" for name, value in environment.items()), *command]
    lines.append(f"exec chroot {root} {shlex.join([*become, *started])}")
    return "\n".join(lines) + "\n"


def _bound(source: Path, target: str, *, read_only: bool) -> list[str]:
    """Show a folder or a file of ours at the target."""
    quoted = shlex.quote(target)
    if source.is_dir():
        lines = [f"mkdir -p {quoted}"]
    else:
        lines = [f"mkdir -p {shlex.quote(str(Path(target).parent))}", f"touch {quoted}"]
    lines.append(f"mount --bind {shlex.quote(str(source))} {quoted}")
    if read_only:
        lines.append(f"mount -o remount,ro,bind {quoted}")
    return lines


def _groups(pod: Object, user: Identity) -> str:
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup", user.group)
    return str(group)
