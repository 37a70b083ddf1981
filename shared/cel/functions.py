"""The functions of Kubernetes' CEL environment for devices: standard library, quantities,
versions, strings, lists, sets and regular expressions.

A function gets the budget and its arguments; the receiver of a method is the first one. It raises
CelError "no such overload" for arguments of other types. Texts and lists that it makes are charged
before they are made.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from functools import cmp_to_key
from typing import Any, Final, TypeAlias, TypeVar

import re2

from shared.cel import optionals
from shared.cel.formatting import double_text, formatted
from shared.cel.values import (
    COST_UNIT,
    INT_MAX,
    UINT_MAX,
    Budget,
    CelError,
    CelType,
    OptionalValue,
    Quantity,
    Semver,
    Uint,
    Value,
    charged,
    equal,
    is_number,
    type_name,
)

Function: TypeAlias = Callable[..., Value]
_T = TypeVar("_T")

#: Longest pattern of a regular expression, in characters.
_PATTERN_CHARACTERS_MAX: Final = 1024
#: Memory of a compiled pattern, and what a refused one costs.
_PROGRAM_BYTES_MAX: Final = 1 << 18
_REFUSED_PATTERN_STEPS: Final = 1_000


def overload(name: str, *arguments: Value) -> CelError:
    """The error for arguments of unsuitable types."""
    types = ", ".join(type_name(argument) for argument in arguments)
    return CelError(f"no such overload: {name}({types})")


def _as(kind: type[_T], value: Value, name: str) -> _T:
    """The value, if CEL too counts it as of this type."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise overload(name, value)
    return value


def _text(value: Value, name: str) -> str:
    if isinstance(value, CelType):
        raise overload(name, value)
    return _as(str, value, name)


def _list(value: Value, name: str) -> tuple[Value, ...]:
    return _as(tuple, value, name)


def to_int(number: int) -> int:
    """An int, if it is one of 64 bits. Raises CelError."""
    if not -INT_MAX - 1 <= number <= INT_MAX:
        raise CelError("integer overflow")
    return int(number)


def to_uint(number: int) -> Uint:
    """A uint, if it is one of 64 bits. Raises CelError."""
    if not 0 <= number <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(number)


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1. Raises CelError: the values have no order."""
    ordered = (
        (is_number(left) and is_number(right))
        or (type_name(left) == type_name(right) and isinstance(left, bool | str | bytes))
        or (isinstance(left, Quantity) and isinstance(right, Quantity))
        or (isinstance(left, Semver) and isinstance(right, Semver))
    )
    if not ordered:
        raise overload("compare", left, right)
    a: Any = left
    b: Any = right
    order: int = (a > b) - (a < b)
    return order


# ------------------------------------------------------------------ standard library


def size(_budget: Budget, value: Value) -> int:
    if isinstance(value, str | bytes | tuple | Mapping) and not isinstance(value, CelType):
        return len(value)
    raise overload("size", value)


def _int(_budget: Budget, value: Value) -> int:
    try:
        if isinstance(value, str) and not isinstance(value, CelType):
            if len(value) > 20 or not value.lstrip("+-").isascii() or "_" in value:
                raise CelError(f"{value[:20]!r} is no int")
            return to_int(int(value))
        if is_number(value):
            number: Any = value
            return to_int(int(number))
    except (ValueError, OverflowError) as error:
        raise CelError(f"{value!r} is no int") from error
    raise overload("int", value)


def _uint(budget: Budget, value: Value) -> Uint:
    return to_uint(_int(budget, value)) if not isinstance(value, Uint) else value


def _double(budget: Budget, value: Value) -> float:
    if is_number(value) or isinstance(value, str):
        charged(budget, len(value) if isinstance(value, str) else 0)
        given: Any = value
        try:
            return float(given)
        except ValueError as error:
            raise CelError(f"{value!r} is no double") from error
    raise overload("double", value)


def _string(budget: Budget, value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        charged(budget, len(value))
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise CelError("the bytes are no UTF-8") from error
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, str | int) and not isinstance(value, CelType):
        return str(value)
    raise overload("string", value)


def _bool(_budget: Budget, value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "True", "TRUE", "t", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "0"):
        return False
    raise overload("bool", value)


def _bytes(budget: Budget, value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    charged(budget, len(_text(value, "bytes")))
    return _text(value, "bytes").encode()


# ------------------------------------------------------------------------ quantities


def _is_parsed(parse: Callable[[], object]) -> bool:
    try:
        parse()
    except CelError:
        return False
    return True


def _whole(value: Value) -> int | None:
    amount = _as(Quantity, value, "asInteger").amount
    return amount.numerator if amount.denominator == 1 and abs(amount) <= INT_MAX else None


def _as_integer(_budget: Budget, value: Value) -> int:
    whole = _whole(value)
    if whole is None:
        raise CelError("cannot convert value to integer")
    return whole


def _moved(sign: int) -> Function:
    def move(_budget: Budget, value: Value, by: Value) -> Quantity:
        amount = _as(Quantity, value, "add").amount
        if isinstance(by, Quantity):
            return Quantity(amount + sign * by.amount)
        return Quantity(amount + sign * _as(int, by, "add"))

    return move


def _ordering(holds: Callable[[int], Value]) -> Function:
    def ordering(_budget: Budget, left: Value, right: Value) -> Value:
        if not isinstance(left, Quantity | Semver):
            raise overload("compareTo", left, right)
        return holds(compare(left, right))

    return ordering


def _quantity(_budget: Budget, text: Value) -> Quantity:
    # Long texts are refused unread.
    return Quantity.parse(_text(text, "quantity"))


def _semver(budget: Budget, text: Value, normalize: Value = False) -> Semver:
    charged(budget, len(_text(text, "semver")))
    return Semver.parse(_text(text, "semver"), normalize=_as(bool, normalize, "semver"))


def _part(index: int) -> Function:
    return lambda _, value: _as(Semver, value, "version part").numbers[index]


# --------------------------------------------------------------------------- strings


def _on_text(name: str, function: Callable[..., Value]) -> Function:
    """A method of strings, charged by the receiver's length."""

    def method(budget: Budget, text: Value, *arguments: Value) -> Value:
        receiver = _text(text, name)
        charged(budget, len(receiver))
        try:
            return function(receiver, *arguments)
        except (TypeError, AttributeError) as error:
            raise overload(name, text, *arguments) from error

    return method


def _quote(budget: Budget, text: Value) -> str:
    content = _text(text, "strings.quote")
    charged(budget, 2 * len(content))
    return f'"{content.translate(_ESCAPES)}"'


def _char_at(text: str, index: Value) -> str:
    at = _as(int, index, "charAt")
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _substring(text: str, start: Value, end: Value = None) -> str:
    first = _as(int, start, "substring")
    last = len(text) if end is None else _as(int, end, "substring")
    if not 0 <= first <= last <= len(text):
        raise CelError(f"index out of range: {first}, {last}")
    return text[first:last]


def _index_of(budget: Budget, where: Value, what: Value, start: Value = 0) -> int:
    if isinstance(where, tuple):
        budget.spend(len(where))
        return next((i for i, element in enumerate(where) if equal(budget, element, what)), -1)
    text, first = _text(where, "indexOf"), _as(int, start, "indexOf")
    charged(budget, len(text))
    if not 0 <= first <= len(text):
        raise CelError(f"index out of range: {first}")
    return text.find(_text(what, "indexOf"), first)


def _last_index_of(budget: Budget, where: Value, what: Value, start: Value = None) -> int:
    if isinstance(where, tuple):
        budget.spend(len(where))
        at = next(
            (i for i, element in enumerate(reversed(where)) if equal(budget, element, what)), None
        )
        return -1 if at is None else len(where) - 1 - at
    text, sought = _text(where, "lastIndexOf"), _text(what, "lastIndexOf")
    charged(budget, len(text))
    last = len(text) if start is None else _as(int, start, "lastIndexOf")
    if not 0 <= last <= len(text):
        raise CelError(f"index out of range: {last}")
    return text.rfind(sought, 0, last + len(sought))


def _replace(budget: Budget, text: Value, old: Value, new: Value, count: Value = -1) -> str:
    whole, before = _text(text, "replace"), _text(old, "replace")
    after, most = _text(new, "replace"), _as(int, count, "replace")
    occurrences = len(whole) + 1 if not before else whole.count(before)
    charged(budget, len(whole) + occurrences * len(after))
    return whole.replace(before, after, most)


def _split(budget: Budget, text: Value, separator: Value, count: Value = -1) -> tuple[str, ...]:
    whole, by = _text(text, "split"), _text(separator, "split")
    parts = _as(int, count, "split")
    charged(budget, len(whole) * 2)
    if parts == 0:
        return ()
    if not by:
        rest = len(whole) if parts < 0 else parts - 1
        tail = (whole[rest:],) if whole[rest:] else ()
        return (*whole[:rest], *tail)
    return tuple(whole.split(by, parts - 1 if parts > 0 else -1))


def _join(budget: Budget, parts: Value, separator: Value = "") -> str:
    texts = [_text(part, "join") for part in _list(parts, "join")]
    between = _text(separator, "join")
    charged(budget, sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _format(budget: Budget, text: Value, values: Value) -> str:
    return formatted(budget, _text(text, "format"), _list(values, "format"), _string)


_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
#: Of `strings.quote`.
_ESCAPES: Final = {
    ord(character): f"\\{name}"
    for character, name in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)
}
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


# --------------------------------------------------------------- regular expressions


def _pattern(value: Value) -> Any:
    text = _text(value, "matches")
    if len(text) > _PATTERN_CHARACTERS_MAX:
        raise CelError(f"regular expressions of more than {_PATTERN_CHARACTERS_MAX} characters")
    options = re2.Options()
    options.log_errors = False
    # Bounds the time of compiling it to some milliseconds.
    options.max_mem = _PROGRAM_BYTES_MAX
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise CelError(f"{text[:60]!r} is no regular expression") from error


def _searched(budget: Budget, text: Value, pattern: Value) -> tuple[str, Any]:
    whole = _text(text, "matches")
    budget.spend(COST_UNIT)
    try:
        compiled = _pattern(pattern)
    except CelError:
        # It may have been refused after much work.
        budget.spend(_REFUSED_PATTERN_STEPS)
        raise
    # RE2's time is linear in both. A repetition makes a program much larger than its pattern.
    budget.spend(compiled.programsize // COST_UNIT + len(whole) * compiled.programsize // 500)
    return whole, compiled


def _matches(budget: Budget, text: Value, pattern: Value) -> bool:
    whole, compiled = _searched(budget, text, pattern)
    return compiled.search(whole) is not None


def _find(budget: Budget, text: Value, pattern: Value) -> str:
    whole, compiled = _searched(budget, text, pattern)
    match = compiled.search(whole)
    return match.group() if match is not None else ""


def _find_all(budget: Budget, text: Value, pattern: Value, limit: Value = -1) -> tuple[str, ...]:
    whole, compiled = _searched(budget, text, pattern)
    most = _as(int, limit, "findAll")
    matches = tuple(match.group() for match in compiled.finditer(whole))
    return matches if most < 0 else matches[:most]


# ----------------------------------------------------------------------------- lists


def charge_sort(budget: Budget, number: int) -> None:
    """Charge the comparisons of sorting so many values."""
    budget.spend(number * number.bit_length())


def _sort(budget: Budget, value: Value) -> tuple[Value, ...]:
    values = _list(value, "sort")
    charge_sort(budget, len(values))
    return tuple(sorted(values, key=cmp_to_key(compare)))


def _on_list(name: str, function: Callable[..., Value]) -> Function:
    """A method of lists, charged by the receiver's length."""

    def method(budget: Budget, value: Value, *arguments: Value) -> Value:
        receiver = _list(value, name)
        charged(budget, COST_UNIT * len(receiver))
        try:
            return function(receiver, *arguments)
        except TypeError as error:
            raise overload(name, value, *arguments) from error

    return method


def _is_sorted(values: tuple[Value, ...]) -> bool:
    return all(compare(value, other) <= 0 for value, other in itertools.pairwise(values))


def _sum(values: tuple[Value, ...]) -> Value:
    if not values:
        return 0
    if all(isinstance(value, float) for value in values):
        return math.fsum(_as(float, value, "sum") for value in values)
    if all(isinstance(value, Uint) for value in values):
        return to_uint(sum(_as(int, value, "sum") for value in values))
    if any(isinstance(value, Uint) for value in values):
        raise overload("sum", values)
    return to_int(sum(_as(int, value, "sum") for value in values))


def _extreme(name: str, sign: int) -> Callable[[tuple[Value, ...]], Value]:
    def extreme(values: tuple[Value, ...]) -> Value:
        if not values:
            raise CelError(f"{name} called on empty list")
        best = values[0]
        for value in values[1:]:
            if compare(value, best) * sign > 0:
                best = value
        return best

    return extreme


def _slice(values: tuple[Value, ...], start: Value, end: Value) -> Value:
    first, last = _as(int, start, "slice"), _as(int, end, "slice")
    if not 0 <= first <= last <= len(values):
        raise CelError(f"index out of range: {first}, {last}")
    return values[first:last]


def _distinct(budget: Budget, value: Value) -> tuple[Value, ...]:
    distinct: list[Value] = []
    for element in _list(value, "distinct"):
        budget.spend(1 + len(distinct))
        if not any(equal(budget, element, other) for other in distinct):
            distinct.append(element)
    return tuple(distinct)


def _flatten(budget: Budget, value: Value, depth: Value = 1) -> tuple[Value, ...]:
    levels = _as(int, depth, "flatten")
    if levels < 0:
        raise CelError("level must be non-negative")
    flat: list[Value] = []
    for element in _list(value, "flatten"):
        budget.spend(1)
        if isinstance(element, tuple) and levels:
            flat.extend(_flatten(budget, element, levels - 1))
        else:
            flat.append(element)
    return tuple(flat)


def _range(budget: Budget, count: Value) -> tuple[int, ...]:
    number = _as(int, count, "lists.range")
    budget.spend(max(number, 0))
    return tuple(range(number))


def contains(budget: Budget, where: Value, what: Value) -> bool:
    """The operator `in`."""
    if isinstance(where, Mapping):
        return not isinstance(what, Mapping | tuple) and what in where
    values = _list(where, "in")
    charged(budget, COST_UNIT * len(values))
    return any(equal(budget, element, what) for element in values)


def _includes(budget: Budget, where: Value, what: Value) -> bool:
    """An attribute that is one value includes that value (Kubernetes 1.37)."""
    if isinstance(where, tuple):
        return contains(budget, where, what)
    return equal(budget, where, what)


def _sets_contain(budget: Budget, left: Value, right: Value) -> bool:
    return all(contains(budget, left, element) for element in _list(right, "sets.contains"))


def _sets_intersect(budget: Budget, left: Value, right: Value) -> bool:
    return any(contains(budget, left, element) for element in _list(right, "sets.intersects"))


def _contains_text(budget: Budget, text: Value, part: Value) -> bool:
    charged(budget, len(_text(text, "contains")))
    return _text(part, "contains") in _text(text, "contains")


#: Name -> function and the numbers of its arguments.
GLOBAL: Final[Mapping[str, tuple[Function, range]]] = {
    "size": (size, range(1, 2)),
    "int": (_int, range(1, 2)),
    "uint": (_uint, range(1, 2)),
    "double": (_double, range(1, 2)),
    "string": (_string, range(1, 2)),
    "bool": (_bool, range(1, 2)),
    "bytes": (_bytes, range(1, 2)),
    "dyn": (lambda _, value: value, range(1, 2)),
    "type": (lambda _, value: CelType(type_name(value)), range(1, 2)),
    "matches": (_matches, range(2, 3)),
    "quantity": (_quantity, range(1, 2)),
    "isQuantity": (lambda budget, text: _is_parsed(lambda: _quantity(budget, text)), range(1, 2)),
    "semver": (_semver, range(1, 3)),
    "isSemver": (
        lambda budget, *given: _is_parsed(lambda: _semver(budget, *given)),
        range(1, 3),
    ),
    "lists.range": (_range, range(1, 2)),
    "optional.of": (lambda _, value: OptionalValue(value), range(1, 2)),
    "optional.none": (lambda _: OptionalValue(), range(1)),
    "optional.ofNonZeroValue": (lambda _, value: optionals.of_non_zero(value), range(1, 2)),
    "strings.quote": (_quote, range(1, 2)),
    "sets.contains": (_sets_contain, range(2, 3)),
    "sets.intersects": (_sets_intersect, range(2, 3)),
    "sets.equivalent": (
        lambda budget, left, right: (
            _sets_contain(budget, left, right) and _sets_contain(budget, right, left)
        ),
        range(2, 3),
    ),
}

#: Name -> function and the numbers of its arguments, the receiver included.
METHODS: Final[Mapping[str, tuple[Function, range]]] = {
    "size": (size, range(1, 2)),
    "contains": (_contains_text, range(2, 3)),
    "startsWith": (
        _on_text("startsWith", lambda text, part: text.startswith(_text(part, "startsWith"))),
        range(2, 3),
    ),
    "endsWith": (
        _on_text("endsWith", lambda text, part: text.endswith(_text(part, "endsWith"))),
        range(2, 3),
    ),
    "matches": (_matches, range(2, 3)),
    "charAt": (_on_text("charAt", _char_at), range(2, 3)),
    "indexOf": (_index_of, range(2, 4)),
    "lastIndexOf": (_last_index_of, range(2, 4)),
    "lowerAscii": (_on_text("lowerAscii", lambda text: text.translate(_LOWER)), range(1, 2)),
    "upperAscii": (_on_text("upperAscii", lambda text: text.translate(_UPPER)), range(1, 2)),
    "replace": (_replace, range(3, 5)),
    "split": (_split, range(2, 4)),
    "substring": (_on_text("substring", _substring), range(2, 4)),
    "trim": (_on_text("trim", lambda text: text.strip()), range(1, 2)),
    "join": (_join, range(1, 3)),
    "format": (_format, range(2, 3)),
    "find": (_find, range(2, 3)),
    "findAll": (_find_all, range(2, 4)),
    "isSorted": (_on_list("isSorted", _is_sorted), range(1, 2)),
    "sum": (_on_list("sum", _sum), range(1, 2)),
    "min": (_on_list("min", _extreme("min", -1)), range(1, 2)),
    "max": (_on_list("max", _extreme("max", 1)), range(1, 2)),
    "slice": (_on_list("slice", _slice), range(3, 4)),
    "sort": (_sort, range(1, 2)),
    "distinct": (_distinct, range(1, 2)),
    "flatten": (_flatten, range(1, 3)),
    "includes": (_includes, range(2, 3)),
    "sign": (
        lambda _, value: compare(_as(Quantity, value, "sign"), Quantity.parse("0")),
        range(1, 2),
    ),
    "hasValue": (
        lambda _, value: optionals.of_value(value, "hasValue").is_present,
        range(1, 2),
    ),
    "value": (lambda _, value: optionals.content_of(value), range(1, 2)),
    "isInteger": (lambda _, value: _whole(value) is not None, range(1, 2)),
    "asInteger": (_as_integer, range(1, 2)),
    "asApproximateFloat": (
        lambda _, value: float(_as(Quantity, value, "asApproximateFloat").amount),
        range(1, 2),
    ),
    "add": (_moved(1), range(2, 3)),
    "sub": (_moved(-1), range(2, 3)),
    "compareTo": (_ordering(lambda order: order), range(2, 3)),
    "isLessThan": (_ordering(lambda order: order < 0), range(2, 3)),
    "isGreaterThan": (_ordering(lambda order: order > 0), range(2, 3)),
    "major": (_part(0), range(1, 2)),
    "minor": (_part(1), range(1, 2)),
    "patch": (_part(2), range(1, 2)),
}
