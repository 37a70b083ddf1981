"""Optional values: `a.?b` and `a[?b]`, which have no value instead of an error.

cel-python's grammar has no `?` in these places. So each such `?` is hidden from the parser by a
space in its place, and its position is remembered.
"""

from collections.abc import Mapping
from typing import Final

from shared.cel.values import ABSENT, CelError, OptionalValue, Value, type_name

_QUOTES: Final = frozenset("\"'")
_PREFIXES: Final = frozenset("rRbB")


def hide_marks(text: str) -> tuple[str, set[int]]:
    """The expression with spaces instead of the `?` of optional selections, and their positions."""
    marks: set[int] = set()
    at = 0
    while "?" in text and at < len(text):
        if text[at] in _QUOTES:
            at = _after_text(text, at)
            continue
        if text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        if text[at] in ".[":
            mark = at + 1
            while mark < len(text) and text[mark].isspace():
                mark += 1
            if mark < len(text) and text[mark] == "?":
                marks.add(mark)
        at += 1
    hidden = [" " if index in marks else character for index, character in enumerate(text)]
    return "".join(hidden), marks


def _after_text(text: str, at: int) -> int:
    """The position after a text literal whose first quote is at this position."""
    quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
    prefix = at
    while prefix > 0 and text[prefix - 1] in _PREFIXES:
        prefix -= 1
    raw = "r" in text[prefix:at].lower()
    at += len(quote)
    while at < len(text) and not text.startswith(quote, at):
        at += 1 if raw or text[at] != "\\" else 2
    return at + len(quote)


def select(holder: Value, key: Value) -> OptionalValue:
    """What a map or list has at a key; no value: it has nothing there, or is itself no value.

    Raises:
        CelError: It is no map or list, or the key cannot be one.
    """
    if isinstance(holder, OptionalValue):
        if not holder.is_present:
            return holder
        holder = holder.content
    if isinstance(holder, Mapping) and not isinstance(key, Mapping | tuple):
        return OptionalValue(holder.get(key, ABSENT))
    if isinstance(holder, tuple) and isinstance(key, int) and not isinstance(key, bool):
        return OptionalValue(holder[key] if 0 <= key < len(holder) else ABSENT)
    raise CelError(f"type {type_name(holder)} does not support optional selection")


def of_value(value: Value, name: str) -> OptionalValue:
    """The value as an optional one.

    Raises:
        CelError: It is none; the message names the function.
    """
    if not isinstance(value, OptionalValue):
        raise CelError(f"no such overload: {name}({type_name(value)})")
    return value


def content_of(value: Value) -> Value:
    """The value of an optional one.

    Raises:
        CelError: It has none, or is not optional.
    """
    optional = of_value(value, "value")
    if not optional.is_present:
        raise CelError("optional.none() dereference")
    return optional.content


def of_non_zero(value: Value) -> OptionalValue:
    """The value, unless it is null, false, 0 or empty."""
    if isinstance(value, Mapping | tuple | str | bytes):
        return OptionalValue(value if len(value) else ABSENT)
    return OptionalValue(value or ABSENT)
