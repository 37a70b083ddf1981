"""Numbers in labels and annotations, which may hold any text."""

from typing import Final

INT32_MAX: Final = 2**31 - 1
_DIGITS_MAX: Final = len(str(INT32_MAX))


def natural(text: str) -> int | None:
    """An int32 of 0 or more in plain digits; None for any other text, however long."""
    # Python refuses to read thousands of digits, and str.isdigit knows more than ten of them.
    if not (len(text) <= _DIGITS_MAX and text.isascii() and text.isdigit()):
        return None
    number = int(text)
    return number if number <= INT32_MAX else None
