"""The method `format` of texts: cel-go's first version, which Kubernetes uses, with its English
numbers: `%f` groups thousands, and `%e` writes a power of ten.
"""

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from shared.cel.values import Budget, CelError, Value, charged, type_name

_CLAUSE: Final = re.compile(r"%(?:%|(?:\.(\d+))?([sdfebxXo]))", re.ASCII)
#: Digits after the point, without a precision, and at most.
_PRECISION: Final = 6
_PRECISION_MAX: Final = 1_000
_SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_ESCAPES: Final = {
    **{character: f"\\{character}" for character in '"\\'},
    **{chr(at): f"\\{name}" for at, name in enumerate("abtnvfr", 7)},
}
#: Doubles with this power of ten and above are written with an exponent.
_EXPONENT_FROM: Final = 6
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

ToText = Callable[[Budget, Value], str]
"""The conversion of a simple value to a text, as CEL's `string`."""


def formatted(budget: Budget, text: str, values: tuple[Value, ...], to_text: ToText) -> str:
    """The text with each clause replaced by its value.

    Raises:
        CelError: A clause is unknown, has no value, or does not take its value's type.
    """
    parts: list[str] = []
    left = iter(values)
    end = 0
    while (start := text.find("%", end)) >= 0:
        parts.append(text[end:start])
        clause = _CLAUSE.match(text, start)
        if clause is None:
            raise CelError(f"could not parse formatting clause at {text[start : start + 8]!r}")
        end = clause.end()
        if clause[2] is None:
            parts.append("%")
            continue
        value = next(left, _NONE)
        if value is _NONE:
            raise CelError("a formatting clause has no value")
        part = _written(budget, clause[2], int(clause[1] or _PRECISION), value, to_text)
        charged(budget, len(part))
        parts.append(part)
    parts.append(text[end:])
    return "".join(parts)


_NONE: Final = object()


def _written(budget: Budget, clause: str, precision: int, value: Value, to_text: ToText) -> str:
    if precision > _PRECISION_MAX:
        raise CelError(f"the precision {precision} is above {_PRECISION_MAX}")
    if clause == "s":
        return _plain(budget, value, to_text)
    if clause == "b" and isinstance(value, bool):
        return str(int(value))
    if clause in "dbxXo" and isinstance(value, int) and not isinstance(value, bool):
        return format(value, clause)
    if clause in "xX" and isinstance(value, str | bytes):
        content = value.encode() if isinstance(value, str) else value
        return content.hex() if clause == "x" else content.hex().upper()
    number = _SPECIAL.get(value) if isinstance(value, str) else value
    if clause in "fe" and isinstance(number, float):
        return _fixed(number, precision) if clause == "f" else _scientific(number)
    raise CelError(f"no such overload: the formatting clause %{clause} of {type_name(value)}")


def _plain(budget: Budget, value: Value, to_text: ToText) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_literal(budget, element, to_text) for element in value)}]"
    if isinstance(value, Mapping):
        pairs = sorted(
            (_literal(budget, key, to_text), _literal(budget, element, to_text))
            for key, element in value.items()
        )
        return f"{{{', '.join(f'{key}:{text}' for key, text in pairs)}}}"
    if value is None:
        return "null"
    if type_name(value) == "type":
        return str(value)
    return to_text(budget, value)


def _literal(budget: Budget, value: Value, to_text: ToText) -> str:
    """An element of a list or map, written as in an expression."""
    budget.spend(1)
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else f'"{double_text(value)}"'
    text = _plain(budget, value, to_text)
    if isinstance(value, bytes):
        return f"b{_quoted(text)}"
    return _quoted(text) if type_name(value) == "string" else text


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def double_text(number: float) -> str:
    """A double as CEL's `string` writes it: as short as possible, from 1e+06 on and below 0.0001
    with an exponent.
    """
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    texts = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1 if number else 0
    if -5 < power < _EXPONENT_FROM:
        return repr(number).removesuffix(".0")
    fraction = f".{texts[1:]}" if len(texts) > 1 else ""
    return f"{'-' * sign}{texts[0]}{fraction}e{power:+03d}"


def _fixed(number: float, precision: int) -> str:
    if math.isfinite(number):
        # A zero has no sign here.
        return f"{number or 0.0:,.{precision}f}"
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _scientific(number: float) -> str:
    """Whatever its precision, the clause writes six digits, and pads what is not a number."""
    if not math.isfinite(number):
        return _fixed(number, 0).rjust(_PRECISION)
    digits, _, exponent = f"{number or 0.0:.{_PRECISION}e}".partition("e")
    power = exponent.removeprefix("+").translate(_SUPERSCRIPTS)
    return f"{digits}\u202f\u00d7\u202f10{power}"
