"""Sets the version wherever a file has it, and gives the changelog its section."""

import re
from pathlib import Path

from release.changelog import with_release
from release.source import CHANGELOG, CHART, CRDS_CHART, PROJECT, SourceError, check_version


def set_version(repository: Path, version: str, date: str) -> None:
    """Change the files in the working tree; `make chart` renders deploy/tutti.yaml afterwards.

    Args:
        repository: The checkout.
        version: X.Y.Z.
        date: YYYY-MM-DD, of the changelog's section.

    Raises:
        SourceError: The version is not X.Y.Z, or a file has none.
        ChangelogError: The changelog has the section already, or nothing for it.
    """
    check_version(version)
    changelog = repository / CHANGELOG
    changed = {changelog: with_release(changelog.read_text("utf-8"), version, date)}
    for path, pattern, count in (
        (PROJECT, r'(?m)^(version = )".*"$', 1),
        (CHART, r"(?m)^((?:appV|v)ersion: ).*$", 2),
        (CRDS_CHART, r"(?m)^((?:appV|v)ersion: ).*$", 2),
    ):
        text = (repository / path).read_text("utf-8")
        written = f'"{version}"' if path == PROJECT else version
        text, found = re.subn(pattern, rf"\g<1>{written}", text)
        if found != count:
            raise SourceError(f"{path}: has {found} lines with a version, expected {count}")
        changed[repository / path] = text
    for file, content in changed.items():
        file.write_text(content, "utf-8")
