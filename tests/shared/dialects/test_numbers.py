"""Whatever an annotation holds, it is a number or none."""

import pytest

from shared.dialects.field_checks import INT32_MAX, natural


@pytest.mark.parametrize("number", [0, 7, INT32_MAX])
def test_digits_are_the_number(number: int) -> None:
    assert natural(str(number)) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "²", "٣", "2147483648", "9" * 5000])
def test_any_other_text_is_none(text: str) -> None:
    assert natural(text) is None
