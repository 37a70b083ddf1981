"""Literals of CEL: numbers, texts with their escapes, bytes."""

import re
from typing import Final

from shared.cel.values import INT_MAX, UINT_MAX, Uint, Value

_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.?))",
    re.DOTALL,
)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LiteralError(ValueError):
    """A literal has no value; the message quotes it."""


def literal(kind: str, text: str) -> Value:
    """The value of a token of this kind of the grammar. Raises LiteralError."""
    match kind:
        case "BOOL_LIT":
            return text == "true"
        case "NULL_LIT":
            return None
        case "INT_LIT":
            return _whole(text, -INT_MAX - 1, INT_MAX)
        case "UINT_LIT":
            return Uint(_whole(text[:-1], 0, UINT_MAX))
        case "FLOAT_LIT":
            return float(text)
        case "BYTES_LIT":
            return _text(text[1:], octets=True).encode("latin-1", "ignore")
        case _:
            return _text(text)


def _whole(text: str, least: int, most: int) -> int:
    if len(text) > 40:
        raise LiteralError(f"{text[:40]} is out of range")
    number = int(text, 16) if "x" in text else int(text)
    if not least <= number <= most:
        raise LiteralError(f"{text} is out of range")
    return number


def _text(text: str, *, octets: bool = False) -> str:
    """The text between the quotes; of bytes, each byte as the character of its number."""
    raw = text[:1] in {"r", "R"}
    quoted = text[1:] if raw else text
    width = 3 if quoted[:3] in {'"""', "'''"} and len(quoted) >= 6 else 1
    content = quoted[width:-width]
    if octets:
        content = content.encode().decode("latin-1")
    return content if raw else _ESCAPE.sub(_unescaped, content)


def _unescaped(escape: re.Match[str]) -> str:
    simple, hexadecimal, short, long, octal, other = escape.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    if other is not None:
        raise LiteralError(f"\\{other} is no escape sequence")
    code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError(f"{escape[0]} is no character")
    return chr(code)
