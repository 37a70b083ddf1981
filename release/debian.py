"""The Debian packages that the image has below Tutti: libc, OpenSSL, Python; no shell, no apt.

requirements/image.lock names each by version and hash. The machine's own apt sources (Debian 12)
serve them, into a private folder: nothing is installed, no root is needed.
"""

import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from release.oci import digest_of
from release.python_packages import BuildError, run_tool

ARCHITECTURES: Final = ("amd64", "arm64")
NAMES: Final = (
    "base-files",
    "ca-certificates",
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "netbase",
    "python3.11-minimal",
    "zlib1g",
)
_LINE: Final = re.compile(r"(\S+) (\S+) (\S+) sha256:([0-9a-f]{64})")
_HEAD: Final = (
    "# The Debian packages of the image (release/debian.py): architecture, name, version, hash.\n"
    "# Written by `make lock-image`.\n"
)


class LockError(ValueError):
    """requirements/image.lock cannot be read; the message names the line and the rule."""


class DebianPackage(NamedTuple):
    """A package of one version."""

    architecture: str
    name: str
    version: str
    sha256: str


def read_lock(text: str) -> list[DebianPackage]:
    """The packages of a lock.

    Raises:
        LockError: A line has another form, or a package is missing for an architecture.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise LockError(f"line {number}: expected `ARCHITECTURE NAME VERSION sha256:HASH`")
        found.append(DebianPackage(*match.groups()))
    expected = {(architecture, name) for architecture in ARCHITECTURES for name in NAMES}
    listed = {(one.architecture, one.name) for one in found}
    if len(found) != len(listed) or listed != expected:
        differing = sorted(" ".join(one) for one in listed ^ expected)
        raise LockError(f"each package once for each architecture: {', '.join(differing)}")
    return found


def new_lock() -> str:
    """A lock of the versions that the machine's apt sources have now.

    Raises:
        BuildError: apt failed.
    """
    lines = [_HEAD]
    with tempfile.TemporaryDirectory() as scratch:
        for architecture in ARCHITECTURES:
            paths = _download(architecture, NAMES, Path(scratch) / architecture)
            for name in NAMES:
                version = run_tool("dpkg-deb", "--field", str(paths[name]), "Version", cwd=Path())
                digest, _ = digest_of(paths[name])
                lines.append(f"{architecture} {name} {version.strip()} sha256:{digest}\n")
    return "".join(lines)


def fetch(packages: Iterable[DebianPackage], cache: Path) -> dict[DebianPackage, Path]:
    """Have each package as a file of the cache, whose hash is checked.

    Raises:
        BuildError: A version is not served any more, or its hash is another one.
    """
    cache.mkdir(parents=True, exist_ok=True)
    found = {one: cache / f"{one.sha256}.deb" for one in packages}
    missing: dict[str, list[DebianPackage]] = defaultdict(list)
    for one, path in found.items():
        if not path.exists():
            missing[one.architecture].append(one)
    for architecture, absent in missing.items():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            wanted = [f"{one.name}={one.version}" for one in absent]
            paths = _download(architecture, wanted, Path(scratch))
            for one in absent:
                _keep(one, paths[one.name], found[one])
    return found


def _keep(package: DebianPackage, downloaded: Path, target: Path) -> None:
    digest, _ = digest_of(downloaded)
    if digest != package.sha256:
        raise BuildError(
            f"{package.name}={package.version} ({package.architecture}) has the SHA-256 {digest}, "
            f"requirements/image.lock says {package.sha256}"
        )
    shutil.move(downloaded, target)


def _download(architecture: str, wanted: Iterable[str], folder: Path) -> Mapping[str, Path]:
    """Path of each downloaded package by its name."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise BuildError("apt-get and dpkg-deb are needed: build on Debian 12 (docs/releasing.md)")
    debs = folder / "debs"
    for one in (debs, folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
        one.mkdir(parents=True)
    (folder / "status").touch()
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures::": architecture,
        # apt refuses to look for a user of its own in a folder that only ours may enter.
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "1",
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
    }
    apt = ("apt-get", *(f"--option={name}={value}" for name, value in options.items()))
    run_tool(*apt, "update", "--quiet=2", cwd=debs)
    try:
        run_tool(*apt, "download", "--quiet=2", *wanted, cwd=debs)
    except BuildError as error:
        raise BuildError(
            f"{error}\nIf Debian has a newer version: `make lock-image`, then commit"
        ) from error
    return {path.name.partition("_")[0]: path for path in debs.glob("*.deb")}


def triplet(architecture: str) -> str:
    """How Debian names the folders of an architecture's libraries."""
    return {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[architecture]


def loader(architecture: str) -> str:
    """Path of the dynamic loader inside the image."""
    name = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}[architecture]
    return f"lib/{triplet(architecture)}/{name}"


def native() -> str:
    """Debian's name of this machine's architecture.

    Raises:
        BuildError: The image is not built for it.
    """
    machine = os.uname().machine
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    if machine not in names:
        raise BuildError(f"this machine is {machine}: build on {' or '.join(names)}")
    return names[machine]
