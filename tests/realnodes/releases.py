"""The releases that the nodes run: `make release` of the checkout's commit, and of a former one.

Each is built in a clone and kept in the cache, by its commit. Changes that are not committed are
not in it, which is reported.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane.go_builds import cache_root
from tests.controlplane.locks import exclusive
from tests.release.building import IMAGE_LOCK, ROOT, VERSION, make_release, prepared_clone
from tests.support.progress import reported

#: Nothing is served there: nodes have the image, and the chart names it by its digest.
REPOSITORY: Final = "registry.test/acme/tutti"
FORMER_VERSION: Final = "98.7.5"
#: The commit on which `make release` came to the main branch. No version is released yet.
FORMER_COMMIT: Final = "930c335db643"
_KEPT: Final = 3
_DOWNLOADS_BYTES_MAX: Final = 2 * 2**30
_HIGHLY_AVAILABLE: Final = "values-ha.yaml"
#: What is kept of a release, without the archives for users' machines.
_FILES: Final = (
    *("tutti-image-{}.oci.tar", "tutti-{}.tgz", "tutti-crds-{}.tgz", "tutti-crds-{}.yaml"),
    "RELEASE-NOTES.md",
)


class MissingCommitError(LookupError):
    """This clone does not have the commit; the message names it."""


@dataclass(frozen=True)
class Release:
    """The artefacts of one version that an operator of a cluster uses.

    Attributes:
        version: X.Y.Z.
        folder: Where they are.
    """

    version: str
    folder: Path

    @property
    def image(self) -> Path:
        """The archive of the image, an OCI layout."""
        return self.folder / f"tutti-image-{self.version}.oci.tar"

    @property
    def chart(self) -> Path:
        """The packed chart."""
        return self.folder / f"tutti-{self.version}.tgz"

    @property
    def crds_chart(self) -> Path:
        """The packed chart of the CRDs."""
        return self.folder / f"tutti-crds-{self.version}.tgz"

    @property
    def crds(self) -> Path:
        """The CRDs for `kubectl apply`."""
        return self.folder / f"tutti-crds-{self.version}.yaml"

    @property
    def highly_available(self) -> Path:
        """The chart's own values for three servers of NATS."""
        return self.folder / _HIGHLY_AVAILABLE


@functools.cache
def present_release() -> Release:
    """The release of the checkout's commit, built first if no cache has it: minutes for a commit.

    Raises:
        AssertionError: `make release` failed, with the end of what it printed.
    """
    changed = _git("status", "--porcelain").splitlines()
    if changed:
        about = f"{len(changed)} files with changes that are not committed are not in it"
        with reported("using a release of the checkout's commit", about):
            return _ensure(VERSION, "HEAD", signed=True)
    return _ensure(VERSION, "HEAD", signed=True)


@functools.cache
def former_release() -> Release:
    """The release of the former version, built as the present one, but not signed: at that commit
    the signature was in the archive of the image, which containerd then refused.

    Raises:
        MissingCommitError: This clone is too shallow for it.
        AssertionError: `make release` failed, with the end of what it printed.
    """
    return _ensure(FORMER_VERSION, FORMER_COMMIT, signed=False)


def _ensure(version: str, commit: str, *, signed: bool) -> Release:
    try:
        full = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError as error:
        raise MissingCommitError(f"this clone does not have commit {commit}") from error
    lock = _git("show", f"HEAD:{IMAGE_LOCK}")
    inputs = hashlib.sha256(f"{version} {full} {REPOSITORY}\n{lock}".encode()).hexdigest()
    folder = cache_root() / "realnodes" / "releases" / f"{full[:12]}-{inputs[:8]}"
    with exclusive(folder.parent / "lock"):
        if not folder.exists():
            with reported(f"building the release of commit {full[:12]}", "minutes, once a commit"):
                _build(version, full, folder, signed=signed)
        os.utime(folder)
        _delete_old(folder.parent)
    return Release(version, folder)


def _build(version: str, commit: str, folder: Path, *, signed: bool) -> None:
    """Fill the folder; it exists only if all went well."""
    with tempfile.TemporaryDirectory(prefix="tutti-release-", dir="/var/tmp") as scratch:
        clone = prepared_clone(Path(scratch) / "clone", version, commit)
        downloads = folder.parent / "downloads"
        _limit(downloads)
        downloads.mkdir(exist_ok=True)
        (clone / "build").mkdir(exist_ok=True)
        (clone / "build" / "release-cache").symlink_to(downloads)
        output = Path("dist") / "made"
        made = make_release(clone, output, REPOSITORY, version, signed=signed)
        kept = Path(tempfile.mkdtemp(prefix="incomplete-", dir=folder.parent))
        for pattern in _FILES:
            shutil.copy2(made.folder / pattern.format(version), kept)
        with tarfile.open(made.folder / f"tutti-{version}.tgz") as chart:
            values = chart.extractfile(f"tutti/{_HIGHLY_AVAILABLE}")
            assert values is not None
            (kept / _HIGHLY_AVAILABLE).write_bytes(values.read())
        kept.rename(folder)


def _delete_old(folder: Path) -> None:
    """Keep the releases that were used last; what a killed build left goes first."""
    incomplete = list(folder.glob("incomplete-*"))
    complete = [one for one in folder.glob("*-*") if one not in incomplete]
    by_use = sorted(complete, key=lambda one: one.stat().st_mtime, reverse=True)
    for one in (*incomplete, *by_use[_KEPT:]):
        shutil.rmtree(one)


def _limit(folder: Path) -> None:
    """Delete kept downloads if there are too many of them."""
    files = [one for one in folder.rglob("*") if one.is_file()]
    if sum(one.stat().st_size for one in files) > _DOWNLOADS_BYTES_MAX:
        shutil.rmtree(folder)


def _git(*arguments: str) -> str:
    command = ("git", "-C", str(ROOT), *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()
