"""Only a clean commit of the asked version is released, and only what is committed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from release.source import CHANGELOG, CHART, CRDS_CHART, PROJECT, SourceError, export
from release.versions import set_version

_ROOT = Path(__file__).parents[2]
_AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that have a version, at version 1.2.3."""
    folder = tmp_path / "checkout"
    for name in (PROJECT, CHART, CRDS_CHART, CHANGELOG):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_ROOT / name, folder / name)
    set_version(folder, "1.2.3", "2026-02-03")
    _git(folder, "init", "--quiet")
    _commit(folder)
    return folder


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ("git", "-C", str(folder), *_AUTHOR, *arguments), check=True, capture_output=True
    )


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message=x", "--date=2026-02-03T04:05:06Z")


def test_a_commit_is_exported_with_its_notes(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".gitignore").write_text("ignored\n")
    _commit(checkout)
    (checkout / "ignored").write_text("not committed")
    source = export(checkout, "1.2.3", tmp_path / "exported")
    assert sorted(path.name for path in source.folder.iterdir()) == [
        ".gitignore",
        CHANGELOG,
        "deploy",
        PROJECT,
    ]
    assert len(source.commit) == 40
    assert source.notes
    assert not source.notes.startswith("## ")


def test_a_changed_checkout_is_refused(checkout: Path, tmp_path: Path) -> None:
    (checkout / "new").write_text("x")
    with pytest.raises(SourceError, match="not committed") as raised:
        export(checkout, "1.2.3", tmp_path / "exported")
    assert "?? new" in str(raised.value)


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3rc1", "01.2.3", "1.2.3\n", ""])
def test_another_form_of_a_version_is_refused(version: str, checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"expected X\.Y\.Z"):
        export(checkout, version, tmp_path / "exported")


@pytest.mark.parametrize(
    ("file", "old", "complaint"),
    [
        (PROJECT, 'version = "1.2.3"', f"{PROJECT}: project.version is version 1.2.4, not 1.2.3"),
        (CHART, "appVersion: 1.2.3", f"{CHART}: appVersion is version 1.2.4, not 1.2.3"),
        (CRDS_CHART, "\nversion: 1.2.3", f"{CRDS_CHART}: version is version 1.2.4, not 1.2.3"),
        (CHANGELOG, "## 1.2.3 - ", f"{CHANGELOG}: no section 1.2.3"),
    ],
)
def test_a_file_of_another_version_is_named(
    file: str, old: str, complaint: str, checkout: Path, tmp_path: Path
) -> None:
    text = (checkout / file).read_text("utf-8")
    assert old in text
    (checkout / file).write_text(text.replace(old, old.replace("1.2.3", "1.2.4")), "utf-8")
    _commit(checkout)
    with pytest.raises(SourceError) as raised:
        export(checkout, "1.2.3", tmp_path / "exported")
    assert complaint in str(raised.value)


def test_a_file_without_a_version_leaves_all_files_as_they_were(checkout: Path) -> None:
    (checkout / CRDS_CHART).write_text("name: tutti-crds\n")
    changelog = (checkout / CHANGELOG).read_text("utf-8")
    changelog = changelog.replace("## Unreleased\n", "## Unreleased\n\n- More.\n")
    (checkout / CHANGELOG).write_text(changelog, "utf-8")
    with pytest.raises(SourceError, match="has 0 lines with a version, expected 2"):
        set_version(checkout, "1.2.4", "2026-02-04")
    assert (checkout / CHANGELOG).read_text("utf-8") == changelog
