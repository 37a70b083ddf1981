"""Sections of CHANGELOG.md, which is in the format of Keep a Changelog."""

import re
from typing import Final

_HEADING: Final = re.compile(
    r"^## (?:\[?(?P<version>\d+\.\d+\.\d+)\]? - (?P<date>\d{4}-\d{2}-\d{2})|\[?Unreleased\]?)$",
    re.MULTILINE,
)
_ANY_HEADING: Final = re.compile(r"^## .*$", re.MULTILINE)
_UNRELEASED: Final = re.compile(r"^## \[?Unreleased\]?\n", re.MULTILINE)


class ChangelogError(ValueError):
    """The changelog has no such section, or a heading of no known form."""


def section_of(text: str, version: str) -> str:
    """The section of a version, without its heading.

    Raises:
        ChangelogError: There is none, it is empty, or a heading has another form.
    """
    headings = list(_ANY_HEADING.finditer(text))
    for number, heading in enumerate(headings):
        found = _HEADING.fullmatch(heading[0])
        if found is None:
            raise ChangelogError(
                f"heading {heading[0]!r}: expected `## Unreleased` or `## X.Y.Z - YYYY-MM-DD`"
            )
        if found["version"] == version:
            after = headings[number + 1].start() if number + 1 < len(headings) else len(text)
            section = text[heading.end() : after].strip()
            if not section:
                raise ChangelogError(f"the section {version} is empty")
            return section
    raise ChangelogError(
        f"no section {version}: `make version VERSION={version}` makes it of `## Unreleased`"
    )


def with_release(text: str, version: str, date: str) -> str:
    """The changelog after `## Unreleased` has become this version's section.

    Args:
        text: The changelog.
        version: X.Y.Z.
        date: YYYY-MM-DD.

    Raises:
        ChangelogError: Nothing is unreleased, or the version has a section already.
    """
    if re.search(rf"^## \[?{re.escape(version)}\]?(?: |$)", text, re.MULTILINE):
        raise ChangelogError(f"the section {version} is there already")
    heading = _UNRELEASED.search(text)
    if heading is None:
        raise ChangelogError("no heading `## Unreleased`")
    rest = text[heading.end() :]
    following = _ANY_HEADING.search(rest)
    if not rest[: following.start() if following else len(rest)].strip():
        raise ChangelogError("nothing is under `## Unreleased`")
    return f"{text[: heading.end()]}\n## {version} - {date}\n{rest}"
