"""Links lead somewhere, and every decision is in the index under its own number."""

from pathlib import Path

import pytest

from tests.documents.links import (
    DECISIONS,
    INDEX,
    ROOT,
    broken,
    decisions,
    documents,
    index,
    missing_paths,
)


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken(page, page.read_text())) == []


def test_a_link_that_leads_nowhere_is_noticed() -> None:
    page = ROOT / "docs" / "concepts.md"
    text = "# A heading\n[x](nothing.md) [y](#a-heading) [z](#another) [w](https://x.example/y)"
    assert list(broken(page, text)) == [
        "docs/concepts.md: there is no nothing.md",
        "docs/concepts.md: the page has no heading another",
    ]


def test_a_link_to_a_missing_definition_is_noticed() -> None:
    page = ROOT / "docs" / "reading-the-code.md"
    text = "[a](../shared/bus/fence.py#FencedLog.append) [b](../shared/bus/fence.py#FencedLog.gone)"
    assert list(broken(page, text)) == [
        "docs/reading-the-code.md: ../shared/bus/fence.py does not define FencedLog.gone"
    ]


def living() -> list[Path]:
    """Pages that are kept current. Decisions and certificates describe their own time."""
    history = (DECISIONS, ROOT / "docs" / "certificates", ROOT / "docs" / "reference")
    return [page for page in documents() if page.parent not in history]


@pytest.mark.parametrize("page", living(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_in_backticks_exists(page: Path) -> None:
    assert missing_paths(page.read_text()) == []


def test_a_path_that_does_not_exist_is_noticed() -> None:
    assert missing_paths("`shared/bus`, `shared/bus/fence.py` and `shared/buss`") == ["shared/buss"]


def test_every_decision_is_in_the_index() -> None:
    assert INDEX.read_text() == index(), "run `.venv/bin/python -m tests.documents.links`"


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [path.name[:4] for path in decisions()]
    assert len(set(numbers)) == len(numbers)
    for path in decisions():
        assert path.read_text().startswith(f"# {path.name[:4]}: ")
