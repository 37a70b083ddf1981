"""Every name of code that a page has in backticks exists."""

from pathlib import Path

import pytest

from tests.documents.links import ROOT
from tests.documents.symbols import missing_symbols
from tests.documents.test_links import living


@pytest.mark.parametrize("page", living(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_symbol_in_backticks_exists(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    if name != "CHANGELOG.md":  # it names what releases had
        assert list(missing_symbols(name, page.read_text())) == []


def test_a_symbol_that_nothing_defines_is_noticed() -> None:
    known = "`GangDecision` `FencedLog.append_batch` `shared.bus.fence` `fence.py` `read_pod`"
    gone = ["GangDecisio", "FencedLog.gone_long_ago", "shared.bus.fences", "fense.py", "red_pods"]
    text = f"{known} `DisruptionTarget` {' '.join(f'`{name}`' for name in gone)}"
    assert list(missing_symbols("docs/concepts.md", text)) == gone


def test_names_in_code_blocks_and_generated_tables_are_not_checked() -> None:
    text = "```python\n`NoSuchThing`\n```\n<!-- table: x -->\n`NoSuchThing`\n<!-- end -->\n"
    assert list(missing_symbols("docs/concepts.md", text)) == []
