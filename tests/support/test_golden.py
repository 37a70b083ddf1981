"""Golden texts: a text that differs, is missing or is not rendered any more fails the test."""

from pathlib import Path

import pytest

from tests.support.golden import NAME, Golden, sections

TEXTS = ("g waits: no room", "two lines:\n  the second\n\nand a last one")


@pytest.fixture
def test(tmp_path: Path) -> Path:
    """The file of a test whose section `test_one` has both texts."""
    (tmp_path / NAME).touch()
    file = tmp_path / "inner" / "test_it.py"
    for name in ("test_one", "test_another"):
        written = Golden(file, name, writes=True)
        written(*TEXTS)
        written.finish()
    return file


def compare(file: Path, name: str, *texts: str) -> None:
    golden = Golden(file, name, writes=False)
    golden(*texts)
    golden.finish()


def test_what_was_written_is_what_is_compared(test: Path) -> None:
    compare(test, "test_one", *TEXTS)
    assert sections(test.parents[1] / NAME) == {
        "inner/test_it.py::test_another": list(TEXTS),
        "inner/test_it.py::test_one": list(TEXTS),
    }


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((TEXTS[0], "another"), id="another text"),
        pytest.param((TEXTS[1], TEXTS[0]), id="another order"),
        pytest.param(TEXTS[:1], id="fewer texts"),
        pytest.param((), id="no text"),
        pytest.param((*TEXTS, "more"), id="more texts"),
    ],
)
def test_anything_else_fails(test: Path, texts: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError):
        compare(test, "test_one", *texts)


def test_a_test_without_a_section_fails(test: Path) -> None:
    with pytest.raises(AssertionError, match="has no section"):
        compare(test, "test_new", "a text")
    with pytest.raises(AssertionError, match="no text"):
        compare(test, "test_new")


def test_a_test_that_renders_nothing_any_more_has_no_section_after_writing(test: Path) -> None:
    Golden(test, "test_one", writes=True).finish()
    assert set(sections(test.parents[1] / NAME)) == {"inner/test_it.py::test_another"}
