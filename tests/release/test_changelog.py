"""The changelog has a section for each version, and a release takes its own."""

from pathlib import Path

import pytest

from release.changelog import ChangelogError, section_of, with_release
from release.source import CHANGELOG

_ROOT = Path(__file__).parents[2]
_TEXT = """# Changelog

## Unreleased

### Added

- Something.

## 0.2.0 - 2026-01-02

- Second.

## [0.1.0] - 2026-01-01

- First.
"""


@pytest.mark.parametrize(("version", "section"), [("0.2.0", "- Second."), ("0.1.0", "- First.")])
def test_a_version_has_its_section(version: str, section: str) -> None:
    assert section_of(_TEXT, version) == section


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (_TEXT, "no section 0.3.0"),
        ("## 0.3.0 - 2026-01-02\n\n## 0.2.0 - 2026-01-01\n- a\n", "the section 0.3.0 is empty"),
        ("## Version 0.3.0\n- a\n", "heading '## Version 0.3.0': expected `## Unreleased` or"),
    ],
)
def test_what_is_missing_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ChangelogError) as raised:
        section_of(text, "0.3.0")
    assert complaint in str(raised.value)


def test_what_is_unreleased_becomes_the_section_of_a_version() -> None:
    made = with_release(_TEXT, "0.3.0", "2026-02-03")
    assert "## Unreleased\n\n## 0.3.0 - 2026-02-03\n\n### Added" in made
    assert section_of(made, "0.3.0") == "### Added\n\n- Something."
    assert section_of(made, "0.2.0") == "- Second."


@pytest.mark.parametrize(
    ("text", "version", "complaint"),
    [
        (_TEXT, "0.1.0", "the section 0.1.0 is there already"),
        ("## 0.1.0 - 2026-01-01\n- a\n", "0.2.0", "no heading `## Unreleased`"),
        ("## Unreleased\n\n## 0.1.0 - 2026-01-01\n- a\n", "0.2.0", "nothing is under"),
    ],
)
def test_a_section_is_not_made_twice_or_of_nothing(text: str, version: str, complaint: str) -> None:
    with pytest.raises(ChangelogError) as raised:
        with_release(text, version, "2026-02-03")
    assert complaint in str(raised.value)


def test_our_own_changelog_has_the_form() -> None:
    text = (_ROOT / CHANGELOG).read_text("utf-8")
    assert section_of(with_release(text, "99.0.0", "2099-01-01"), "99.0.0")
