"""The commit that is released, and its files in a folder of their own."""

import re
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from release.changelog import ChangelogError, section_of

_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
PROJECT: Final = "pyproject.toml"
CHART: Final = "deploy/chart/Chart.yaml"
CRDS_CHART: Final = "deploy/crds-chart/Chart.yaml"
CHANGELOG: Final = "CHANGELOG.md"


class SourceError(RuntimeError):
    """The checkout cannot be released; the message names the file and the rule."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A released commit.

    Attributes:
        folder: Its files, without those that git does not know.
        commit: Its full hash.
        epoch: Seconds since 1970 when it was made: the time of every file in every artefact.
        version: X.Y.Z.
        notes: The section of the changelog for this version, without its heading.
    """

    folder: Path
    commit: str
    epoch: int
    version: str
    notes: str


def export(repository: Path, version: str, folder: Path) -> Source:
    """Write the files of the repository's current commit into an empty folder.

    Raises:
        SourceError: The working tree differs from the commit, or the commit is another version.
    """
    check_version(version)
    changed = _git(repository, "status", "--porcelain")
    if changed:
        raise SourceError(f"not committed (commit or remove it first):\n{changed}")
    commit = _git(repository, "rev-parse", "HEAD")
    epoch = int(_git(repository, "show", "--no-patch", "--format=%ct", "HEAD"))
    archive = folder.parent / f"{folder.name}.tar"
    _git(repository, "archive", "--format=tar", f"--output={archive}", commit)
    folder.mkdir(parents=True)
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="tar")
    archive.unlink()
    notes = _checked_notes(folder, version)
    return Source(folder=folder, commit=commit, epoch=epoch, version=version, notes=notes)


def check_version(version: str) -> None:
    """Raise SourceError unless the version is X.Y.Z: what wheels, charts and krew agree about."""
    if not _VERSION.fullmatch(version):
        raise SourceError(f"VERSION is {version!r}: expected X.Y.Z, such as 0.2.0")


def _checked_notes(folder: Path, version: str) -> str:
    for path, found in versions_of(folder):
        if found != version:
            raise SourceError(
                f"{path} is version {found}, not {version}: "
                f"`make version VERSION={version}` changes it, then commit"
            )
    try:
        return section_of((folder / CHANGELOG).read_text("utf-8"), version)
    except ChangelogError as error:
        raise SourceError(f"{CHANGELOG}: {error}") from error


def versions_of(folder: Path) -> list[tuple[str, str]]:
    """Every place that has the version, as a path and field, with what is there."""
    project = tomllib.loads((folder / PROJECT).read_text("utf-8"))
    found = [(f"{PROJECT}: project.version", str(project["project"]["version"]))]
    for path in (CHART, CRDS_CHART):
        chart = yaml.safe_load((folder / path).read_text("utf-8"))
        found += [(f"{path}: {name}", str(chart[name])) for name in ("version", "appVersion")]
    return found


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ("git", "-C", str(repository), *arguments), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SourceError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
