"""Checks of plain JSON, for `validate`: they collect all violations instead of stopping at the
first.

The object may be any JSON. An absent field (or null, which means the same to Kubernetes) violates
nothing.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.quantities import QuantityError, amount, cpu_milli

INT32_MAX: Final = 2**31 - 1
_DIGITS_MAX: Final = len(str(INT32_MAX))


INT32_MIN: Final = -(2**31)
#: Resources that may be fractions; every other one is counted in whole pieces.
_DIVISIBLE: Final = frozenset({"cpu", "memory", "storage", "ephemeral-storage"})


class Findings:
    """Collects the violations of one object."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def add(self, path: str, message: str) -> None:
        """Note one violation."""
        self.errors.append(FieldError(path=path, message=message))

    def section(self, parent: JsonObject, path: str) -> JsonObject:
        """The object at `path` (its last part is the key in `parent`); {} when absent or wrong,
        which is noted.
        """
        section = parent.get(_key(path))
        if section is None:
            return {}
        if not isinstance(section, dict):
            self.add(path, f"Invalid value: {shown(section)}: must be an object")
            return {}
        return cast("JsonObject", section)

    def items(self, parent: JsonObject, path: str) -> list[tuple[str, JsonObject]]:
        """The objects of the array at `path` with their own paths."""
        array = parent.get(_key(path))
        if array is None:
            return []
        if not isinstance(array, list):
            self.add(path, f"Invalid value: {shown(array)}: must be an array")
            return []
        objects: list[tuple[str, JsonObject]] = []
        for index, item in enumerate(cast("list[object]", array)):
            if isinstance(item, dict):
                objects.append((f"{path}[{index}]", cast("JsonObject", item)))
            else:
                self.add(f"{path}[{index}]", f"Invalid value: {shown(item)}: must be an object")
        return objects

    def text(self, parent: JsonObject, path: str) -> str | None:
        value = parent.get(_key(path))
        if value is None or isinstance(value, str):
            return value
        self.add(path, f"Invalid value: {shown(value)}: must be a string")
        return None

    def choice(self, parent: JsonObject, path: str, allowed: tuple[str, ...]) -> None:
        """A string out of the allowed ones."""
        text = self.text(parent, path)
        if text is not None and text not in allowed:
            supported = ", ".join(f'"{value}"' for value in allowed)
            self.add(path, f"Unsupported value: {shown(text)}: supported values: {supported}")

    def boolean(self, parent: JsonObject, path: str) -> None:
        value = parent.get(_key(path))
        if value is not None and not isinstance(value, bool):
            self.add(path, f"Invalid value: {shown(value)}: must be true or false")

    def integer(
        self, parent: JsonObject, path: str, minimum: int = INT32_MIN, maximum: int = INT32_MAX
    ) -> None:
        """A whole number, by default any int32."""
        self._integer(parent.get(_key(path)), path, minimum, maximum)

    def counts(self, parent: JsonObject, path: str) -> None:
        """An object whose values are int32, which may be negative."""
        for key, value in self.section(parent, path).items():
            self._integer(value, f"{path}.{key}", INT32_MIN, INT32_MAX)

    def quantities(
        self,
        parent: JsonObject,
        path: str,
        check: Callable[[str, Any], str | None],
    ) -> dict[str, int]:
        """A resource list; `check` returns an objection to an amount, or None. Returns the valid
        amounts in our units.
        """
        amounts = self.section(parent, path)
        good: dict[str, int] = {}
        for name, value in amounts.items():
            objection = check(name, value)
            if objection is None:
                good[name] = _amount_or_zero(name, value)
            else:
                self.add(f"{path}.{name}", f"Invalid value: {shown(value)}: {objection}")
        return good

    def _integer(self, value: object, path: str, minimum: int, maximum: int) -> None:
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int):
            self.add(path, f"Invalid value: {shown(value)}: must be an integer")
        elif value < minimum:
            self.add(path, f"Invalid value: {value}: must be greater than or equal to {minimum}")
        elif value > maximum:
            self.add(path, f"Invalid value: {value}: must be less than or equal to {maximum}")


def shown(value: object) -> str:
    """A value as messages show it: strings quoted, long ones cut."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def quantity(name: str, value: object) -> str | None:
    """The violation of a quantity of any sign, or None: it must parse, and fit in 63 bits."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return "must be a quantity"
    try:
        amount(name, str(value).removeprefix("-"))
    except QuantityError as error:
        return str(error)
    return None


def amount_of(name: str, value: object) -> str | None:
    """The violation of an amount, or None: it must be a quantity, not negative, and whole unless
    its resource is divisible.
    """
    objection = quantity(name, value)
    if objection is not None:
        return objection
    text = str(value)
    if text.startswith("-") and _amount_or_zero(name, text[1:]) > 0:
        return "must be greater than or equal to 0"
    if name not in _DIVISIBLE and _is_fraction(text.removeprefix("-")):
        return "must be an integer"
    return None


def _is_fraction(text: str) -> bool:
    try:
        return cpu_milli(text) % 1000 != 0
    except QuantityError:
        return False  # a thousand times it is beyond 63 bits: no fraction anyone could mean


def _amount_or_zero(name: str, value: object) -> int:
    try:
        return amount(name, str(value))
    except QuantityError:
        return 0  # negative: has been noted where that is a violation


def _key(path: str) -> str:
    """The last part of a path: the key in its parent. Never called with keys that users choose,
    which may contain dots.
    """
    return path.rpartition(".")[2]


def natural(text: str) -> int | None:
    """An int32 of 0 or more in plain digits; None for any other text, however long."""
    # Python refuses to read thousands of digits, and str.isdigit knows more than ten of them.
    if not (len(text) <= _DIGITS_MAX and text.isascii() and text.isdigit()):
        return None
    number = int(text)
    return number if number <= INT32_MAX else None
