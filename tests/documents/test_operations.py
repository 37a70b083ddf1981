"""docs/operations.md tells of every setting and metric there is, and of none that there is not."""

from tests.documents.tables import DOCUMENT, named_in, tables, with_tables

HOW = "run `.venv/bin/python -m tests.documents.tables` and look at what it changed"


def test_every_table_is_there_once_and_current() -> None:
    text = DOCUMENT.read_text()
    assert sorted(named_in(text)) == sorted(tables()), "a table is missing, or there twice"
    assert text == with_tables(text), HOW


def test_a_table_out_of_date_is_noticed() -> None:
    text = DOCUMENT.read_text()
    stale = text.replace("`--posts-max`", "`--posts-most`")
    assert stale != text
    assert with_tables(stale) == with_tables(text)
