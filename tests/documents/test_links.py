"""Documents lead somewhere, and every decision is in their index under a number of its own."""

from pathlib import Path

import pytest

from tests.documents.links import INDEX, ROOT, broken, decisions, documents, index


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


def test_every_decision_is_in_the_index() -> None:
    assert INDEX.read_text() == index(), "run `.venv/bin/python -m tests.documents.links`"


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [path.name[:4] for path in decisions()]
    assert len(set(numbers)) == len(numbers)
    for path in decisions():
        assert path.read_text().startswith(f"# {path.name[:4]}: ")
