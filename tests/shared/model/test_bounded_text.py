"""Users' texts are shortened by bytes, with the number of what is left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.bounded_text import joined, shortened


@given(st.text(max_size=400), st.integers(64, 500))
def test_a_text_never_has_more_bytes_than_allowed(text: str, bytes_max: int) -> None:
    short = shortened(text, bytes_max)
    assert len(short.encode(errors="replace")) <= bytes_max
    if len(text.encode(errors="replace")) <= bytes_max:
        assert short == text


def test_what_is_left_out_of_a_text_is_counted() -> None:
    assert shortened("a" * 9_000, 1_024).endswith("aaa… (8,003 more characters)")


@pytest.mark.parametrize("character", ["\N{SNOWMAN}", "\N{GRINNING FACE}"])
def test_a_text_is_cut_between_characters(character: str) -> None:
    short = shortened(character * 100, 128)
    beginning, _, ending = short.partition("…")
    assert set(beginning) == {character}
    assert ending == f" ({100 - len(beginning)} more characters)"


def test_parts_are_named_up_to_a_size_and_then_counted() -> None:
    assert joined(["a", "b", "c"], "; ") == "a; b; c"
    assert joined([], "; ") == ""
    text = joined([f"{index}-".ljust(253, "r") for index in range(2_800)], "; ")
    assert text.endswith("; … and 2,796 more")
    assert len(text.encode()) < 1_100


def test_the_first_part_is_named_even_if_it_is_too_long() -> None:
    assert joined(["x" * 10_000, "y"], ", ", 64).startswith("xxx")
