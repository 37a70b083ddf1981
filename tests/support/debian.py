"""Installs Debian packages that a test needs."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.go_builds import cache_root
from tests.controlplane.locks import exclusive
from tests.support.progress import reported

_APT_S: Final = 600.0


def lacking(wanted: Mapping[str, str]) -> str | None:
    """Install what is absent; return why that was not possible, None if all is there.

    Args:
        wanted: By the name of a program, or the absolute path of a file (which may have a `*`):
            the package that brings it.
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with exclusive(root / "debian-packages.lock"):
        packages = sorted({package for what, package in wanted.items() if not _is_there(what)})
        return _install(packages) if packages else None


def _is_there(what: str) -> bool:
    path = Path(what)
    if path.is_absolute():
        return any(Path("/").glob(what.lstrip("/")))
    return shutil.which(what) is not None


def _install(packages: list[str]) -> str | None:
    named = ", ".join(packages)
    if shutil.which("apt-get") is None:
        return f"{named} is needed, and there is no apt-get"
    if os.geteuid() != 0:
        return f"{named} is needed, and only root can install it"
    with reported(f"installing the Debian packages {named}", "less than a minute"):
        return _apt_install(packages)


def _apt_install(packages: list[str]) -> str | None:
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
            why = " ".join(done.stderr.strip().splitlines()[-1:])
            return f"{', '.join(packages)} is needed, which apt-get cannot install: {why}"
    return None
